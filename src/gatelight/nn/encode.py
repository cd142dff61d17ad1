"""From real features to bits."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gatelight.ops import images


def check_unit_interval(x: Tensor) -> None:
    """Raise a ValueError unless all values are finite and in [0, 1]."""
    if x.numel() == 0 or x.dtype == torch.uint8 or torch.compiler.is_compiling():
        return
    low, high = (float(v) for v in torch.aminmax(x.detach()))
    if not (low >= 0.0 and high <= 1.0):
        what = "holds NaN" if low != low or high != high else f"spans {low:g} to {high:g}"
        raise ValueError(f"inputs must be in [0, 1], but the batch {what}")


class Thermometer(nn.Module):
    """Thermometer encoding: a value becomes the bits ``(x > t_1, ..., x > t_k)``.

    >>> encode = Thermometer.even(3)                     # thresholds 1/4, 1/2, 3/4
    >>> encode(torch.tensor([[0.1, 0.6]]))
    tensor([[0., 0., 0., 1., 1., 0.]])

    Args:
        thresholds: float [k] for all features, or [features or channels, k].

    Shape:
        [batch, features] -> [batch, features * k], or [batch, channels, h, w] -> [batch, channels * k, h, w].
        uint8 input is divided by 255.
    """

    thresholds: Tensor

    def __init__(self, thresholds: Tensor) -> None:
        super().__init__()
        if thresholds.ndim not in (1, 2) or thresholds.numel() == 0:
            raise ValueError(f"thresholds must be [k] or [channels, k] and not empty, got {tuple(thresholds.shape)}")
        if not bool(torch.isfinite(thresholds).all()):
            raise ValueError("thresholds must be finite")
        self.register_buffer("thresholds", thresholds.to(torch.float32))

    @classmethod
    def even(cls, count: int) -> Thermometer:
        """Evenly spaced thresholds ``t_i = i / (count + 1)``, as in the paper."""
        if count < 1:
            raise ValueError(f"a thermometer needs at least one threshold, got {count}")
        return cls(torch.arange(1, count + 1) / (count + 1))

    @classmethod
    def fit(cls, x: Tensor, count: int) -> Thermometer:
        """Thresholds at the quantiles ``i / (count + 1)`` of each feature or channel of ``x``.

        A quantile that is the feature's largest value would never be exceeded; the next smaller value stands in.
        """
        if count < 1 or x.ndim < 2 or len(x) == 0:
            raise ValueError(f"cannot fit {count} thresholds to data of shape {tuple(x.shape)}")
        check_unit_interval(x)
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
        if x.ndim < 2:
            raise ValueError(f"the encoder takes [batch, features] or [batch, channels, h, w], got {tuple(x.shape)}")
        if self.thresholds.ndim == 2 and x.shape[1] != len(self.thresholds):
            raise ValueError(f"thresholds are for {len(self.thresholds)} features, got {x.shape[1]}")
        check_unit_interval(x)
        # Compared in single precision also where the model was converted to another.
        thresholds = self.thresholds.to(torch.float32)
        if images.takes(x):
            return images.thermometer(x, thresholds)
        planes = thresholds.view(-1, self.count, *(1,) * (x.ndim - 2))
        return (_unit(x).unsqueeze(2) > planes).to(torch.float32).flatten(1, 2)

    def extra_repr(self) -> str:
        """The thresholds, or how many where each feature has its own."""
        if self.thresholds.ndim == 1:
            return "x > " + ", ".join(f"{t:.4g}" for t in self.thresholds.tolist())
        return f"{self.count} fitted thresholds for each of {len(self.thresholds)} features"


def _unit(x: Tensor) -> Tensor:
    return x.to(torch.float32) / 255 if x.dtype == torch.uint8 else x.to(torch.float32)
