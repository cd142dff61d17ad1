"""Drops inputs that a gate does not need."""

from __future__ import annotations

import numpy as np

from gatelight.circuit.passes.netlist import Index, Netlist
from gatelight.truthtable import ONES, fix_position

_STEPS = np.uint64(1) << np.arange(len(ONES), dtype=np.uint64)


def support(net: Netlist, gates: Index) -> int:
    """Merge inputs of a gate that are the same net, then drop those its table does not depend on."""
    dropped = _merge_equal(net, gates)
    table, ones, step = net.table[gates], ONES[: net.width, None], _STEPS[: net.width, None]
    # Bit p of an entry's number does not matter if the entries without it equal those with it.
    differs = (table ^ (table >> step)) & ~ones
    position, which = np.nonzero((differs == 0) & (net.fanin[:, gates] >= 0))
    net.drop(position, gates[which])
    return dropped + len(which)


def _merge_equal(net: Netlist, gates: Index) -> int:
    """Make gates that read a net twice read it once; return how many inputs were dropped."""
    nets = np.sort(net.fanin[:, gates], 0)
    twice = ((nets[1:] == nets[:-1]) & (nets[1:] >= 0)).any(0)
    if not twice.any():
        return 0
    gates = gates[twice]
    return sum(_merge(net, gates, position, other) for position in range(net.width) for other in range(position))


def _merge(net: Netlist, gates: Index, position: int, other: int) -> int:
    """Where both hold the same net, drop ``position`` and read only ``other``."""
    column = net.fanin[position, gates]
    which = gates[(column == net.fanin[other, gates]) & (column >= 0)]
    if len(which):
        low, high = fix_position(net.table[which], position)
        net.table[which] = (low & ~ONES[other]) | (high & ONES[other])
        net.drop(position, which)
    return len(which)
