r"""Circuits as and-inverter graphs, and the binary AIGER format for them.

Variable 0 is the constant false, variables 1 .. inputs are the input bits, and each AND gate is the next variable. A
literal is ``2 * variable + negated``, as in AIGER.

>>> from gatelight.circuit.random import random_circuit
>>> aig = to_aig(random_circuit(4, gates=20, outputs=3, seed=1))
>>> to_aiger(aig).split(b"\n")[0]
b'aig 9 4 0 3 5'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gatelight.circuit.evaluate import schedule

if TYPE_CHECKING:
    from gatelight.circuit.ir import Circuit

Literals = NDArray[np.int64]

FALSE, TRUE = 0, 1


@dataclass(frozen=True, eq=False)
class Aig:
    """An and-inverter graph.

    Attributes:
        inputs: Number of inputs.
        ands: The two literals each AND gate reads, larger one first, int64 [ands, 2].
        outputs: Literals, int64 [outputs].
    """

    inputs: int
    ands: Literals
    outputs: Literals


class Builder:
    """Grows a graph whole arrays at a time; equal AND gates are made once.

    Every gate has a key of its two literals, kept in an open-addressed table that is probed for all keys of a call
    at once.
    """

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self._count = 0
        # Room for half as many gates as the table has slots, here and after growing.
        self._ands = np.zeros((2048, 2), np.int64)
        self._keys = np.zeros(4096, np.uint64)
        self._variables = np.zeros(4096, np.int64)

    @property
    def ands(self) -> Literals:
        """The gates so far, int64 [ands, 2]."""
        return self._ands[: self._count]

    def input_literals(self) -> Literals:
        """The literals of the inputs, int64 [inputs]."""
        return 2 * np.arange(1, self.inputs + 1, dtype=np.int64)

    def conjunction(self, a: Literals, b: Literals) -> Literals:
        """``a and b`` for each pair of literals."""
        high, low = np.maximum(a, b), np.minimum(a, b)
        result = np.where((low == FALSE) | (high == low ^ 1), FALSE, np.where(low == TRUE, high, low))
        real = np.flatnonzero((low > TRUE) & (high >> 1 != low >> 1))
        if len(real):
            result[real] = 2 * self._intern(high[real], low[real])
        return result

    def disjunction(self, a: Literals, b: Literals) -> Literals:
        """``a or b`` for each pair of literals."""
        return self.conjunction(a ^ 1, b ^ 1) ^ 1

    def choice(self, select: Literals, high: Literals, low: Literals) -> Literals:
        """``high if select else low`` for each triple of literals, in one AND gate if that is enough."""
        # A choice between negated operands is the negated choice, so the low operand can be made positive.
        turn = low & 1
        high, low = high ^ turn, low ^ turn
        result = low.copy()
        single = (high == FALSE) | (high == TRUE) | (low == FALSE) | (high == select) | (low == select)
        rest = np.flatnonzero((high != low) & ~single)
        easy = np.flatnonzero((high != low) & single)
        s, h, lo = select[easy], high[easy], low[easy]
        # high = 1 or high = select: select or low;  high = 0: not select and low;  otherwise: select and high.
        either = (h == TRUE) | (h == s)
        a = np.where(either, s ^ 1, np.where(h == FALSE, s ^ 1, s))
        b = np.where(either, lo ^ 1, np.where(h == FALSE, lo, h))
        result[easy] = self.conjunction(a, b) ^ either
        s, h, lo = select[rest], high[rest], low[rest]
        result[rest] = self.disjunction(self.conjunction(s, h), self.conjunction(s ^ 1, lo))
        return result ^ turn

    def lookup(self, table: NDArray[np.uint64], operands: Sequence[Literals]) -> Literals:
        """The literals of lookup tables of one arity, by Shannon expansion; first operand most significant."""
        row = [((table >> np.uint64(entry)) & np.uint64(1)).astype(np.int64) for entry in range(1 << len(operands))]
        for operand in reversed(operands):
            row = [self.choice(operand, row[k + 1], row[k]) for k in range(0, len(row), 2)]
        return row[0]

    def add(self, circuit: Circuit, inputs: Literals | None = None) -> Literals:
        """Add a circuit's gates, reading these literals as inputs; the literals of all its nets."""
        nets = np.zeros(circuit.inputs + circuit.gates, np.int64)
        nets[: circuit.inputs] = self.input_literals() if inputs is None else inputs
        for gates, arity in schedule(circuit):
            operands = [nets[circuit.fanin[gates, slot]] for slot in range(arity)]
            nets[circuit.inputs + gates] = self.lookup(circuit.table[gates], operands)
        return nets

    def finish(self, outputs: Literals) -> Aig:
        """The graph of what these literals need, renumbered without gaps."""
        return cone(Aig(self.inputs, self.ands, outputs))

    def _intern(self, high: Literals, low: Literals) -> Literals:
        """The variables of AND gates; missing ones are added."""
        while 2 * (self._count + len(high)) > len(self._keys):
            self._grow()
        keys = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
        slots = self._claim(keys)
        variables = self._variables[slots]
        fresh = np.flatnonzero(variables == 0)
        if len(fresh):
            distinct, first = np.unique(slots[fresh], return_index=True)
            rank = np.empty(len(first), np.int64)
            rank[np.argsort(first)] = np.arange(len(first))
            start, self._count = self._count, self._count + len(distinct)
            chosen = fresh[np.sort(first)]
            self._ands[start : self._count, 0], self._ands[start : self._count, 1] = high[chosen], low[chosen]
            self._variables[distinct] = self.inputs + 1 + start + rank
            variables[fresh] = self._variables[slots[fresh]]
        return variables

    def _claim(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The slot of each key in the table, adding those that are missing."""
        mask = len(self._keys) - 1
        mixed = keys * np.uint64(0x9E3779B97F4A7C15)
        slots = ((mixed >> np.uint64(32)) & np.uint64(mask)).astype(np.int64)
        waiting = np.arange(len(keys))
        while len(waiting):
            here, wanted = slots[waiting], keys[waiting]
            free = self._keys[here] == 0
            # Of several keys that want one free slot the last one written gets it; the others keep looking.
            self._keys[here[free]] = wanted[free]
            waiting = waiting[self._keys[here] != wanted]
            slots[waiting] = (slots[waiting] + 1) & mask
        return slots

    def _grow(self) -> None:
        size = 2 * len(self._keys)
        self._keys, self._variables = np.zeros(size, np.uint64), np.zeros(size, np.int64)
        ands = self.ands
        slots = self._claim((ands[:, 0].astype(np.uint64) << np.uint64(32)) | ands[:, 1].astype(np.uint64))
        self._variables[slots] = self.inputs + 1 + np.arange(len(ands))
        self._ands = np.concatenate([ands, np.zeros((size // 2 - len(ands), 2), np.int64)])


def to_aig(circuit: Circuit) -> Aig:
    """The graph of a circuit's outputs, which come before the group sums."""
    builder = Builder(circuit.inputs)
    return builder.finish(builder.add(circuit)[circuit.outputs])


def cone(aig: Aig) -> Aig:
    """The graph without the gates that no output needs; inputs stay."""
    first = aig.inputs + 1
    needed = np.zeros(first + len(aig.ands), bool)
    needed[aig.outputs >> 1] = True
    frontier = np.unique(aig.outputs >> 1)
    while len(frontier):
        read = (aig.ands[frontier[frontier >= first] - first] >> 1).ravel()
        frontier = np.unique(read[~needed[read]])
        needed[frontier] = True
    needed[:first] = True
    number = np.cumsum(needed) - 1
    ands = aig.ands[needed[first:]]
    return Aig(aig.inputs, _renumber(number, ands), _renumber(number, aig.outputs))


def _renumber(number: Literals, literals: Literals) -> Literals:
    return np.asarray(2 * number[literals >> 1] + (literals & 1))


def to_aiger(aig: Aig, input_names: Sequence[str] = (), output_names: Sequence[str] = (), comment: str = "") -> bytes:
    """The graph in the binary AIGER format, with a symbol table and a comment if they are given."""
    count, total = len(aig.ands), aig.inputs + len(aig.ands)
    head = f"aig {total} {aig.inputs} 0 {len(aig.outputs)} {count}\n"
    lines = "".join(f"{literal}\n" for literal in aig.outputs.tolist())
    left = 2 * np.arange(aig.inputs + 1, total + 1, dtype=np.int64)
    deltas = np.stack([left - aig.ands[:, 0], aig.ands[:, 0] - aig.ands[:, 1]], 1).ravel()
    symbols = "".join(f"i{k} {name}\n" for k, name in enumerate(input_names))
    symbols += "".join(f"o{k} {name}\n" for k, name in enumerate(output_names))
    tail = symbols + (f"c\n{comment}\n" if comment else "")
    return (head + lines).encode() + _to_varints(deltas) + tail.encode()


def from_aiger(data: bytes) -> Aig:
    """Read a graph in the binary AIGER format without latches; a malformed file raises a ValueError."""
    head, _, rest = data.partition(b"\n")
    try:
        total, inputs, latches, outputs, count = (int(word) for word in head.split()[1:6])
    except ValueError as error:
        raise ValueError(f"an AIGER header has five numbers, got {head[:80]!r}") from error
    if not head.startswith(b"aig ") or latches or min(inputs, outputs, count) < 0 or total != inputs + count:
        raise ValueError(f"expected the header of a binary AIGER file without latches, got {head[:80]!r}")
    *lines, rest = rest.split(b"\n", outputs) if outputs else (rest,)
    if len(lines) != outputs or not all(line.isdigit() for line in lines):
        raise ValueError(f"the AIGER file must have {outputs} lines of output literals")
    deltas = _from_varints(rest, 2 * count).reshape(count, 2)
    left = 2 * np.arange(inputs + 1, total + 1, dtype=np.int64)
    ands = np.stack([left - deltas[:, 0], left - deltas.sum(1)], 1)
    literals = np.array([int(line) for line in lines], np.int64)
    if (deltas[:, 0] == 0).any() or (ands < 0).any() or literals.max(initial=0) > 2 * total + 1:
        raise ValueError("the AIGER file has a literal out of range")
    return Aig(inputs, ands, literals)


def _to_varints(values: Literals) -> bytes:
    """Numbers in base 128, least significant digit first, bit 7 saying that more follow."""
    digits = values[:, None] >> (7 * np.arange(5))
    more = digits >> 7 > 0
    used = np.concatenate([np.ones((len(values), 1), bool), more[:, :-1]], 1)
    coded: NDArray[np.uint8] = (digits & 127).astype(np.uint8) | (more.astype(np.uint8) << np.uint8(7))
    return bytes(coded[used])


def _from_varints(data: bytes, count: int) -> Literals:
    raw = np.frombuffer(data, np.uint8)[: 5 * count]
    ends = np.flatnonzero(raw < 128)[:count]
    if len(ends) < count:
        raise ValueError(f"the AIGER file ends early: {count} numbers expected, {len(ends)} found")
    if count == 0:
        return np.zeros(0, np.int64)
    raw = raw[: ends[-1] + 1]
    starts = np.concatenate([[0], ends[:-1] + 1])
    if (ends - starts >= 5).any():
        raise ValueError("the AIGER file has a number of more than five digits")
    place = np.arange(len(raw)) - np.repeat(starts, ends - starts + 1)
    return np.add.reduceat((raw & 127).astype(np.int64) << (7 * place), starts)
