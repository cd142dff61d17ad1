"""Where generated C keeps its nets: statements, and a small array whose places are used again and again."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from gatelight.circuit import Circuit
from gatelight.export.logic import Gate

#: An operand of a statement: a net, or the gate whose expression stands in its place.
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


def statements(circuit: Circuit, gates: list[Gate]) -> list[Statement]:
    """One statement for each gate, less those that are written inside the only gate that reads them."""
    reads: dict[int, int] = {}
    for net in [*circuit.outputs.tolist(), *(operand for gate in gates for operand in gate.operands)]:
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


class Layout(NamedTuple):
    """The place of each net in the array.

    Attributes:
        place: Place of each net that has one.
        size: Places in the array: outputs first, in order, then inputs, then the rest.
        copies: Pairs (to, from) of places, to be copied when all statements are done.
    """

    place: dict[int, int]
    size: int
    copies: list[tuple[int, int]]


def layout(circuit: Circuit, inputs: list[int], body: list[Statement]) -> Layout:
    """Give every net a place; a place is free again after the last statement that reads its net.

    The outputs come to stand side by side at the start. Until the first of them is computed their places serve
    nets that are no longer needed by then.
    """
    outputs = circuit.outputs.tolist()
    leaves = [statement.leaves() for statement in body]
    last = {net: step for step, nets in enumerate(leaves) for net in nets}
    given = set(inputs)
    home: dict[int, int] = {}
    for position, net in enumerate(outputs):
        if net not in given:
            home.setdefault(net, position)
    place = {net: len(outputs) + index for index, net in enumerate(inputs)}
    kept = set(outputs)
    first_output = next((step for step, statement in enumerate(body) if statement.net in home), len(body))
    early = list(range(len(outputs) - 1, -1, -1))
    late = [place[net] for net in inputs if net not in last and net not in kept]
    size = len(outputs) + len(inputs)
    for step, statement in enumerate(body):
        for net in dict.fromkeys(leaves[step]):
            if last[net] == step and net not in kept:
                (early if place[net] < len(outputs) else late).append(place[net])
        net = statement.net
        if net in home:
            place[net] = home[net]
        elif early and last[net] <= first_output:
            place[net] = early.pop()
        elif late:
            place[net] = late.pop()
        else:
            place[net], size = size, size + 1
    copies = [(position, place[net]) for position, net in enumerate(outputs) if place[net] != position]
    return Layout(place, size, copies)
