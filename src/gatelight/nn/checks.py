"""What layers require of their arguments and inputs: one rule for all layers."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatelight.ops.seen import Seen
from gatelight.ops.transforms import is_symbolic, is_transformed

#: Connections are 32-bit numbers.
MOST = (1 << 31) - 1

#: Tensors that hold values in [0, 1].
_inside = Seen()

#: How far rounding errors may take a gate's output out of [0, 1], in single and in half precision.
_SLACK = {torch.float64: 1e-4, torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 2e-3}


def check_size(what: str, value: Any, least: int = 1) -> int:
    """A whole number of at least ``least``.

    >>> check_size("out_features", 0)
    Traceback (most recent call last):
    ValueError: out_features must be a whole number of at least 1, got 0
    """
    try:
        size = operator.index(value)
    except TypeError:
        size = least - 1
    if isinstance(value, bool) or size < least:
        raise ValueError(f"{what} must be a whole number of at least {least}, got {value!r}")
    if size > MOST:
        raise ValueError(f"{what} must be at most {MOST}, got {value!r}")
    return size


def check_side(what: str, value: Any, least: int = 1) -> int:
    """A whole number, or two equal ones as torch's layers take them.

    >>> check_side("kernel_size", (3, 3))
    3
    """
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2:
        if value[0] != value[1]:
            raise ValueError(f"{what} must be the same in both directions, got {tuple(value)}")
        value = value[0]
    return check_size(what, value, least)


def check_shape(what: str, shape: Any) -> tuple[int, ...]:
    """The shape of one sample as a tuple of whole numbers.

    >>> check_shape("input_shape", 28)
    Traceback (most recent call last):
    ValueError: input_shape must be the shape of one sample, such as (784,) or (1, 28, 28), got 28
    """
    if isinstance(shape, str) or not isinstance(shape, Sequence) or len(shape) == 0:
        raise ValueError(f"{what} must be the shape of one sample, such as (784,) or (1, 28, 28), got {shape!r}")
    return tuple(check_size(f"each number of {what}", n) for n in shape)


def check_activations(x: Tensor) -> None:
    """Raise a ValueError unless x holds what gates compute on: floating point numbers in [0, 1].

    >>> check_activations(torch.tensor([[0.0, 2.0]]))
    Traceback (most recent call last):
    ValueError: gates take values in [0, 1], but the batch spans 0 to 2
    """
    if not isinstance(x, Tensor):
        raise ValueError(f"a layer takes a tensor, got {type(x).__name__}")
    if x.layout != torch.strided or x.dtype not in _SLACK:
        raise ValueError(
            f"gates take dense float32, float64, bfloat16 or float16 tensors, got {x.dtype} ({x.layout}); "
            f"bits as floats: x.float()"
        )
    slack = _SLACK[x.dtype]
    if is_symbolic(x) or is_transformed(x) or _inside.has(x):
        return
    low, high = value_range(x)
    if not (low >= -slack and high <= 1 + slack):
        raise ValueError(f"gates take values in [0, 1], but the batch {describe_range(low, high)}")
    _inside.add(x)


def trusted(x: Tensor) -> Tensor:
    """Values that are in [0, 1] because of how they were computed, so that the next layer need not check them."""
    if not is_symbolic(x) and not is_transformed(x):
        _inside.add(x)
    return x


def value_range(x: Tensor) -> tuple[float, float]:
    """The smallest and the largest value; (0, 0) if there are none that can be read."""
    if is_symbolic(x) or is_transformed(x) or x.numel() == 0 or x.device.type == "meta":
        return 0.0, 0.0
    low, high = torch.aminmax(x.detach())
    return float(low), float(high)


def describe_range(low: float, high: float) -> str:
    """The range of a batch, for messages."""
    return "holds NaN" if low != low or high != high else f"spans {low:g} to {high:g}"


def to_weights(x: Tensor, weights: Tensor) -> Tensor:
    """A float64 input of float32 weights as float32, because no kernel takes both together."""
    return x.to(weights.dtype) if x.dtype == torch.float64 and weights.dtype == torch.float32 else x


def as_tensor(what: str, values: Any) -> Tensor:
    """A tensor, array or nested list as a tensor."""
    if isinstance(values, Tensor):
        return values
    try:
        return torch.from_numpy(np.array(values))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must be a tensor or an array of numbers: {error}") from None


@contextmanager
def drawing() -> Iterator[torch.device]:
    """Inside, tensors are made on the CPU, where generators draw; yields the device that a new module belongs on."""
    device = torch.get_default_device()
    with torch.device("cpu"):
        yield device
