r"""Circuits as and-inverter graphs in the AIGER format, binary or ascii.

>>> from gatelight.circuit.random import random_circuit
>>> aiger(random_circuit(4, gates=20, outputs=3, seed=1), ascii=True).split(b"\n")[0]
b'aag 9 4 0 3 5'
"""

from __future__ import annotations

from gatelight.circuit import Circuit
from gatelight.circuit.proof.aig import Aig, to_aig, to_aiger
from gatelight.export.format import Format, Option
from gatelight.export.names import class_lines


def aiger(circuit: Circuit, ascii: bool = False) -> bytes:
    """The graph of the circuit's outputs, which come before the group sums.

    Inputs are named ``x0``, ``x1``, ...; outputs ``y0``, ``y1``, .... The comment says which outputs each class
    counts, and its bias.

    Args:
        circuit: The circuit.
        ascii: Write the ``aag`` format instead of the binary ``aig``.
    """
    aig = to_aig(circuit)
    inputs = [f"x{k}" for k in range(circuit.inputs)]
    outputs = [f"y{k}" for k in range(len(circuit.outputs))]
    comment = "\n".join(["A logic gate network made by gatelight", *class_lines(circuit)])
    # The two formats share all that follows the gates.
    binary = to_aiger(aig, inputs, outputs, comment)
    if not ascii:
        return binary
    return _ascii_gates(aig) + binary[len(to_aiger(aig)) :]


def _ascii_gates(aig: Aig) -> bytes:
    total = aig.inputs + len(aig.ands)
    lines = [f"aag {total} {aig.inputs} 0 {len(aig.outputs)} {len(aig.ands)}"]
    lines += [str(2 * k) for k in range(1, aig.inputs + 1)]
    lines += [str(literal) for literal in aig.outputs.tolist()]
    lines += [f"{2 * (aig.inputs + 1 + k)} {first} {second}" for k, (first, second) in enumerate(aig.ands.tolist())]
    return ("\n".join(lines) + "\n").encode()


def _files(circuit: Circuit, name: str, ascii: bool = False) -> dict[str, bytes]:
    return {f"{name}.{'aag' if ascii else 'aig'}": aiger(circuit, ascii=ascii)}


FORMAT = Format(
    "aiger",
    "AIGER",
    "and-inverter graph of the gates before the sums",
    ".aig",
    aiger,
    _files,
    (Option("ascii", False, "text instead of binary"),),
)
