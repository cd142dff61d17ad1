"""Structural hashing: gates that read the same nets through the same table are one gate."""

from __future__ import annotations

import numpy as np

from gatelight.circuit.passes.netlist import Index, Netlist

_MIX = np.uint64(0x9E3779B97F4A7C15)


def hashing(net: Netlist, gates: Index) -> int:
    """Replace each gate by the first one of its level that equals it up to input order and output negation."""
    net.order_positions(gates, by_net=True)
    if len(gates) == 1:
        return 0
    table = net.table[gates]
    negated = table & np.uint64(1)
    table = table ^ (np.uint64(0) - negated)
    columns = [net.fanin[position, gates] for position in range(net.width)]
    key = table.copy()
    for column in columns:
        key = (key ^ (key >> np.uint64(29)) ^ column.astype(np.uint64)) * _MIX
    order = np.argsort(key ^ (key >> np.uint64(32)))
    # Neighbors are compared in full: a collision of keys may hide a merge, but never makes a wrong one.
    first = np.ones(len(order), bool)
    same = table[order[1:]] == table[order[:-1]]
    for column in columns:
        same &= column[order[1:]] == column[order[:-1]]
    first[1:] = ~same
    starts = np.flatnonzero(first)
    if len(starts) == len(order):
        return 0
    leader = np.empty(len(order), np.int64)
    leader[order] = np.minimum.reduceat(order, starts)[np.cumsum(first) - 1]
    which = np.flatnonzero(leader != np.arange(len(order)))
    leader = leader[which]
    literals = 2 * (net.inputs + gates[leader]) + (negated[which] ^ negated[leader]).astype(np.int64)
    return net.replace(gates[which], literals)
