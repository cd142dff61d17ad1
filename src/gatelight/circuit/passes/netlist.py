"""The form that passes work on: literals instead of nets, and tables of 64 entries.

A *literal* is ``2 * net + negated``; one more net, after the last gate, is the constant false. Passes say "read this
literal instead of that gate" by writing :attr:`Netlist.literal`, and :meth:`Netlist.pull` rewrites the readers.

Tables have 64 entries whatever the arity, repeated over the inputs that a gate does not have. So an input can be
fixed, dropped or renamed without moving the others: *position* p of a gate is bit p of the entry's number, position
0 being the last fanin, and an empty position holds -1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gatelight.circuit.evaluate import levels
from gatelight.circuit.ir import TABLE_MASK, Circuit
from gatelight.truthtable import MAX_ARITY, fix_position, negate_position, swap_positions

Index = NDArray[np.int64]
Tables = NDArray[np.uint64]

#: Rewrites some gates of one level and returns how many gates, or inputs of gates, it removed.
Rule: TypeAlias = "Callable[[Netlist, Index], int]"


class Netlist:
    """A circuit while passes change it: mutable, not validated, made from a circuit and converted back to one.

    Attributes:
        inputs: Number of input bits; they are always kept.
        fanin: Nets by position, int32 [width, gates], -1 where a gate has no input.
        table: Tables of 64 entries, uint64 [gates].
        outputs: Literals of the outputs still summed, int64.
        origin: Which of the circuit's outputs each of them is, int64.
        folded: For each of the circuit's outputs the constant it was folded to, or -1, int8.
        literal: What to read instead of each net, int64 [inputs + gates + 1]; itself if unchanged.
        replaced: Whether that is another literal, bool [inputs + gates + 1].
        changed: Gates that rules must see: their inputs or tables changed in the last sweep or since, bool [gates].
    """

    def __init__(self, circuit: Circuit, width: int = 0) -> None:
        arity = circuit.arity
        self.source = circuit
        self.inputs = circuit.inputs
        self.width = max(1, width, int(arity.max(initial=0)))
        self.fanin = np.full((self.width, circuit.gates), -1, np.int32)
        for position in range(min(self.width, circuit.fanin.shape[1])):
            has = np.flatnonzero(arity > position)
            self.fanin[position, has] = circuit.fanin[has, arity[has] - 1 - position]
        self.table = circuit.table.copy()
        for n in range(MAX_ARITY):
            few = arity <= n
            self.table[few] |= self.table[few] << np.uint64(1 << n)
        self.outputs = 2 * circuit.outputs.astype(np.int64)
        self.origin = np.arange(len(self.outputs))
        self.folded = np.full(len(self.outputs), -1, np.int8)
        self.changed = np.ones(circuit.gates, bool)
        self._read_own()

    def _read_own(self) -> None:
        nets = self.inputs + self.gates + 1
        self.literal = 2 * np.arange(nets, dtype=np.int64)
        self.replaced = np.zeros(nets, bool)

    @property
    def gates(self) -> int:
        """Number of gates."""
        return len(self.table)

    @property
    def false(self) -> int:
        """The literal of the constant false; true is one more."""
        return 2 * (self.inputs + self.gates)

    def by_level(self) -> Iterator[Index]:
        """Gates level by level: each reads only what earlier groups and the inputs hold."""
        if self.gates == 0:
            return
        level = levels(self.inputs, self.fanin.T)[self.inputs :]
        order = np.argsort(level, kind="stable")
        yield from np.split(order, np.flatnonzero(np.diff(level[order])) + 1)

    def pull(self, gates: Index) -> None:
        """Let gates read the literals that replace their fanins: negations and constants go into the tables."""
        before = self.fanin[:, gates]
        moved = self.replaced[before]
        if not moved.any():
            return
        for position in np.flatnonzero(moved.any(1)).tolist():
            which, after = gates[moved[position]], self.literal[before[position, moved[position]]]
            self.changed[which] = True
            constant = after >= self.false
            self.fanin[position, which] = np.where(constant, -1, after >> 1)
            negated = (after & 1) == 1
            table = self.table[which]
            low, high = fix_position(table, position)
            fixed = np.where(negated, high, low)
            turned = np.where(negated, negate_position(table, position), table)
            self.table[which] = np.where(constant, fixed, turned)

    def drop(self, positions: Index | int, gates: Index) -> None:
        """Mark positions of gates as empty; their tables must not depend on them."""
        self.fanin[positions, gates] = -1
        self.changed[gates] = True

    def replace(self, gates: Index, literals: Index | int) -> int:
        """Have every reader of ``gates`` read ``literals`` instead, from the next pull on; return how many."""
        self.literal[self.inputs + gates] = literals
        self.replaced[self.inputs + gates] = True
        return len(gates)

    def unreplaced(self, gates: Index) -> Index:
        """Those of ``gates`` that nothing replaces so far."""
        return np.asarray(gates[~self.replaced[self.inputs + gates]])

    def sweep(self, rules: Mapping[str, Rule]) -> dict[str, int]:
        """Apply rules to the gates, level by level, each after its fanins have been rewritten.

        Rules skip a level in which no gate is :attr:`changed`. A gate that changes here is
        seen once more by the next sweep, since it may move to a level where another one equals it. All sweeps
        must use the same rules.

        Returns:
            What each rule says it removed.
        """
        removed = dict.fromkeys(rules, 0)
        waiting = self.changed
        if rules:
            self.changed = np.zeros(self.gates, bool)
        for gates in self.by_level():
            self.pull(gates)
            if rules and (waiting[gates].any() or self.changed[gates].any()):
                self._apply(rules, gates, removed)
        self.outputs = self.literal[self.outputs >> 1] ^ (self.outputs & 1)
        self.keep(~self.replaced[self.inputs : -1])
        return removed

    def _apply(self, rules: Mapping[str, Rule], gates: Index, removed: dict[str, int]) -> None:
        for name, rule in rules.items():
            count = rule(self, gates)
            removed[name] += count
            gates = self.unreplaced(gates) if count else gates
            if len(gates) == 0:
                return

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Remove the other gates, which nothing may read anymore, and renumber the nets."""
        old_false = self.false
        number = np.full(self.inputs + self.gates + 1, -1, np.int64)
        number[: self.inputs] = np.arange(self.inputs)
        number[self.inputs : -1][kept] = np.arange(self.inputs, self.inputs + int(kept.sum()))
        fanin = self.fanin[:, kept]
        self.fanin = np.where(fanin < 0, -1, number[fanin]).astype(np.int32)
        self.table = self.table[kept]
        self.changed = self.changed[kept]
        number[old_false >> 1] = self.false >> 1
        self.outputs = 2 * number[self.outputs >> 1] + (self.outputs & 1)
        self._read_own()

    def append(self, fanin: Index, table: Tables) -> Index:
        """Add gates with one fanin (or none, -1) at position 0 and return their nets."""
        columns = np.full((self.width, len(fanin)), -1, np.int32)
        columns[0] = fanin
        constant = self.outputs >= self.false
        self.fanin = np.concatenate([self.fanin, columns], 1)
        self.table = np.concatenate([self.table, table])
        self.changed = np.concatenate([self.changed, np.ones(len(fanin), bool)])
        self.outputs[constant] += 2 * len(fanin)
        self._read_own()
        nets = self.inputs + self.gates
        return np.arange(nets - len(fanin), nets)

    def order_positions(self, gates: Index, *, by_net: bool) -> None:
        """Move empty positions to the top and, if ``by_net``, put the smallest net highest among the others."""
        nets = self.fanin[:, gates]
        above = nets[:-1] < nets[1:] if by_net else (nets[:-1] < 0) & (nets[1:] >= 0)
        if not above.any():
            return
        for end in range(self.width - 1, 0, -1):
            for low in range(end):
                first, second = self.fanin[low, gates], self.fanin[low + 1, gates]
                wrong = first < second if by_net else (first < 0) & (second >= 0)
                if not wrong.any():
                    continue
                which = gates[wrong]
                self.fanin[low, which], self.fanin[low + 1, which] = second[wrong], first[wrong]
                self.table[which] = swap_positions(self.table[which], low, low + 1)

    def gates_alone(self) -> Circuit:
        """The gates as a circuit without outputs, nets numbered as here."""
        self.order_positions(np.arange(self.gates), by_net=False)
        arity = (self.fanin >= 0).sum(0).astype(np.uint8)
        width = int(arity.max(initial=0))
        fanin = np.full((self.gates, width), -1, np.int32)
        for slot in range(width):
            has = np.flatnonzero(arity > slot)
            fanin[has, slot] = self.fanin[arity[has] - 1 - slot, has]
        return replace(
            self.source,
            fanin=fanin,
            arity=arity,
            table=self.table & TABLE_MASK[arity],
            outputs=np.zeros(0, np.int32),
            group_start=np.zeros_like(self.source.group_start),
        )

    def to_circuit(self) -> Circuit:
        """The circuit; outputs must be plain nets, which :func:`settle_outputs` ensures."""
        source = self.source
        group = np.repeat(np.arange(source.classes), np.diff(source.group_start))
        counts = np.bincount(group[self.origin], minlength=source.classes)
        ones = np.bincount(group[self.folded == 1], minlength=source.classes)
        return replace(
            self.gates_alone(),
            outputs=(self.outputs >> 1).astype(np.int32),
            group_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
            bias=(source.bias + ones).astype(np.int32),
        )
