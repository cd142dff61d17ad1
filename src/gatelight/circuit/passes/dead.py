"""Removes gates that no output depends on."""

from __future__ import annotations

import numpy as np

from gatelight.circuit.passes.netlist import Netlist


def dead(net: Netlist) -> int:
    """Keep the gates from which a path leads to an output; return how many others there were."""
    before = net.gates
    seen = np.zeros(net.inputs + net.gates + 1, bool)
    seen[net.outputs >> 1] = True
    for gates in reversed(list(net.by_level())):
        # An empty position, -1, marks the last entry, which is not a gate.
        seen[net.fanin[:, gates[seen[net.inputs + gates]]]] = True
    net.keep(seen[net.inputs : -1])
    return before - net.gates
