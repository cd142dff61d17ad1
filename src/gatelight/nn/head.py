"""From gate outputs to class scores."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gatelight.circuit.sketch import CircuitSketch
from gatelight.nn.checks import check_size
from gatelight.ops.connections import check_tensors


class GroupSum(nn.Module):
    """Sum contiguous groups of gate outputs, one group for each class, and divide by a temperature.

    ``score_c = (1 / temperature) sum over the gates j of group c of x_j``

    >>> GroupSum(2, temperature=2.0)(torch.tensor([[1.0, 1.0, 0.0, 1.0]]))
    tensor([[1.0000, 0.5000]])

    Args:
        classes: Number of groups; must divide the width of the input.
        temperature: Divisor of the sums.

    Shape:
        [batch, gates] -> [batch, classes]
    """

    def __init__(self, classes: int, temperature: float = 1.0) -> None:
        super().__init__()
        self.classes = check_size("classes", classes)
        if isinstance(temperature, str | bool) or not 0 < temperature < float("inf"):
            raise ValueError(f"temperature must be a positive number, got {temperature!r}")
        self.temperature = float(temperature)

    def counts(self, x: Tensor) -> Tensor:
        """The sums before the division, float32 or wider, [batch, classes]."""
        check_tensors(x=x)
        if x.ndim != 2:
            raise ValueError(f"group sums take [batch, gates], got shape {tuple(x.shape)}")
        batch, gates = x.shape
        if gates % self.classes:
            raise ValueError(f"{self.classes} classes do not divide the {gates} gates of the last layer")
        wide = torch.promote_types(x.dtype, torch.float32)
        return x.t().reshape(self.classes, gates // self.classes, batch).sum(1, dtype=wide).t()

    def forward(self, x: Tensor) -> Tensor:
        """Class scores (logits)."""
        return self.counts(x) / self.temperature

    def emit(self, sketch: CircuitSketch) -> None:
        """End a circuit with the counts of the classes."""
        sketch.count(self.classes, self.temperature)

    def extra_repr(self) -> str:
        """Classes and temperature."""
        return f"{self.classes} classes, score = group sum / {self.temperature:g}"
