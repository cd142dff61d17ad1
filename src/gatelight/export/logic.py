"""Gates as expressions of ``~ & ^ |``, which C and Verilog write the same way.

>>> expression(0b0110, 2).format("a", "b")
'(a ^ b)'
>>> expression(0b11101000, 3).format("a", "b", "c")          # majority
'((a & (b | c)) | (b & c))'
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from gatelight.circuit import Circuit
from gatelight.truthtable import cofactors

#: A function found: its number of operations and its text with operands as {0}, {1}, ...
_Found: TypeAlias = tuple[int, str]

#: Up to this arity every order of splitting is tried; above it the first useful one is taken.
_EXHAUSTIVE_ARITY = 4


class Gate(NamedTuple):
    """A gate that some output needs. It reads each net once, and only nets that matter.

    Attributes:
        net: The net it drives.
        table: Its packed table, over ``operands``.
        operands: The nets it reads, first one most significant; none for a constant.
    """

    net: int
    table: int
    operands: tuple[int, ...]

    @property
    def text(self) -> str:
        """The expression with operands as {0}, {1}, ...; "0" or "1" for a constant."""
        return expression(self.table, len(self.operands))


def live_gates(circuit: Circuit) -> list[Gate]:
    """The gates that outputs depend on, in order, each with as few operands as possible."""
    needed = np.zeros(circuit.inputs + circuit.gates, bool)
    needed[circuit.outputs] = True
    need = needed.tolist()
    fanin, arity, table = circuit.fanin.tolist(), circuit.arity.tolist(), circuit.table.tolist()
    gates = []
    for index in range(circuit.gates - 1, -1, -1):
        net = circuit.inputs + index
        if need[net]:
            least_table, operands = least(table[index], tuple(fanin[index][: arity[index]]))
            gates.append(Gate(net, least_table, operands))
            for operand in operands:
                need[operand] = True
    return gates[::-1]


def least(table: int, operands: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """The same function with repeated operands read once and those that do not matter left out.

    >>> least(0b0110, (7, 7)), least(0b1100, (3, 9))
    ((0, ()), (2, (3,)))
    """
    seen: list[int] = []
    for operand in operands:
        if operand not in seen:
            seen.append(operand)
            continue
        # The operand is already read: keep the entries in which both places agree.
        slot, arity = len(seen), len(operands)
        first = operands.index(operand)
        entries = [
            (table >> _insert(k, arity, slot, k >> (arity - 2 - first) & 1)) & 1 for k in range(1 << (arity - 1))
        ]
        table = sum(bit << k for k, bit in enumerate(entries))
        operands = operands[:slot] + operands[slot + 1 :]
        return least(table, operands)
    for slot in range(len(operands)):
        low, high = cofactors(table, len(operands), slot)
        if high == low:
            return least(low, operands[:slot] + operands[slot + 1 :])
    return table, operands


def _insert(entry: int, arity: int, slot: int, bit: int) -> int:
    """The entry of a table of ``arity`` that has ``bit`` put into ``slot`` of a smaller entry."""
    below = arity - 1 - slot
    return (entry >> below << (below + 1)) | (bit << below) | (entry & ((1 << below) - 1))


@lru_cache(maxsize=1 << 17)
def expression(table: int, arity: int) -> str:
    """A short expression of a packed table, operands as {0}, {1}, ...; "0" or "1" for a constant."""
    return _find(table, arity)[1]


@lru_cache(maxsize=1 << 17)
def _find(table: int, arity: int) -> _Found:
    """The cheapest of the table's own form and the negated form of its complement."""
    full = (1 << (1 << arity)) - 1
    if table in (0, full):
        return 0, "1" if table else "0"
    direct, negated = _split(table, arity), _split(table ^ full, arity)
    return direct if direct[0] <= negated[0] + 1 else (negated[0] + 1, f"~{negated[1]}")


def _split(table: int, arity: int) -> _Found:
    """The cheapest form found by splitting on one operand."""
    if arity == 1:
        return (0, "{0}") if table == 0b10 else (1, "~{0}")
    slots = range(arity)
    if arity > _EXHAUSTIVE_ARITY:
        full = (1 << (1 << (arity - 1))) - 1
        halves = [cofactors(table, arity, slot) for slot in slots]
        easy = [slot for slot, (low, high) in enumerate(halves) if {high, low} & {0, full} or high ^ low in (0, full)]
        slots = range(easy[0], easy[0] + 1) if easy else range(1)
    return min((_split_on(table, arity, slot) for slot in slots), key=lambda found: found[0])


def _split_on(table: int, arity: int, slot: int) -> _Found:
    """``f = s & high | ~s & low`` for operand s, or a shorter form of it if there is one."""
    s, rest = f"{{{slot}}}", [f"{{{k}}}" for k in range(arity) if k != slot]
    full = (1 << (1 << (arity - 1))) - 1
    low_table, high_table = cofactors(table, arity, slot)
    high_cost, high = _find(high_table, arity - 1)
    low_cost, low = _find(low_table, arity - 1)
    high, low = high.format(*rest), low.format(*rest)
    if high_table == low_table:
        return low_cost, low
    if high_table ^ low_table == full:
        if low_table in (0, full):
            return (0, s) if high_table else (1, f"~{s}")
        return low_cost + 1, f"({s} ^ {low})"
    if low_table == 0:
        return high_cost + 1, f"({s} & {high})"
    if high_table == 0:
        return low_cost + 2, f"(~{s} & {low})"
    if high_table == full:
        return low_cost + 1, f"({s} | {low})"
    if low_table == full:
        return high_cost + 2, f"(~{s} | {high})"
    if low_table & ~high_table == 0:
        return high_cost + low_cost + 2, f"(({s} & {high}) | {low})"
    if high_table & ~low_table == 0:
        return high_cost + low_cost + 3, f"((~{s} & {low}) | {high})"
    return high_cost + low_cost + 4, f"(({s} & {high}) | (~{s} & {low}))"
