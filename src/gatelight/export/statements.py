"""The gates of a circuit as statements of generated code, some gates in one expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from gatelight.export.logic import Gate

#: An operand of a statement: a net, or the statement that is written instead of it.
Operand: TypeAlias = "int | Statement"

#: How many gates one statement may hold. A gate read by one gate only is written inside it, up to this size.
_MAX_GATES = 8


class Statement(NamedTuple):
    """``net = text``, where the text's places hold operands."""

    net: int
    text: str
    operands: tuple[Operand, ...]

    def leaves(self) -> list[int]:
        """The nets it reads."""
        nets = []
        for operand in self.operands:
            nets += [operand] if isinstance(operand, int) else operand.leaves()
        return nets

    def write(self, name: dict[int, str]) -> str:
        """Its expression with nets by name."""
        return self.text.format(*(name[item] if isinstance(item, int) else item.write(name) for item in self.operands))


def statements(outputs: Sequence[int], gates: Sequence[Gate]) -> list[Statement]:
    """One statement for each gate, except for those that are written inside the only gate that reads them."""
    reads: dict[int, int] = {}
    for net in [*outputs, *(operand for gate in gates for operand in gate.operands)]:
        reads[net] = reads.get(net, 0) + 1
    ready: dict[int, Statement] = {}
    size: dict[int, int] = {}
    for gate in gates:
        text, held = gate.text, 1
        operands: list[Operand] = list(gate.operands)
        for place, net in enumerate(gate.operands):
            inner = ready.get(net)
            if inner is None or reads[net] != 1 or not inner.operands or text.count(f"{{{place}}}") != 1:
                continue
            if held + size[net] <= _MAX_GATES:
                held += size[net]
                operands[place] = ready.pop(net)
        ready[gate.net] = Statement(gate.net, text, tuple(operands))
        size[gate.net] = held
    return list(ready.values())
