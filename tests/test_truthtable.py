import itertools
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gatelight import truthtable as tt

ARITIES = range(1, tt.MAX_ARITY + 1)

PAPER = {
    1: "0000", 2: "0001", 3: "0010", 4: "0011", 5: "0100", 6: "0101", 7: "0110", 8: "0111",
    9: "1000", 10: "1001", 11: "1010", 12: "1011", 13: "1100", 14: "1101", 15: "1110", 16: "1111",
}  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> NDArray[np.uint8]:
    arity = draw(st.integers(1, 6))
    return tt.unpack(draw(st.integers(0, (1 << (1 << arity)) - 1)), arity)


def value(table: NDArray[np.uint8], inputs: tuple[int, ...]) -> int:
    index = 0
    for bit in inputs:
        index = 2 * index + bit
    return int(table[index])


def test_ids_and_names_are_the_papers() -> None:
    for paper_id, bits in PAPER.items():
        table = np.array([int(b) for b in bits], np.uint8)
        assert np.array_equal(tt.from_id(paper_id), table)
        assert tt.to_id(table) == paper_id
        assert np.array_equal(tt.all_tables(2)[paper_id - 1], table)
        assert np.array_equal(tt.from_name(tt.NAMES[paper_id - 1]), table)
    assert [tt.NAMES[i - 1] for i in (2, 4, 6, 7, 8)] == ["and", "a", "b", "xor", "or"]


@pytest.mark.parametrize("name", tt.NAMES)
def test_names_mean_what_they_say(name: str) -> None:
    meanings: dict[str, Callable[[int, int], int]] = {
        "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "a": lambda a, b: a,
        "b": lambda a, b: b, "nand": lambda a, b: 1 - (a & b), "nor": lambda a, b: 1 - (a | b),
        "xnor": lambda a, b: 1 - (a ^ b), "not-a": lambda a, b: 1 - a, "not-b": lambda a, b: 1 - b,
        "a-and-not-b": lambda a, b: a & (1 - b), "b-and-not-a": lambda a, b: b & (1 - a),
        "a-implies-b": lambda a, b: (1 - a) | b, "b-implies-a": lambda a, b: (1 - b) | a,
        "false": lambda a, b: 0, "true": lambda a, b: 1,
    }  # fmt: skip
    table = tt.from_name(name)
    for a, b in itertools.product((0, 1), repeat=2):
        assert value(table, (a, b)) == meanings[name](a, b)


@pytest.mark.parametrize("arity", ARITIES)
def test_every_name_is_found_again(arity: int) -> None:
    for name in tt.names(arity):
        assert tt.name(tt.from_name(name, arity)) == name
    first = tt.from_name("a", arity)
    assert all(value(first, x) == x[0] for x in itertools.product((0, 1), repeat=arity))


@given(tables())
def test_pack_is_the_lut_init_order(table: NDArray[np.uint8]) -> None:
    arity = tt.arity_of(table)
    code = int(tt.pack(table))
    assert all((code >> k) & 1 == table[k] for k in range(len(table)))
    assert np.array_equal(tt.unpack(code, arity), table)
    assert np.array_equal(tt.from_id(tt.to_id(table), arity), table)


@given(tables())
def test_moebius_is_the_polynomial(table: NDArray[np.uint8]) -> None:
    arity = tt.arity_of(table)
    coefficients = tt.moebius(table)
    bits = tt.input_bits(arity)
    for x in bits:
        products = [np.prod([x[i] for i in range(arity) if mask[i]]) for mask in bits]
        assert np.dot(coefficients, products) == value(table, tuple(x))
    assert np.array_equal(tt.inverse_moebius(coefficients), table)


@given(tables())
def test_walsh_is_the_sign_polynomial(table: NDArray[np.uint8]) -> None:
    arity = tt.arity_of(table)
    bits = tt.input_bits(arity).astype(int)
    signs = (-1.0) ** (bits @ bits.T)
    assert np.allclose(signs @ tt.walsh(table), table)
    assert np.allclose(tt.inverse_walsh(tt.walsh(table)), table)


@given(tables(), st.randoms(use_true_random=False))
def test_permute_negate_and_support(table: NDArray[np.uint8], random: Random) -> None:
    arity = tt.arity_of(table)
    order = list(range(arity))
    random.shuffle(order)
    permuted = tt.permute(table, order)
    for x in itertools.product((0, 1), repeat=arity):
        assert value(permuted, tuple(x[i] for i in order)) == value(table, x)
        assert value(tt.negate(table), x) == 1 - value(table, x)
        for i in range(arity):
            flipped = tuple(b ^ (j == i) for j, b in enumerate(x))
            assert value(tt.negate_input(table, i), flipped) == value(table, x)
    depends = [
        any(
            value(table, x) != value(table, tuple(b ^ (j == i) for j, b in enumerate(x)))
            for x in itertools.product((0, 1), repeat=arity)
        )
        for i in range(arity)
    ]
    assert tt.support(table).tolist() == depends


def test_batches_of_tables() -> None:
    every = tt.all_tables(3)
    assert every.shape == (256, 8)
    assert np.array_equal(tt.unpack(tt.pack(every), 3), every)
    assert np.array_equal(tt.inverse_moebius(tt.moebius(every)), every)
    assert np.array_equal(tt.support(every)[37], tt.support(every[37]))
    assert np.array_equal(tt.permute(every, [2, 0, 1])[91], tt.permute(every[91], [2, 0, 1]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tt.check_arity(7), "from 1 to 6, got 7"),
        (lambda: tt.check_arity(True), "whole number"),
        (lambda: tt.arity_of([0, 1, 1]), "got shape"),
        (lambda: tt.from_name("xro"), "did you mean 'xor'"),
        (lambda: tt.from_name("a-and-not-b", 3), "unknown function of 3 inputs"),
        (lambda: tt.from_id(17), "from 1 to 16"),
        (lambda: tt.unpack(16, 2), "4 bits"),
        (lambda: tt.pack([0.5, 1.0]), "round it first"),
        (lambda: tt.permute([0, 1, 1, 1], [0, 0]), "each of 0..1 once"),
        (lambda: tt.negate_input([0, 1, 1, 1], 2), "from 0 to 1"),
        (lambda: tt.all_tables(5), "from 1 to 4"),
        (lambda: tt.to_id([[0, 1], [1, 1]]), "one table"),
    ],
)
def test_bad_input(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("arity", range(1, 7))
def test_cofactors_are_the_halves_of_a_table(arity: int) -> None:
    tables = np.random.default_rng(arity).integers(0, 2, (50, 1 << arity), np.uint8)
    codes = tt.pack(tables)
    for index in range(arity):
        cube = tables.reshape(50, 1 << index, 2, -1)
        for half, got in enumerate(tt.cofactors(codes, arity, index)):
            wanted = cube[:, :, half].reshape(50, -1)
            weights = np.uint64(1) << np.arange(wanted.shape[1], dtype=np.uint64)
            np.testing.assert_array_equal(got, (wanted * weights).sum(1, dtype=np.uint64))
            assert got.dtype == np.uint64
            assert [tt.cofactors(int(code), arity, index)[half] for code in codes] == got.tolist()


def test_positions_of_tables_of_64_entries() -> None:
    tables = np.random.default_rng(0).integers(0, 2, (50, 64), np.uint8)
    codes = tt.pack(tables)
    for position in range(6):
        index = 5 - position
        np.testing.assert_array_equal(tt.unpack(tt.negate_position(codes, position), 6), tt.negate_input(tables, index))
        low, high = (tt.unpack(code, 6) for code in tt.fix_position(codes, position))
        ones = tt.input_bits(6)[:, index] == 1
        np.testing.assert_array_equal(np.where(ones, high, low), tables)
        assert not tt.support(low)[:, index].any()
        assert not tt.support(high)[:, index].any()
        for other in range(position + 1, 6):
            order = list(range(6))
            order[index], order[5 - other] = order[5 - other], order[index]
            np.testing.assert_array_equal(
                tt.unpack(tt.swap_positions(codes, position, other), 6), tt.permute(tables, order)
            )
