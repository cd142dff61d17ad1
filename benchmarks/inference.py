"""Samples per second of circuits on one core, uint8 features to labels, against the exported C in the same run.

    python benchmarks/inference.py NET.gl [NET.gl ...]     trained circuits, and made ones
    python benchmarks/inference.py --made                  only made circuits

The rival is ``gatelight export --to c`` compiled with gcc -O3 -march=native, 64 samples per machine word. Each is
called repeatedly for a while, interleaved; times are CPU time of one thread, medians of the rounds. Nothing is
reported unless all answers are equal first. What the engine moves and computes is shown with the machine's limits.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
import numpy as np
from numpy.typing import NDArray

from gatelight import export
from gatelight.circuit import Circuit
from gatelight.circuit.random import layered_circuit
from gatelight.engine import Engine

BATCH = 1 << 13

#: Gates, no simplification; the sizes of the papers' networks.
MADE = {
    "784 -> 6 x 8,000 random gates": (784, (8_000,) * 6),
    "9,216 -> 4 x 128,000 random gates": (9_216, (128_000,) * 4),
}


def compiled_c(circuit: Circuit, folder: Path) -> tuple[Callable[[NDArray[np.uint8]], NDArray[np.int32]], float]:
    """The exported C as a function from features to labels, and the seconds that gcc took."""
    files = export.c(circuit, "net")
    for name, text in files.items():
        (folder / name).write_text(text)
    scratch = next(int(line.split()[-1]) for line in files["net.h"].splitlines() if "#define NET_SCRATCH " in line)
    begun = time.monotonic()
    flags = ["-std=c99", "-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "net.c", "-o", "net.so"], cwd=folder, check=True)
    seconds = time.monotonic() - begun
    library = ctypes.CDLL(str(folder / "net.so"))
    memory = np.zeros(scratch, np.uint64)

    def labels(x: NDArray[np.uint8]) -> NDArray[np.int32]:
        scores, found = np.empty((len(x), circuit.classes), np.int32), np.empty(len(x), np.int32)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, scores, found, memory)]
        library.net_batch_u8(pointers[0], ctypes.c_size_t(len(x)), *pointers[1:])
        return found

    return labels, seconds


def limits() -> dict[str, float]:
    """What one core reaches with rows of 512 bits: functions of three bits, and random reads from two caches."""
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "limits.so"
        source = Path(__file__).with_name("limits.c")
        subprocess.run(["gcc", "-O3", "-march=native", "-shared", "-fPIC", source, "-o", target], check=True)
        library = ctypes.CDLL(str(target))
        memory = np.zeros(64 * 18 + 64, np.uint8)
        out = ctypes.c_void_p((memory.ctypes.data + 63) // 64 * 64)
        library.limits_logic.restype = library.limits_read.restype = ctypes.c_uint64
        rounds = 100_000
        seconds = machine.sustained({"": lambda: library.limits_logic(ctypes.c_uint64(rounds), out)}, 7)[""]
        found = {"G operations/s": 16 * rounds / seconds / 1e9}
        for name, rows in (("first cache", 256), ("second cache", 6144)):
            table = np.zeros(64 * rows + 64, np.uint8)
            start = ctypes.c_void_p((table.ctypes.data + 63) // 64 * 64)
            order = np.tile(generator.permutation(rows), 8).astype(np.uint32)
            where = ctypes.c_void_p(order.ctypes.data)
            arguments = (start, where, ctypes.c_size_t(len(order)), ctypes.c_uint64(4), out)
            seconds = machine.sustained({"": functools.partial(library.limits_read, *arguments)}, 7)[""]
            found[f"{name} GB/s"] = 64 * 4 * len(order) / seconds / 1e9
    return {name: round(value, 2) for name, value in found.items()}


def measure(circuit: Circuit, with_c: bool, repeat: int) -> dict[str, object]:
    """Throughput and latency of one circuit."""
    begun = time.perf_counter()
    engine = Engine(circuit)
    prepared = time.perf_counter() - begun
    x = np.random.default_rng(0).integers(0, 256, (BATCH, circuit.features), np.uint8)
    expected = circuit.predict(x)
    functions: dict[str, Callable[[], NDArray[Any]]] = {"engine": lambda: engine.predict(x)}
    if engine.stats.code_bytes:
        interpreter = Engine(circuit, code=False)
        functions["interpreter"] = lambda: interpreter.predict(x)
    for function in functions.values():
        if not np.array_equal(function(), expected):
            sys.exit("refused: the engine differs from the circuit")
    result: dict[str, object] = {
        "gates": circuit.gates,
        "depth": circuit.depth,
        "summed bits": len(circuit.outputs),
        "prepare ms": round(1e3 * prepared, 2),
        "program bytes a gate": round(engine.stats.program_bytes / max(circuit.gates, 1), 1),
    }
    with tempfile.TemporaryDirectory() as folder:
        if with_c:
            rival, seconds = compiled_c(circuit, Path(folder))
            if not np.array_equal(rival(x), expected):
                sys.exit("refused: the exported C differs from the circuit")
            result["gcc s"] = round(seconds, 1)
            functions["exported C"] = lambda: rival(x)
        times = machine.sustained(functions, repeat)
    for name, value in times.items():
        result[f"{name}, M samples/s"] = round(BATCH / value / 1e6, 3)
        result[f"{name}, ns a sample"] = round(1e9 * value / BATCH, 1)
    if with_c:
        result["times as fast as C"] = round(times["exported C"] / times["engine"], 2)
    result["one sample us"] = round(1e6 * machine.interleaved({"one": lambda: engine.predict(x[:1])}, 200)["one"], 1)
    seconds, stats = times["engine"] / BATCH, engine.stats
    if stats.code_bytes:
        rows, gates = stats.code_reads + stats.code_writes, stats.code_gates
        result["code GB/s"] = round(stats.code_bytes / 512 / seconds / 1e9, 1)
    else:
        rows = stats.gate_reads + stats.sum_reads + stats.gates
        gates = stats.gates + stats.fused_gates + 2 * stats.summed_bits
    result["G operations/s"] = round(gates / 512 / seconds / 1e9, 2)
    result["rows GB/s"] = round(64 * rows / 512 / seconds / 1e9, 1)
    result["input GB/s"] = round(circuit.features / seconds / 1e9, 2)
    return result


def main() -> None:
    """Measure trained circuits from files and made ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("circuits", nargs="*", type=Path, metavar="NET.gl")
    parser.add_argument("--made", action="store_true", help="also when no file is given: made circuits")
    parser.add_argument("--repeat", type=int, default=21)
    parser.add_argument("--out", type=Path, default=Path("results/inference.json"))
    arguments = parser.parse_args()
    facts: dict[str, Any] = dict(machine.describe())
    print("  ".join(f"{key}: {value}" for key, value in facts.items()))
    facts["rows"] = limits()
    print("limits of rows of 512 bits:  " + "  ".join(f"{key}: {value}" for key, value in facts["rows"].items()))
    results = {}
    for path in arguments.circuits:
        results[path.name] = measure(Circuit.load(path), True, arguments.repeat)
    if arguments.made or not arguments.circuits:
        for name, (inputs, widths) in MADE.items():
            circuit = layered_circuit(inputs, widths)
            results[name] = measure(circuit, circuit.gates < 100_000, max(3, arguments.repeat // 3))
    for name, result in results.items():
        print(f"\n{name}")
        for key, value in result.items():
            print(f"  {key:<26}{value}")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"machine": facts, "circuits": results}, indent=1) + "\n")
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
