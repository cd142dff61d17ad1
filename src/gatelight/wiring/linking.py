"""An order of gates in which each gate reads first what the gate before it read last.

The kernels of two-input gates keep that row and its gradient in registers, so linked layers run faster. Only the
order of the gates changes: linking renames gates.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Linked(NamedTuple):
    """Connections in linked order.

    Attributes:
        fanin: The connections, [gates, arity].
        order: The old index of the gate at each position, [gates].
        swapped: Whether the first and the last input of the gate at each position are swapped, bool [gates].
    """

    fanin: Tensor
    order: Tensor
    swapped: Tensor


def link(fanin: Tensor) -> Linked:
    """The gates in linked order.

    The first input of nearly every gate is then the last one of the gate before it. Gates are edges between their first
    and last input. Edges that end at the same input are paired, and walks from edge to edge list the gates. A gate that
    is walked from its last input to its first has the two swapped, so its table must change too.

    >>> linked = link(torch.tensor([[0, 1], [2, 3], [2, 1], [3, 0]]))
    >>> linked.fanin.tolist(), linked.order.tolist(), linked.swapped.tolist()
    ([[0, 1], [1, 2], [2, 3], [3, 0]], [0, 2, 1, 3], [False, True, False, False])
    """
    gates, arity = fanin.shape
    if arity == 1:
        order = fanin[:, 0].argsort(stable=True)
        return Linked(fanin[order], order, torch.zeros(gates, dtype=torch.bool))
    inputs, ends = fanin[:, [0, -1]].flatten().sort(stable=True)  # ends 2 j and 2 j + 1 belong to gate j
    nth = torch.arange(2 * gates) - torch.searchsorted(inputs, inputs)
    pairs = ((inputs[1:] == inputs[:-1]) & (nth[:-1] % 2 == 0)).nonzero().flatten()
    partners = torch.full((2 * gates,), -1)
    partners[ends[pairs]], partners[ends[pairs + 1]] = ends[pairs + 1], ends[pairs]
    partner = partners.tolist()
    listed, entered = bytearray(gates), []
    for start in range(gates):
        end = 2 * start
        while end >= 0 and not listed[end // 2]:
            listed[end // 2] = True
            entered.append(end)
            end = partner[end ^ 1]
    walked = torch.tensor(entered)
    order, swapped = walked // 2, walked % 2 == 1
    linked = fanin[order]
    linked[swapped, 0], linked[swapped, -1] = linked[swapped, -1], linked[swapped, 0]
    return Linked(linked, order, swapped)


def is_linked(fanin: Tensor) -> bool:
    """Whether most gates read first what the gate before them read last.

    >>> is_linked(torch.tensor([[0, 1], [1, 2], [2, 3]]))
    True
    """
    if len(fanin) < 2:
        return True
    if fanin.shape[1] == 1:
        return bool((fanin[1:, 0] >= fanin[:-1, 0]).all())
    return 2 * int((fanin[1:, 0] == fanin[:-1, -1]).sum()) > len(fanin) - 1
