"""From data to a Verilog module: train, compile with a proof, write the module and its testbench.

Run it: python examples/export_verilog.py [FOLDER]
"""

import sys
from pathlib import Path

import gatelight as gl


def main() -> None:
    """Write digits.v and its testbench to a folder, by default the current one."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    digits = gl.data.load("digits")
    net = gl.models.build("digits", width=400, layers=3, thresholds=3, seed=0)
    fit = gl.fit(net, digits.train.x, digits.train.y, steps=300, lr=0.02)
    circuit, report = gl.compile(fit.model)
    print(report)
    for name, text in gl.export.files(circuit, "verilog", "digits").items():
        (folder / name).write_bytes(text)
        print(f"wrote {folder / name}")
    print(f"{circuit.gates:,} gates, {circuit.depth} levels deep")


if __name__ == "__main__":
    main()
