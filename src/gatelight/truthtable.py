"""The algebra of truth tables, for any arity from 1 to 6, in numpy.

A table is an array whose last axis has ``2**arity`` entries. Entry k is the output for the inputs whose bits,
*first input most significant*, are k in binary: for two inputs 00, 01, 10, 11. Leading axes are gates, so every
function here works on one table or on a million.

>>> AND = from_name("and", 2)
>>> AND
array([0, 0, 0, 1], dtype=uint8)
>>> name(negate(AND))
'nand'
>>> moebius(AND)                      # the polynomial 0 + 0 b + 0 a + 1 a b
array([0, 0, 0, 1])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatelight.names import check_name

MAX_ARITY = 6
MAX_ENUMERABLE_ARITY = 4

#: The sixteen functions of two inputs in the order of the paper: entry i has id i + 1.
NAMES = (
    "false", "and", "a-and-not-b", "a", "b-and-not-a", "b", "xor", "or",
    "nor", "xnor", "not-b", "b-implies-a", "not-a", "a-implies-b", "nand", "true",
)  # fmt: skip

_INPUT_NAMES = "abcdef"

#: Entries of a packed table in which position p is one, uint64 [6]; position 0 is the last input.
ONES = np.array([sum(1 << k for k in range(64) if k >> p & 1) for p in range(MAX_ARITY)], np.uint64)
#: The packed table of 64 ones.
ALL = np.uint64(2**64 - 1)

#: Packed tables: an array of them, or one as a Python integer.
_Code = TypeVar("_Code", NDArray[np.uint64], int)


def check_arity(arity: int, most: int = MAX_ARITY) -> int:
    """Return ``arity`` if it is a whole number from 1 to ``most``; raise ValueError otherwise."""
    if isinstance(arity, bool) or not isinstance(arity, int | np.integer) or not 1 <= arity <= most:
        raise ValueError(f"arity must be a whole number from 1 to {most}, got {arity!r}")
    return int(arity)


def arity_of(table: ArrayLike) -> int:
    """The arity n of a table whose last axis has 2**n entries.

    >>> arity_of([0, 1, 1, 0])
    2
    """
    shape = np.shape(table)
    size = shape[-1] if shape else 0
    arity = size.bit_length() - 1
    if size < 2 or size != 1 << arity or arity > MAX_ARITY:
        raise ValueError(f"the last axis of a table has 2, 4, ... or 64 entries, got shape {shape}")
    return arity


def input_bits(arity: int) -> NDArray[np.uint8]:
    """The value of each input in each entry, uint8 [2**arity, arity].

    >>> input_bits(2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    check_arity(arity)
    entry = np.arange(1 << arity)[:, None]
    return ((entry >> np.arange(arity - 1, -1, -1)) & 1).astype(np.uint8)


def all_tables(arity: int) -> NDArray[np.uint8]:
    """Every table of an arity in the order of the paper's ids, uint8 [2**(2**arity), 2**arity].

    >>> all_tables(1).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    check_arity(arity, MAX_ENUMERABLE_ARITY)
    size = 1 << arity
    ids = np.arange(1 << size)[:, None]
    return ((ids >> np.arange(size - 1, -1, -1)) & 1).astype(np.uint8)


def from_id(paper_id: int, arity: int = 2) -> NDArray[np.uint8]:
    """The table with the paper's id, which is 1 + the entries read as a binary number, first entry first.

    >>> from_id(8).tolist()              # OR
    [0, 1, 1, 1]
    """
    size = 1 << check_arity(arity)
    if not 1 <= paper_id <= 1 << size:
        raise ValueError(f"an id for arity {arity} is from 1 to {1 << size}, got {paper_id}")
    return np.array([((paper_id - 1) >> (size - 1 - k)) & 1 for k in range(size)], np.uint8)


def to_id(table: ArrayLike) -> int:
    """The paper's id of one table, the inverse of :func:`from_id`.

    >>> to_id([0, 0, 1, 1])              # the pass-through A
    4
    """
    bits = _binary(table)
    if bits.ndim != 1:
        raise ValueError(f"to_id takes one table, got shape {bits.shape}")
    return 1 + int("".join(map(str, bits.tolist())), 2)


def names(arity: int) -> tuple[str, ...]:
    """The names :func:`from_name` knows for an arity.

    >>> names(1)
    ('false', 'a', 'not-a', 'true')
    """
    if check_arity(arity) == 1:
        return ("false", "a", "not-a", "true")
    if arity == 2:
        return NAMES
    inputs = tuple(_INPUT_NAMES[:arity])
    gates = ("and", "or", "xor", "nand", "nor", "xnor", "majority")
    return ("false", *gates, *inputs, *(f"not-{i}" for i in inputs), "true")


def from_name(function: str, arity: int = 2) -> NDArray[np.uint8]:
    """The table of a named function.

    ``and``, ``or`` and ``xor`` (parity) are of all inputs; ``a`` ... ``f`` pass one input through.

    >>> from_name("xor", 3).tolist()
    [0, 1, 1, 0, 1, 0, 0, 1]
    """
    check_name(f"function of {arity} inputs", function, names(arity))
    if arity == 2:
        return from_id(1 + NAMES.index(function))
    bits = input_bits(arity)
    plain, negated = function, False
    if function.startswith("not-"):
        plain, negated = function.removeprefix("not-"), True
    elif function in ("nand", "nor", "xnor", "true"):
        plain, negated = {"nand": "and", "nor": "or", "xnor": "xor", "true": "false"}[function], True
    count = bits.sum(1)
    table = {
        "false": np.zeros(len(bits), bool),
        "and": count == arity,
        "or": count > 0,
        "xor": count % 2 == 1,
        "majority": 2 * count > arity,
    }.get(plain)
    if table is None:
        table = bits[:, _INPUT_NAMES.index(plain)] == 1
    return np.asarray(table ^ negated, np.uint8)


def name(table: ArrayLike) -> str:
    """The name of one table, or its packed code in hexadecimal if it has none.

    >>> name([0, 1, 1, 0]), name([0, 0, 0, 1, 0, 1, 1, 0])
    ('xor', '0x68')
    """
    bits = _binary(table)
    arity = arity_of(bits)
    if arity == 2:
        return NAMES[to_id(bits) - 1]
    for candidate in names(arity):
        if np.array_equal(from_name(candidate, arity), bits):
            return candidate
    return f"0x{int(pack(bits)):0{max(1, (1 << arity) // 4)}x}"


def pack(table: ArrayLike) -> NDArray[np.uint64]:
    """Tables as integers with entry k at bit k (an FPGA's LUT INIT), uint64 [...].

    >>> int(pack([0, 1, 1, 1]))
    14
    """
    bits = _binary(table).astype(np.uint64)
    weights = np.uint64(1) << np.arange(bits.shape[-1], dtype=np.uint64)
    return np.asarray((bits * weights).sum(-1, dtype=np.uint64))


def unpack(code: ArrayLike, arity: int) -> NDArray[np.uint8]:
    """The inverse of :func:`pack`, uint8 [..., 2**arity].

    >>> unpack(14, 2).tolist()
    [0, 1, 1, 1]
    """
    size = 1 << check_arity(arity)
    codes = np.asarray(code, np.uint64)
    if size < 64 and np.any(codes >> np.uint64(size)):
        raise ValueError(f"a code of arity {arity} has {size} bits, got {int(codes.max()):#x}")
    shifts = np.arange(size, dtype=np.uint64)
    return ((codes[..., None] >> shifts) & np.uint64(1)).astype(np.uint8)


def moebius(table: ArrayLike) -> NDArray[Any]:
    """Coefficients of the multilinear polynomial that equals the table on {0,1}, [..., 2**arity].

    Coefficient k multiplies the product of the inputs whose bits are set in k, so for two inputs
    ``f(a, b) = c[0] + c[1] b + c[2] a + c[3] a b``.

    >>> moebius([0, 1, 1, 1]).tolist()   # a or b = b + a - a b
    [0, 1, 1, -1]
    """
    return _butterfly(table, lambda low, high: (low, high - low))


def inverse_moebius(coefficients: ArrayLike) -> NDArray[Any]:
    """The table of a multilinear polynomial, the inverse of :func:`moebius`.

    >>> inverse_moebius([0, 1, 1, -1]).tolist()
    [0, 1, 1, 1]
    """
    return _butterfly(coefficients, lambda low, high: (low, high + low))


def walsh(table: ArrayLike) -> NDArray[np.float64]:
    """Walsh coefficients: the table as a polynomial in the signs ``(-1)**input``, float64 [..., 2**arity].

    ``f(x) = sum_k w[k] (-1)**(k . x)``, so ``w[k] = 2**-n sum_x f(x) (-1)**(k . x)``.

    >>> walsh([0, 1, 1, 0]).tolist()
    [0.5, 0.0, 0.0, -0.5]
    """
    sums = _butterfly(np.asarray(table, np.float64), lambda low, high: (low + high, low - high))
    return np.asarray(sums / sums.shape[-1], np.float64)


def inverse_walsh(coefficients: ArrayLike) -> NDArray[np.float64]:
    """The table of Walsh coefficients, the inverse of :func:`walsh`.

    >>> inverse_walsh([0.5, 0.0, 0.0, -0.5]).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    return _butterfly(np.asarray(coefficients, np.float64), lambda low, high: (low + high, low - high))


def negate(table: ArrayLike) -> NDArray[Any]:
    """The table of the negated output, 1 - table.

    >>> negate([0, 0, 0, 1]).tolist()
    [1, 1, 1, 0]
    """
    values = np.asarray(table)
    arity_of(values)
    return np.asarray(1 - values, values.dtype)


def negate_input(table: ArrayLike, index: int) -> NDArray[Any]:
    """The table after negating one input.

    >>> name(negate_input(from_name("and"), 1))
    'a-and-not-b'
    """
    values = np.asarray(table)
    arity = arity_of(values)
    _check_input(index, arity)
    return values[..., np.arange(1 << arity) ^ (1 << (arity - 1 - index))]


def permute(table: ArrayLike, order: Sequence[int]) -> NDArray[Any]:
    """The table whose input i is the given table's input ``order[i]``.

    ``g(x[order[0]], x[order[1]], ...) = f(x[0], x[1], ...)`` for the result g of permuting f.

    >>> name(permute(from_name("a-and-not-b"), [1, 0]))
    'b-and-not-a'
    """
    values = np.asarray(table)
    arity = arity_of(values)
    if sorted(order) != list(range(arity)):
        raise ValueError(f"order must hold each of 0..{arity - 1} once, got {list(order)}")
    cube = values.reshape(*values.shape[:-1], *(2,) * arity)
    lead = values.ndim - 1
    axes = (*range(lead), *(lead + i for i in order))
    return np.ascontiguousarray(cube.transpose(axes)).reshape(values.shape)


def swap_ends(table: ArrayLike) -> NDArray[Any]:
    """The table with the first and the last input swapped.

    >>> name(swap_ends(from_name("a")))
    'b'
    """
    order = list(range(arity_of(table)))
    order[0], order[-1] = order[-1], order[0]
    return permute(table, order)


def support(table: ArrayLike) -> NDArray[np.bool_]:
    """Which inputs a table depends on, bool [..., arity].

    >>> support(from_name("a")).tolist()
    [True, False]
    """
    values = np.asarray(table)
    arity = arity_of(values)
    return np.stack([np.any(values != negate_input(values, i), -1) for i in range(arity)], -1)


def cofactors(code: _Code, arity: int, index: int) -> tuple[_Code, _Code]:
    """The packed tables that remain when one input is fixed to zero and to one; each has one input less.

    >>> [bin(half) for half in cofactors(0b0110, 2, 0)]      # a xor b is b, or not b
    ['0b10', '0b1']
    """
    if not 0 <= index < arity <= MAX_ARITY:
        raise ValueError(f"an input of a table of arity 1 to {MAX_ARITY} is needed, got index {index}, arity {arity}")
    block = 1 << (arity - 1 - index)
    mask = (1 << block) - 1
    low: Any = code & mask
    high: Any = (code >> block) & mask
    for half in range(block, 1 << (arity - 1), block):
        low = low | (((code >> (2 * half)) & mask) << half)
        high = high | (((code >> (2 * half + block)) & mask) << half)
    return low, high


def fix_position(code: NDArray[np.uint64], position: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Packed tables of 64 entries after fixing one position to zero and to one; both still have 64 entries.

    A *position* counts inputs from the last one, so that it is bit p of an entry's number whatever the arity.

    >>> [hex(int(fixed)) for fixed in fix_position(ALL & ONES[0], 0)]
    ['0x0', '0xffffffffffffffff']
    """
    ones, step = ONES[position], np.uint64(1 << position)
    low, high = code & ~ones, code & ones
    return low | (low << step), high | (high >> step)


def negate_position(code: NDArray[np.uint64], position: int) -> NDArray[np.uint64]:
    """Packed tables of 64 entries after negating one position.

    >>> bool(negate_position(ONES[3], 3) == ~ONES[3])
    True
    """
    ones, step = ONES[position], np.uint64(1 << position)
    return np.asarray(((code & ones) >> step) | ((code & ~ones) << step))


def swap_positions(code: NDArray[np.uint64], low: int, high: int) -> NDArray[np.uint64]:
    """Packed tables of 64 entries after swapping two positions, ``low < high``.

    >>> bool(swap_positions(ONES[1], 1, 4) == ONES[4])
    True
    """
    step = np.uint64((1 << high) - (1 << low))
    moved = (code ^ (code >> step)) & ONES[low] & ~ONES[high]
    return np.asarray(code ^ moved ^ (moved << step))


def _butterfly(table: ArrayLike, step: Any) -> NDArray[Any]:
    """Apply ``step(low, high)`` along each input's axis in turn."""
    values = np.asarray(table)
    if values.dtype.kind in "bu":
        values = values.astype(np.int64)
    arity = arity_of(values)
    lead = values.shape[:-1]
    for i in range(arity):
        halves = values.reshape(*lead, 1 << i, 2, -1)
        values = np.stack(step(halves[..., 0, :], halves[..., 1, :]), -2).reshape(*lead, 1 << arity)
    return values


def _binary(table: ArrayLike) -> NDArray[np.uint8]:
    values = np.asarray(table)
    arity_of(values)
    if not np.all((values == 0) | (values == 1)):
        raise ValueError("a table to be packed or named holds only 0 and 1; round it first")
    return values.astype(np.uint8)


def _check_input(index: int, arity: int) -> None:
    if not 0 <= index < arity:
        raise ValueError(f"input index must be from 0 to {arity - 1}, got {index}")
