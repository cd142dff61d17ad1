"""Circuits in the Berkeley logic interchange format, one ``.names`` for each gate.

>>> from gatelight.circuit import Circuit
>>> xor = Circuit(
...     inputs=2, fanin=[[0, 1]], arity=[2], table=[0b0110], outputs=[2], group_start=[0, 1], bias=[0],
...     temperature=1.0, features=2, encoder_feature=[0, 1], encoder_threshold=[0.5, 0.5],
... )
>>> print(blif(xor))
# A logic gate network made by gatelight
# class 0: outputs 0 to before 1, bias 0
.model net
.inputs x0 x1
.outputs y0
.names x0 x1 n2
01 1
10 1
.names n2 y0
1 1
.end
<BLANKLINE>
"""

from __future__ import annotations

from collections.abc import Sequence

from gatelight.circuit import Circuit
from gatelight.export.format import Format
from gatelight.export.logic import Gate, live_gates
from gatelight.export.names import check_identifier, class_lines

_WORDS_PER_LINE = 12


def blif(circuit: Circuit, name: str = "net") -> str:
    """The circuit's outputs, which come before the group sums.

    Inputs are named ``x0``, ``x1``, ...; outputs ``y0``, ``y1``, .... Gates that no output needs are left out.

    Args:
        circuit: The circuit.
        name: Name of the model.
    """
    check_identifier(name)
    names = {net: f"x{net}" for net in range(circuit.inputs)}
    inputs = list(names.values())
    outputs = [f"y{index}" for index in range(len(circuit.outputs))]
    lines = ["# A logic gate network made by gatelight", *(f"# {line}" for line in class_lines(circuit))]
    lines += [f".model {name}", _words(".inputs", inputs), _words(".outputs", outputs)]
    for gate in live_gates(circuit):
        names[gate.net] = f"n{gate.net}"
        lines.append(" ".join([".names", *(names[net] for net in gate.operands), names[gate.net]]))
        lines += _cover(gate)
    for output, net in zip(outputs, circuit.outputs.tolist(), strict=True):
        lines += [f".names {names[net]} {output}", "1 1"]
    return "\n".join([*lines, ".end", ""])


def _cover(gate: Gate) -> list[str]:
    """The entries that are one, or those that are zero if they are fewer."""
    arity = len(gate.operands)
    if arity == 0:
        return ["1"] if gate.table else []
    entries = range(1 << arity)
    ones = [entry for entry in entries if gate.table >> entry & 1]
    if 2 * len(ones) <= len(entries):
        return [f"{entry:0{arity}b} 1" for entry in ones]
    return [f"{entry:0{arity}b} 0" for entry in entries if not gate.table >> entry & 1]


def _words(keyword: str, words: Sequence[str]) -> str:
    """A line of words, continued if it is long."""
    rows = [" ".join(words[at : at + _WORDS_PER_LINE]) for at in range(0, len(words), _WORDS_PER_LINE)]
    return " \\\n ".join([f"{keyword} {rows[0]}", *rows[1:]]) if rows else keyword


def _files(circuit: Circuit, name: str) -> dict[str, bytes]:
    return {f"{name}.blif": blif(circuit, name).encode()}


FORMAT = Format("blif", "BLIF", "the gates before the sums, as tables", ".blif", blif, _files)
