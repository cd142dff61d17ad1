"""Gates whose table is all zeros or all ones become constants."""

from __future__ import annotations

from gatelight.circuit.passes.netlist import ALL, Index, Netlist


def constants(net: Netlist, gates: Index) -> int:
    """Replace constant gates; the tables of their readers shrink when they pull."""
    table = net.table[gates]
    zeros = net.replace(gates[table == 0], net.false)
    return zeros + net.replace(gates[table == ALL], net.false + 1)
