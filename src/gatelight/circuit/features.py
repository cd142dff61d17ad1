"""What a circuit takes as input: one rule for the circuit, the engine and everything that calls them.

A circuit knows the *kind* of its features:

======  =========================================  ==========================================================
kind    a feature is                               what is taken
======  =========================================  ==========================================================
bits    0 or 1                                     bool, and any whole or floating numbers that are 0 and 1
bytes   a number from 0 to 1                       uint8 u for u / 255, floats from 0 to 1, bool, other whole
                                                   numbers from 0 to 255 as bytes
reals   a finite number                            bool, whole and floating numbers, all as they are
======  =========================================  ==========================================================

Floats are rounded to float32 and then compared with thresholds. Anything else is a ValueError, never a
guess. :func:`rows` turns what a caller gives into bytes or float32 and reads only the values that it has to convert;
:func:`check` reads all values. The engine checks while it encodes.

>>> rows([[0.25, 1.0]], "bytes", 2)
array([[0.25, 1.  ]], dtype=float32)
>>> check(rows([[0, 2]], "bits", 2), "bits")
Traceback (most recent call last):
ValueError: features must be bits, 0 or 1, got 2 in sample 0, feature 1
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: What a feature may be; the engine knows a kind by its index.
KINDS = ("bits", "bytes", "reals")

#: Features [batch, features]. A byte u means u / 255 if the kind is ``bytes``, else u.
Rows: TypeAlias = NDArray[np.uint8] | NDArray[np.float32]


def check_kind(kind: str) -> str:
    """Return a kind of feature if it is one; raise a ValueError otherwise."""
    if kind not in KINDS:
        raise ValueError(f"feature_kind must be one of {', '.join(KINDS)}, got {kind!r}")
    return kind


def rows(x: ArrayLike, kind: str, count: int, shape: tuple[int, ...] = ()) -> Rows:
    """Features as uint8 or float32 [batch, features], whose values :func:`check` still has to check.

    Args:
        x: An array or nested lists, [batch, features], [batch, *shape], or [batch, h, w] where shape is (1, h, w);
            any strides and byte order.
        kind: What a feature is, one of ``KINDS``.
        count: How many features a sample has.
        shape: () or the shape of one sample.
    """
    given = _array(x)
    if given.dtype.kind not in "biuf":
        raise ValueError(f"features must hold numbers, got dtype {given.dtype}")
    if given.ndim != 2 or given.shape[1] != count:
        _check_shape(given.shape, count, shape)
        # -1 cannot be inferred for an empty batch, so the shape is given in full.
        given = given.reshape(given.shape[0], count)
    if given.dtype == np.uint8:
        return given
    return _CONVERT[kind](given)


def check(given: Rows, kind: str) -> Rows:
    """Return the result of :func:`rows` if its values are of the kind; otherwise a ValueError says what is wrong."""
    if not given.size:
        return given
    if kind == "bits":
        _check_bits(given)
    elif given.dtype != np.uint8:
        low, high = given.min(), given.max()
        # A NaN is neither above nor below anything.
        fine = low >= 0 and high <= 1 if kind == "bytes" else np.isfinite(low) and np.isfinite(high)
        if not fine:
            _refuse_floats(given, kind)
    return given


def numbers(given: Rows, kind: str) -> NDArray[np.float32]:
    """The numbers that checked features mean, float32 [batch, features]."""
    single = given.astype(np.float32, copy=False)
    return single / np.float32(255) if kind == "bytes" and given.dtype == np.uint8 else single


def byte_levels(threshold: NDArray[np.float32], kind: str = "bytes") -> NDArray[np.int16]:
    """The number k for which ``u > k`` says whether byte u exceeds the threshold, int16 [inputs], -1 to 255.

    For code that cannot refuse a byte: if features are bits, every byte other than 0 counts as 1.

    >>> byte_levels(np.array([-1.0, 0.0, 0.5, 1.0], np.float32)).tolist()
    [-1, 0, 127, 255]
    >>> byte_levels(np.array([-1.0, 0.0, 0.5, 1.0], np.float32), "bits").tolist()
    [-1, 0, 0, 255]
    """
    values = numbers(np.arange(256, dtype=np.uint8), kind)
    if kind == "bits":
        values = np.minimum(values, np.float32(1))
    return (np.searchsorted(values, threshold, side="right") - 1).astype(np.int16)


def _array(x: ArrayLike) -> NDArray[Any]:
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise ValueError("features must not be masked, got a masked array with values left out")
    try:
        return np.asarray(x)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        # Lists of unequal lengths, or a tensor that is not in the CPU's memory.
        raise ValueError(f"features must be an array of numbers: {error}") from error


def _check_shape(given: tuple[int, ...], count: int, shape: tuple[int, ...]) -> None:
    wanted: list[tuple[int, ...]] = [(count,)]
    if len(shape) > 1:
        wanted.append(shape)
    if len(shape) == 3 and shape[0] == 1:
        wanted.append(shape[1:])
    if len(given) > 1 and given[1:] in wanted:
        return
    texts = [f"[{', '.join(['batch', *map(str, sample)])}]" for sample in wanted]
    expected = ", ".join(texts[:-1]) + " or " + texts[-1] if len(texts) > 1 else texts[0]
    single = "; one sample needs the batch axis too, as in x[None]" if given in wanted else ""
    raise ValueError(f"features must have shape {expected}, got {given}{single}")


def _to_bits(given: NDArray[Any]) -> Rows:
    if given.dtype.kind == "f" and given.dtype.itemsize <= 4:
        return _to_float32(given)
    # Wider numbers are checked before they are rounded.
    _check_bits(given)
    return given.astype(np.uint8)


def _to_bytes(given: NDArray[Any]) -> Rows:
    if given.dtype.kind == "f":
        return _to_float32(given)
    if given.dtype.kind == "b":
        return np.where(given, np.uint8(255), np.uint8(0))
    if given.size:
        low, high = int(given.min()), int(given.max())
        if low < 0 or high > 255:
            raise ValueError(
                f"features must be whole numbers from 0 to 255 or floats from 0 to 1, "
                f"got {given.dtype} from {low} to {high}"
            )
        if high == 1:
            raise ValueError(
                f"features must clearly be bytes or bits, got {given.dtype} with 1 as the largest value: "
                f"pass uint8 for bytes, bool or float for bits"
            )
    return given.astype(np.uint8)


def _to_reals(given: NDArray[Any]) -> Rows:
    return given.astype(np.uint8) if given.dtype.kind == "b" else _to_float32(given)


_CONVERT = {"bits": _to_bits, "bytes": _to_bytes, "reals": _to_reals}


def _to_float32(given: NDArray[Any]) -> NDArray[np.float32]:
    # A number that does not fit becomes infinite and is refused later.
    with np.errstate(all="ignore"):
        return given.astype(np.float32, copy=False)


def _check_bits(given: NDArray[Any]) -> None:
    wrong = (given != 0) & (given != 1)
    if wrong.any():
        row, column = _first(wrong)
        raise ValueError(f"features must be bits, 0 or 1, got {given[row, column]!s} in sample {row}, feature {column}")


def _refuse_floats(given: Rows, kind: str) -> None:
    missing = np.isnan(given)
    if missing.any():
        row, column = _first(missing)
        raise ValueError(f"features must not be NaN, got one in sample {row}, feature {column}")
    if kind == "reals":
        row, column = _first(~np.isfinite(given))
        raise ValueError(
            f"features must be finite as float32, got {given[row, column]!s} in sample {row}, feature {column}"
        )
    row, column = _first((given < 0) | (given > 1))
    raise ValueError(
        f"features must be from 0 to 1, got values from {given.min()!s} to {given.max()!s}, the first outside "
        f"in sample {row}, feature {column}; scale them as in training (images as 0..255 are uint8)"
    )


def _first(wrong: NDArray[np.bool_]) -> tuple[int, int]:
    row, column = np.unravel_index(int(wrong.argmax()), wrong.shape)
    return int(row), int(column)
