from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatelight.circuit import Encoder

#: Every float64 that is finite as float32.
WIDE = st.floats(-3.4e38, 3.4e38, allow_nan=False)


@given(value=WIDE, threshold=st.floats(width=32, allow_nan=False))
def test_float64_is_compared_after_rounding_to_float32(value: float, threshold: float) -> None:
    encoder = Encoder(1, np.array([0]), np.array([threshold]), kind="reals")
    wanted = np.float32(value) > np.float32(threshold)
    same = np.array([[value]]).astype(np.float32)
    assert encoder.bits(np.array([[value]]))[0, 0] == wanted
    assert encoder.bits(same)[0, 0] == wanted


def test_rounding_decides() -> None:
    above = 0.1 + 1e-12  # above 0.1 as float64, the same as float32
    assert np.float32(above) == np.float32(0.1)
    assert Encoder(1, np.array([0]), np.array([0.1])).bits(np.array([[above]]))[0, 0] == 0


def test_uint8_is_a_fraction_of_255() -> None:
    levels = np.arange(256, dtype=np.uint8)[:, None]
    thresholds = np.arange(256, dtype=np.float32) / np.float32(255)
    encoder = Encoder(1, np.zeros(256, np.int32), thresholds)
    bits = encoder.bits(levels)
    assert np.array_equal(bits, np.arange(256)[:, None] > np.arange(256)[None])
    assert np.array_equal(encoder.values(levels), levels.astype(np.float32) / np.float32(255))


def test_infinite_thresholds_give_constant_bits() -> None:
    encoder = Encoder(1, np.array([0, 0]), np.array([-np.inf, np.inf]))
    assert encoder.bits(np.array([[0.0], [1.0]])).tolist() == [[1, 0], [1, 0]]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((2, 5)), r"shape \[batch, 6\], \[batch, 1, 2, 3\] or \[batch, 2, 3\], got \(2, 5\)$"),
        (np.zeros(6), r"got \(6,\); one sample needs the batch axis too, as in x\[None\]"),
        (np.zeros((2, 3, 2, 1)), "shape"),
        (np.zeros((2, 6), complex), "must hold numbers, got dtype complex128"),
        (np.array([["a"] * 6]), "must hold numbers"),
    ],
)
def test_bad_features_are_refused(x: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Encoder(6, np.array([5]), np.array([0.5]), (1, 2, 3)).bits(x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_is_refused_by_place(dtype: type[np.floating[Any]]) -> None:
    x = np.zeros((3, 6), dtype)
    x[1, 4] = np.nan
    with pytest.raises(ValueError, match="sample 1, feature 4"):
        Encoder(6, np.array([5]), np.array([0.5])).bits(x)


def test_any_strides_and_empty_batches() -> None:
    encoder = Encoder(6, np.array([5, 0, 3]), np.array([0.5, 0.5, 0.2]), (1, 2, 3))
    x = np.random.default_rng(0).random((8, 6))
    wanted = encoder.bits(x)
    assert np.array_equal(encoder.bits(np.asfortranarray(x)), wanted)
    assert np.array_equal(encoder.bits(np.repeat(x, 2, 1)[:, ::2]), wanted)
    assert np.array_equal(encoder.bits(x[::-1]), wanted[::-1])
    assert np.array_equal(encoder.bits(x.reshape(8, 1, 2, 3)), wanted)
    assert encoder.bits(x[:0]).shape == (0, 3)
    assert encoder.bits(x[:0].reshape(0, 1, 2, 3)).shape == (0, 3)
