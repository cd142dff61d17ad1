"""Turns a caller's values into read-only arrays of one exact dtype, or says what is wrong with them."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Int = TypeVar("_Int", bound=np.integer[Any])


def integers(name: str, values: ArrayLike, dtype: type[_Int], dims: int = 1) -> NDArray[_Int]:
    """A read-only C-contiguous copy of whole numbers in ``dtype``.

    >>> integers("bias", [1, 2], np.int32)
    array([1, 2], dtype=int32)
    """
    given = np.asarray(values)
    if given.dtype.kind == "f" and not isinstance(values, np.ndarray):
        # numpy turns a list of small and very large whole numbers into floats.
        exact = np.array(values, object)
        given = exact.astype(np.uint64) if all(isinstance(n, int) and n >= 0 for n in exact.flat) else given
    if given.ndim != dims:
        raise ValueError(f"{name} must have {dims} axes, got shape {given.shape}")
    if given.size == 0:
        given = given.astype(dtype)
    if given.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold whole numbers, got dtype {given.dtype}")
    if given.dtype != dtype and given.size:
        bounds = np.iinfo(dtype)
        low, high = int(given.min()), int(given.max())
        if low < bounds.min or high > bounds.max:
            raise ValueError(f"{name} must fit in {np.dtype(dtype)}, got values from {low} to {high}")
    return freeze(np.array(given, dtype, order="C"))


def floats(name: str, values: ArrayLike) -> NDArray[np.float32]:
    """A read-only float32 copy of one axis of numbers, none of them NaN.

    >>> floats("threshold", [0.5])
    array([0.5], dtype=float32)
    """
    given = np.asarray(values)
    if given.ndim != 1:
        raise ValueError(f"{name} must have 1 axes, got shape {given.shape}")
    if given.dtype.kind not in "fiu":
        raise ValueError(f"{name} must hold numbers, got dtype {given.dtype}")
    with np.errstate(over="ignore"):
        single = np.array(given, np.float32, order="C")
    if np.isnan(single).any():
        raise ValueError(f"{name} must not hold NaN, got one at index {int(np.isnan(single).argmax())}")
    return freeze(single)


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Mark an array read-only and return it."""
    array.setflags(write=False)
    return array
