"""Mapping: a gate absorbs the gates that only it reads, as long as it has no more than k inputs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gatelight.circuit.evaluate import apply_tables
from gatelight.circuit.ir import Circuit
from gatelight.circuit.passes.netlist import Index, Netlist, Tables
from gatelight.circuit.passes.outputs import settle_outputs
from gatelight.circuit.passes.simplify import LOCAL, run_rounds
from gatelight.truthtable import MAX_ARITY, ONES, fix_position


def map_to_arity(circuit: Circuit, k: int) -> Circuit:
    """An equal circuit with fewer, larger gates of up to ``k`` inputs, for LUTs of an FPGA.

    The outputs and their order stay the same.

    >>> from gatelight.circuit.random import layered_circuit
    >>> circuit = layered_circuit(16, (32, 32, 20)).simplify()
    >>> circuit.gates, map_to_arity(circuit, 6).gates
    (29, 17)
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 2 <= k <= MAX_ARITY:
        raise ValueError(f"k must be a whole number from 2 to {MAX_ARITY}, got {k!r}")
    if circuit.arity.max(initial=0) > k:
        raise ValueError(f"mapping to {k} inputs needs gates of at most {k}, got arity {circuit.arity.max()}")
    net = Netlist(circuit, width=int(k))
    while True:
        run_rounds(net, LOCAL)
        if not _absorb_all(net):
            break
    settle_outputs(net)
    return net.to_circuit()


def _absorb_all(net: Netlist) -> int:
    """Let every gate absorb what it can, inputs first; return how many gates were absorbed."""
    read = np.concatenate([net.fanin[net.fanin >= 0], net.outputs >> 1, net.outputs >> 1])
    # Outputs count twice: a gate that is an output must stay, even if only one gate reads it.
    fanout = np.bincount(read, minlength=net.inputs + net.gates + 1)
    absorbed = np.zeros(net.gates, bool)
    for gates in net.by_level():
        _absorb_level(net, gates, fanout, absorbed)
    net.keep(~absorbed)
    return int(absorbed.sum())


def _absorb_level(net: Netlist, gates: Index, fanout: Index, absorbed: NDArray[np.bool_]) -> None:
    """Let the gates of one level absorb what they can."""
    costs = _costs(net, gates, fanout)
    # The cheapest first: after each success the gates start again with what costs no further input.
    while (growth := int(costs.min())) < net.width:
        for position in range(net.width):
            which = np.flatnonzero(costs[position] == growth)
            if len(which):
                _absorb(net, gates[which], position, fanout, absorbed)
                costs[:, which] = _costs(net, gates[which], fanout)


def _costs(net: Netlist, gates: Index, fanout: Index) -> Index:
    """How many more inputs it takes to absorb each fanin, int64 [width, gates]; the width if that is impossible."""
    source = net.fanin[:, gates]
    costs = np.full(source.shape, net.width)
    position, which = np.nonzero((source >= net.inputs) & (fanout[source] == 1))
    if len(which):
        outer, other, known = _inputs(net, gates[which], position)
        fresh = ((other >= 0) & ~known.any(1)).sum(0)
        fits = (outer >= 0).sum(0) + fresh <= net.width
        costs[position[fits], which[fits]] = np.maximum(fresh[fits], 1) - 1
    return costs


def _inputs(
    net: Netlist, gates: Index, position: Index | int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """What gates read at other positions, what the fanin at ``position`` reads, and which nets are in both.

    Returns:
        The nets of the outer and of the inner gates, int32 [width, gates], and where they are the same, bool
        [inner position, outer position, gate].
    """
    columns = np.arange(len(gates))
    outer = net.fanin[:, gates]
    other = net.fanin[:, outer[position, columns] - net.inputs]
    outer[position, columns] = -1
    return outer, other, (other[:, None] == outer[None]) & (other >= 0)[:, None]


def _absorb(net: Netlist, gates: Index, position: int, fanout: Index, absorbed: NDArray[np.bool_]) -> None:
    """Absorb the fanins of gates at one position."""
    inner = net.fanin[position, gates] - net.inputs
    outer, other, known = _inputs(net, gates, position)
    shared = known.any(1)
    operands = _place(outer, other, known, (other >= 0) & ~shared)
    chosen = apply_tables(net.table[inner], operands[::-1])[:, 0]
    low, high = fix_position(net.table[gates], position)
    # An input that both read now has one reader less.
    np.subtract.at(fanout, other[shared], 1)
    net.table[gates] = (low & ~chosen) | (high & chosen)
    net.fanin[:, gates] = outer
    net.changed[gates] = True
    absorbed[inner] = True


def _place(
    outer: NDArray[np.int32], other: NDArray[np.int32], known: NDArray[np.bool_], fresh: NDArray[np.bool_]
) -> list[Tables]:
    """Give the inner gate's inputs positions in the outer one, writing new ones there; what each reads as words."""
    operands = []
    columns = np.arange(outer.shape[1])
    for position in range(len(other)):
        slot = known[position].argmax(0)
        new = fresh[position]
        slot[new] = (outer[:, new] < 0).argmax(0)
        outer[slot[new], columns[new]] = other[position, new]
        operands.append(ONES[slot][:, None])
    return operands
