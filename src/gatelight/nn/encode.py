"""From real features to bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gatelight.circuit.sketch import CircuitSketch
from gatelight.nn.checks import as_tensor, check_size, describe_range, value_range
from gatelight.ops.backends.cpu import images


def as_unit(x: Tensor) -> Tensor:
    """Raw inputs as bytes (uint8, where u means u / 255) or as float32 in [0, 1]; a ValueError for anything else.

    Bools are 0 and 1. Whole numbers of other types are bytes, from 0 to 255; if the largest is 1 they could
    also be bits, and are refused.

    >>> as_unit(torch.tensor([[0, 200]])), as_unit(torch.tensor([[True, False]]))
    (tensor([[  0, 200]], dtype=torch.uint8), tensor([[1., 0.]]))
    """
    _check_dense(x)
    if x.dtype == torch.uint8:
        return x
    if x.dtype == torch.bool:
        return x.to(torch.float32)
    low, high = value_range(x)
    if not x.is_floating_point():
        if low < 0 or high > 255:
            raise ValueError(f"whole-number inputs must be in 0..255, but the batch {describe_range(low, high)}")
        if high == 1:
            raise ValueError(f"{x.dtype} inputs of only 0 and 1 may be bytes or bits: pass uint8 or x.bool()")
        return x.to(torch.uint8)
    if not (low >= 0.0 and high <= 1.0):
        raise ValueError(f"inputs must be in [0, 1], but the batch {describe_range(low, high)}")
    return x.to(torch.float32)


def as_bits(x: Tensor) -> Tensor:
    """Inputs of a network without an encoder as floating point: whole numbers and bools must be 0 or 1.

    Floating point numbers may be anywhere in [0, 1], like relaxed bits; a circuit takes only 0 and 1.
    """
    _check_dense(x)
    low, high = value_range(x.to(torch.uint8) if x.dtype == torch.bool else x)
    if not (low >= 0.0 and high <= 1.0):
        raise ValueError(
            f"inputs must be in [0, 1], but the batch {describe_range(low, high)}; without an encoder it takes bits"
        )
    return x if x.is_floating_point() else x.to(torch.float32)


def _check_dense(x: Tensor) -> None:
    if not isinstance(x, Tensor) or x.layout != torch.strided or x.is_complex() or x.is_quantized:
        raise ValueError(f"inputs must be a dense tensor of real numbers, got {getattr(x, 'dtype', type(x).__name__)}")


class Thermometer(nn.Module):
    """Thermometer encoding: a value becomes the bits ``(x > t_1, ..., x > t_k)``.

    >>> encode = Thermometer.even(3)                     # thresholds 1/4, 1/2, 3/4
    >>> encode(torch.tensor([[0.1, 0.6]]))
    tensor([[0., 0., 0., 1., 1., 0.]])

    Args:
        thresholds: float [k] for all features, or [features or channels, k].

    Shape:
        [batch, features] -> [batch, features * k], or [batch, channels, h, w] -> [batch, channels * k, h, w].
        uint8 input is divided by 255; :func:`as_unit` has the rule for all types.
    """

    thresholds: Tensor

    def __init__(self, thresholds: Tensor | NDArray[Any] | Sequence[float] | Sequence[Sequence[float]]) -> None:
        super().__init__()
        given = as_tensor("thresholds", thresholds)
        if given.dtype == torch.bool or given.is_complex():
            raise ValueError(f"thresholds must be real numbers, got {given.dtype}")
        if given.ndim not in (1, 2) or given.numel() == 0:
            raise ValueError(f"thresholds must be [k] or [channels, k] and not empty, got {tuple(given.shape)}")
        if not given.is_meta and not bool(torch.isfinite(given).all()):
            raise ValueError("thresholds must be finite")
        device = given.device if isinstance(thresholds, Tensor) else torch.get_default_device()
        self.register_buffer("thresholds", given.to(device, torch.float32))

    @classmethod
    def even(cls, count: int) -> Thermometer:
        """Evenly spaced thresholds ``t_i = i / (count + 1)``, as in the paper."""
        count = check_size("the number of thresholds", count)
        return cls(torch.arange(1, count + 1) / (count + 1))

    @classmethod
    def fit(cls, x: Tensor, count: int) -> Thermometer:
        """Thresholds at the quantiles ``i / (count + 1)`` of each feature or channel of ``x``.

        A quantile that is the feature's largest value would never be exceeded; the next smaller value is used instead.
        """
        count = check_size("the number of thresholds", count)
        x = as_unit(x)
        if x.ndim < 2 or x.numel() == 0:
            raise ValueError(f"cannot fit {count} thresholds to data of shape {tuple(x.shape)}")
        rows = _unit(x).transpose(0, 1).reshape(x.shape[1], -1)
        thresholds = torch.empty(x.shape[1], count)
        for channel, row in enumerate(rows):
            ordered = row.sort().values
            below = ordered[ordered < ordered[-1]]
            rank = (torch.arange(1, count + 1) * len(row)) // (count + 1)
            thresholds[channel] = ordered[rank.clamp(max=max(len(below) - 1, 0))]
        return cls(thresholds)

    @property
    def count(self) -> int:
        """Thresholds of one feature."""
        return self.thresholds.shape[-1]

    def forward(self, x: Tensor) -> Tensor:
        """The bits as float32."""
        x, thresholds = as_unit(x), self.thresholds
        if x.device != thresholds.device:
            raise ValueError(f"the encoder is on {thresholds.device}, its input on {x.device}")
        if x.ndim < 2:
            raise ValueError(f"the encoder takes [batch, features] or [batch, channels, h, w], got {tuple(x.shape)}")
        if self.thresholds.ndim == 2 and x.shape[1] != len(self.thresholds):
            raise ValueError(f"thresholds are for {len(self.thresholds)} features, got {x.shape[1]}")
        if images.supports(x):
            return images.thermometer(x, thresholds)
        planes = thresholds.view(-1, self.count, *(1,) * (x.ndim - 2))
        return (_unit(x).unsqueeze(2) > planes).to(torch.float32).flatten(1, 2)

    def emit(self, sketch: CircuitSketch) -> None:
        """Begin a circuit with these thresholds."""
        sketch.encode(self.thresholds.cpu().numpy())

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        # Thresholds move to another device but keep their precision: half precision would change them.
        exact = self.thresholds
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if not exact.is_meta:
            self.thresholds = exact.to(self.thresholds.device)
        return self

    def extra_repr(self) -> str:
        """The thresholds, or how many if each feature has its own."""
        if self.thresholds.ndim == 1:
            return "x > " + ", ".join(f"{t:.4g}" for t in self.thresholds.tolist())
        return f"{self.count} fitted thresholds for each of {len(self.thresholds)} features"


def _unit(x: Tensor) -> Tensor:
    return x.to(torch.float32) / 255 if x.dtype == torch.uint8 else x.to(torch.float32)
