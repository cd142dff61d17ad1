"""Where generated code keeps its nets: an array whose places are reused when their net is no longer needed.

Nothing here knows which language the code is in.

>>> steps = [Step(2, (0, 1)), Step(3, (2, 1)), Step(4, (3, 1))]
>>> allocate([4], [0, 1], steps)
Layout(place={0: 1, 1: 2, 2: 0, 3: 0, 4: 0}, size=3, copies=[])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Step(NamedTuple):
    """One statement: the net that it computes and those that it reads."""

    net: int
    reads: Sequence[int]


class Layout(NamedTuple):
    """The place of each net in the array.

    Attributes:
        place: Place of each net that has one.
        size: Places in the array: outputs first, in order, then inputs, then the rest.
        copies: Pairs (to, from) of places, to be copied after the last step.
    """

    place: dict[int, int]
    size: int
    copies: list[tuple[int, int]]


def allocate(outputs: Sequence[int], inputs: Sequence[int], steps: Sequence[Step]) -> Layout:
    """Give every net a place; a place is free again after the last step that reads its net.

    The outputs end up side by side at the start. Until the first of them is computed, their places hold nets that are
    no longer needed by then.

    Args:
        outputs: The nets that the array must hold at the end, in order; a net may occur more than once.
        inputs: The nets that the array holds at the start, in order.
        steps: The statements in order; each reads inputs and what earlier ones computed.
    """
    last = {net: index for index, step in enumerate(steps) for net in step.reads}
    given = set(inputs)
    home: dict[int, int] = {}
    for position, net in enumerate(outputs):
        if net not in given:
            home.setdefault(net, position)
    place = {net: len(outputs) + index for index, net in enumerate(inputs)}
    kept = set(outputs)
    first_output = next((index for index, step in enumerate(steps) if step.net in home), len(steps))
    early = list(range(len(outputs) - 1, -1, -1))
    late = [place[net] for net in inputs if net not in last and net not in kept]
    size = len(outputs) + len(inputs)
    for index, step in enumerate(steps):
        for net in dict.fromkeys(step.reads):
            if last[net] == index and net not in kept:
                (early if place[net] < len(outputs) else late).append(place[net])
        net = step.net
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
