"""Inputs that a gate does not need are dropped."""

from __future__ import annotations

import numpy as np

from gatelight.circuit.passes.netlist import ONES, Index, Netlist, cofactors


def support(net: Netlist, gates: Index) -> int:
    """Merge inputs of a gate that are the same net, then drop those its table does not depend on."""
    dropped = 0
    for position in range(net.width):
        for other in range(position):
            dropped += _merge(net, gates, position, other)
    for position in range(net.width):
        low, high = cofactors(net.table[gates], position)
        idle = gates[(low == high) & (net.fanin[position, gates] >= 0)]
        net.fanin[position, idle] = -1
        dropped += len(idle)
    return dropped


def _merge(net: Netlist, gates: Index, position: int, other: int) -> int:
    """Read ``other`` at ``position`` too where both hold the same net."""
    column = net.fanin[position]
    same = (column[gates] == net.fanin[other, gates]) & (column[gates] >= 0)
    which = gates[np.flatnonzero(same)]
    if len(which):
        low, high = cofactors(net.table[which], position)
        net.table[which] = (low & ~ONES[other]) | (high & ONES[other])
        column[which] = -1
    return len(which)
