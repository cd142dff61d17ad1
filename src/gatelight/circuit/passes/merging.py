"""Simulation-guided merging: nets that agree on random inputs and are proved equal become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from gatelight.circuit.evaluate import simulate, words_per_block
from gatelight.circuit.ir import Circuit
from gatelight.circuit.passes.netlist import Index, Netlist
from gatelight.circuit.proof.aig import FALSE, Builder
from gatelight.circuit.proof.prover import compare

#: Takes a circuit and pairs of literals that may be equal, [pairs, 2], and says which are proved equal, bool [pairs].
Judge = Callable[[Circuit, Index], NDArray[np.bool_]]

_ROUNDS = 16
_WORDS = 8
_WORDS_AT_ONCE = 1 << 16
_MAX_LEAVES = 10
_SLACK = 6
_PROOF_SECONDS = 60
_MAX_CONE = 64
_MIX = np.uint64(0x9E3779B97F4A7C15)


def merge(net: Netlist, judge: Judge, seed: int = 0) -> int:
    """Replace each net by the earliest one that the judge finds equal to it or its negation; how many."""
    circuit = net.gates_alone()
    pairs = candidates(circuit, seed)
    if len(pairs) == 0:
        return 0
    sure = pairs[judge(circuit, pairs)]
    member, leader = sure.T
    gates = (member >> 1) - net.inputs
    net.replace(gates, leader ^ (member & 1))
    net.sweep({})
    return len(gates)


def candidates(circuit: Circuit, seed: int = 0) -> Index:
    """Pairs of literals (member, leader) that agree on a thousand random vectors, int64 [pairs, 2].

    The leader is the first net of its kind, or the constant false, literal ``2 * (inputs + gates)``.
    """
    rng = np.random.default_rng(seed)
    nets = circuit.inputs + circuit.gates
    signature = np.zeros(nets + 1, np.uint64)
    turned = np.zeros(nets + 1, np.int64)
    for start in range(0, _ROUNDS, step := _rounds_at_once(circuit)):
        rounds = range(start, min(start + step, _ROUNDS))
        drawn = [rng.integers(0, 2**64, (circuit.inputs, _WORDS), dtype=np.uint64) for _ in rounds]
        words = np.zeros((nets + 1, len(rounds) * _WORDS), np.uint64)
        words[:-1] = simulate(circuit, np.concatenate(drawn, 1))
        if start == 0:
            turned = (words[:, 0] & np.uint64(1)).astype(np.int64)
        words ^= (np.uint64(0) - turned.astype(np.uint64))[:, None]
        for column in words.T:
            signature = (signature ^ (signature >> np.uint64(29)) ^ column) * _MIX
    # The constant comes first, then inputs and gates in order, so that a leader never reads its members.
    order = np.roll(np.arange(nets + 1), 1)
    order = order[np.argsort(signature[order], kind="stable")]
    first = np.ones(nets + 1, bool)
    first[1:] = signature[order[1:]] != signature[order[:-1]]
    leader = order[np.flatnonzero(first)][np.cumsum(first) - 1]
    which = np.flatnonzero((leader != order) & (order >= circuit.inputs) & (order < nets))
    pairs = np.stack([2 * order[which] + turned[order[which]], 2 * leader[which] + turned[leader[which]]], 1)
    return pairs[np.argsort(pairs[:, 0])]


def _rounds_at_once(circuit: Circuit) -> int:
    """How many rounds to simulate together: more in deep circuits, whose narrow levels cost mostly calls."""
    by_level = circuit.gates // max(1, int(circuit.levels.max(initial=0)))
    words = min(_WORDS_AT_ONCE // max(1, by_level), words_per_block(circuit))
    return max(1, min(_ROUNDS, words // _WORDS))


def by_cones(circuit: Circuit, pairs: Index) -> NDArray[np.bool_]:
    """Check pairs on all values of a small cut below both nets; False if no small cut decides."""
    checker = _Cones(circuit)
    return np.array([checker.same(member, leader) for member, leader in pairs.tolist()], bool)


def by_prover(circuit: Circuit, pairs: Index) -> NDArray[np.bool_]:
    """Check pairs by :func:`by_cones`, and those it cannot decide by formal proof."""
    sure = by_cones(circuit, pairs)
    builder = Builder(circuit.inputs)
    nets = np.append(builder.add(circuit), FALSE)
    literals = nets[pairs >> 1] ^ (pairs & 1)

    def settle(which: Index) -> None:
        left, right = (builder.finish(literals[which, side]) for side in (0, 1))
        if compare(left, right, seconds=_PROOF_SECONDS).equal:
            sure[which] = True
        elif len(which) > 1:
            settle(which[: len(which) // 2])
            settle(which[len(which) // 2 :])

    settle(np.flatnonzero(~sure))
    return sure


class _Cones:
    """Evaluates the gates between a cut and two nets on all values of the cut, held in whole numbers as bits.

    Every equality found helps later checks, which read the leader instead of the member. So a class whose
    members lie on one long path is decided in one pass, each member by the few gates that are left below it.
    Pairs not proved this way are checked again on the original circuit, where the cut may be better.
    """

    def __init__(self, circuit: Circuit) -> None:
        self.fanin = [row[:arity] for row, arity in zip(circuit.fanin.tolist(), circuit.arity.tolist(), strict=True)]
        self.table = circuit.table.tolist()
        self.inputs = circuit.inputs
        self.false = 2 * (circuit.inputs + circuit.gates)
        self.own = range(0, self.false + 2, 2)
        #: The literal to read instead of each net.
        self.literal = list(self.own)

    def same(self, member: int, leader: int) -> bool:
        """Whether two literals are equal as functions of the deepest small cut found below them."""
        inside, cut, depth = self._cone(member, leader, self.literal)
        if not self._equal_above(cut, inside[:depth], member, leader, self.literal):
            if not any(self.literal[net] != 2 * net for top in inside for net in self.fanin[top - self.inputs]):
                return False
            inside, cut, depth = self._cone(member, leader, self.own)
            if not self._equal_above(cut, inside[:depth], member, leader, self.own):
                return False
        if leader >> 1 < member >> 1 or leader >= self.false:
            self.literal[member >> 1] = self.literal[leader >> 1] ^ (leader & 1) ^ (member & 1)
        return True

    def _cone(self, member: int, leader: int, read: Sequence[int]) -> tuple[list[int], list[int], int]:
        """The gates below two literals, from the top, the deepest small cut, and how many gates are above that."""
        leaves = {literal >> 1 for literal in (member, leader) if literal < self.false}
        inside: list[int] = []
        cut, depth = leaves, 0
        while len(inside) < _MAX_CONE and len(leaves) <= _MAX_LEAVES + _SLACK:
            top = max(leaves, default=-1)
            if top < self.inputs:
                break
            leaves = (leaves - {top}).union(read[net] >> 1 for net in self.fanin[top - self.inputs])
            leaves.discard(self.false >> 1)
            inside.append(top)
            if len(leaves) <= _MAX_LEAVES:
                cut, depth = leaves, len(inside)
        return inside, sorted(cut), depth

    def _equal_above(self, cut: list[int], inside: list[int], member: int, leader: int, read: Sequence[int]) -> bool:
        size = 1 << len(cut)
        ones = (1 << size) - 1
        # Variable p over all values: runs of 2**p zeros and as many ones, from the lowest bit.
        value = {net: ones // ((1 << (1 << p)) + 1) << (1 << p) for p, net in enumerate(cut)}
        value[self.false >> 1] = 0
        for net in reversed(inside):
            gate = net - self.inputs
            row = [ones if self.table[gate] >> entry & 1 else 0 for entry in range(1 << len(self.fanin[gate]))]
            for source in reversed(self.fanin[gate]):
                literal = read[source]
                chosen = value[literal >> 1] ^ (ones if literal & 1 else 0)
                row = [low ^ ((low ^ high) & chosen) for low, high in zip(row[::2], row[1::2], strict=True)]
            value[net] = row[0]
        first, second = (value[literal >> 1] ^ (ones if literal & 1 else 0) for literal in (member, leader))
        return first == second
