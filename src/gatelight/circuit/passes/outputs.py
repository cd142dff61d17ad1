"""Outputs: constant ones are counted in the bias, negated ones get an inverter."""

from __future__ import annotations

import numpy as np

from gatelight.circuit.passes.netlist import Index, Netlist, Tables
from gatelight.truthtable import ALL, ONES, negate_position


def fold_outputs(net: Netlist) -> int:
    """Drop constant outputs and return how many; the ones among them are added to their class's bias."""
    constant = net.outputs >= net.false
    net.folded[net.origin[constant]] = net.outputs[constant] & 1
    net.outputs, net.origin = net.outputs[~constant], net.origin[~constant]
    return int(constant.sum())


def settle_outputs(net: Netlist) -> int:
    """Make every output a plain net again and return how many gates were added.

    A gate that outputs read only negated is negated itself, and so are its readers' inputs. The rest,
    negated inputs and nets that are outputs both negated and not, get one inverter each. Constants that were not
    folded get a gate without inputs.
    """
    _negate_gates(net)
    constants = np.unique(net.outputs[net.outputs >= net.false])
    negated = np.unique(net.outputs[(net.outputs < net.false) & (net.outputs & 1 == 1)])
    wanted = np.concatenate([negated, constants])
    fanin = np.where(wanted < net.false, wanted >> 1, -1)
    table = np.where(wanted < net.false, ~ONES[0], np.where(wanted & 1 == 1, ALL, np.uint64(0)))
    _redirect(net, wanted, fanin, table)
    return len(wanted)


def _negate_gates(net: Netlist) -> None:
    nets, negated = net.outputs >> 1, net.outputs & 1 == 1
    turn = np.zeros(net.inputs + net.gates + 1, bool)
    turn[nets[negated]] = True
    turn[nets[~negated]] = False
    turn[: net.inputs] = False
    turn[-1] = False
    net.table[turn[net.inputs : -1]] ^= ALL
    for position in range(net.width):
        which = np.flatnonzero(turn[net.fanin[position]])
        net.table[which] = negate_position(net.table[which], position)
    net.outputs ^= turn[nets]


def _redirect(net: Netlist, literals: Index, fanin: Index, table: Tables) -> None:
    """Append one gate for each literal and let the outputs that read the literal read the gate."""
    which = np.flatnonzero(np.isin(net.outputs, literals))
    slot = np.searchsorted(literals, net.outputs[which])
    net.outputs[which] = 0
    net.outputs[which] = 2 * net.append(fanin, table)[slot]
