"""Gates whose table is all zeros or all ones become constants."""

from __future__ import annotations

import numpy as np

from gatelight.circuit.passes.netlist import Index, Netlist
from gatelight.truthtable import ALL


def constants(net: Netlist, gates: Index) -> int:
    """Replace constant gates; the tables of their readers shrink at the next pull."""
    table = net.table[gates]
    which = np.flatnonzero((table == 0) | (table == ALL))
    return net.replace(gates[which], net.false + (table[which] & np.uint64(1)).astype(np.int64)) if len(which) else 0
