"""Pooling of gate outputs."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import max_pool2d

from gatelight.circuit.sketch import CircuitSketch
from gatelight.nn.checks import check_activations, check_side, trusted


class OrPool2d(nn.Module):
    """OR over square windows that do not overlap: the maximum of relaxed values, OR of bits.

    >>> import torch
    >>> OrPool2d(2)(torch.tensor([[[[0.1, 0.7], [0.3, 0.2]]]]))
    tensor([[[[0.7000]]]])

    Args:
        size: Side of the window, a number or two equal ones. Pixels that do not fill a window are dropped.

    Shape:
        [batch, channels, h, w] -> [batch, channels, h // size, w // size]
    """

    def __init__(self, size: int | tuple[int, int]) -> None:
        super().__init__()
        self.size = check_side("the pooling window", size)

    def forward(self, x: Tensor) -> Tensor:
        """The largest value of each window; of equal values the first gets the gradient."""
        check_activations(x)
        if x.ndim != 4 or x.shape[2] < self.size or x.shape[3] < self.size:
            raise ValueError(
                f"pooling takes [batch, channels, h, w] of at least {self.size} pixels, got {tuple(x.shape)}"
            )
        return trusted(max_pool2d(x, self.size))

    def emit(self, sketch: CircuitSketch) -> None:
        """Add an OR for each window to a circuit."""
        sketch.nets = sketch.gates().add_pool(sketch.images(), self.size)

    def extra_repr(self) -> str:
        """The window."""
        return f"{self.size}x{self.size}"
