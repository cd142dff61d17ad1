"""Pass-throughs and inverters vanish into what reads them."""

from __future__ import annotations

import numpy as np

from gatelight.circuit.passes.netlist import ONES, Index, Netlist


def wires(net: Netlist, gates: Index) -> int:
    """Replace each gate that equals one of its fanins, or its negation, by that literal."""
    removed, table = 0, net.table[gates]
    for position in range(net.width):
        ones = ONES[position]
        same, opposite = table == ones, table == ~ones
        which = np.flatnonzero(same | opposite)
        if len(which):
            source = net.fanin[position, gates[which]].astype(np.int64)
            removed += net.replace(gates[which], 2 * source + opposite[which])
    return removed
