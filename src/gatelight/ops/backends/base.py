"""What every backend computes.

Arrays are feature-major: x [features, batch], out [gates, batch].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from gatelight.ops.convshape import ConvShape

Tensors = Sequence[Tensor]

#: For each layer a name in :data:`gatelight.ops.NATIVE_MAPS`.
Maps = Sequence[str]

#: For x and then for each theta, whether backward is to compute its gradient.
Needs = Sequence[bool]

#: Gradients for x and for each theta; None where one is not needed.
Gradients = tuple[Tensor | None, Sequence[Tensor | None]]


class Backend(Protocol):
    """The functions of a backend.

    Forward of a chain returns its outputs and what backward needs as ``saved``: nothing unless ``save``. When torch
    captures a graph it asks for ``by_shape``: tensors whose sizes follow from the operands' shapes, those of
    :meth:`dense_saved` and :meth:`conv_saved`. Backward also takes an empty ``saved``, and recomputes. ``needs`` says
    for x and then for each theta whether backward is to compute its gradient.
    """

    def supports_shape(self, shape: ConvShape) -> bool:
        """Whether there is a kernel for trees and pooling of this shape."""

    def lut_fwd(self, x: Tensor, fanin: Tensor, table: Tensor) -> Tensor:
        """Outputs [gates, batch] of one layer."""

    def lut_bwd(self, grad_out: Tensor, x: Tensor, fanin: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients for x and table."""

    def dense_chain_fwd(
        self,
        x: Tensor,
        fanins: Tensors,
        thetas: Tensors,
        maps: Maps,
        memory: str,
        save: bool,
        by_shape: bool = False,
    ) -> tuple[Tensor, list[Tensor]]:
        """Outputs of the last of a chain of dense layers, and what backward needs."""

    def dense_saved(self, x: Tensor, fanins: Tensors, thetas: Tensors, memory: str) -> list[Tensor]:
        """Empty tensors of the shapes that :meth:`dense_chain_fwd` saves."""

    def dense_chain_bwd(
        self,
        grad_out: Tensor,
        x: Tensor,
        saved: Tensors,
        fanins: Tensors,
        thetas: Tensors,
        maps: Maps,
        memory: str,
        needs: Needs,
    ) -> Gradients:
        """Gradients of :meth:`dense_chain_fwd`."""

    def conv_chain_fwd(
        self,
        x: Tensor,
        shapes: Sequence[ConvShape],
        fanins: Tensors,
        thetas: Tensors,
        maps: Maps,
        save: bool,
        by_shape: bool = False,
    ) -> tuple[Tensor, list[Tensor]]:
        """Outputs of the last of a chain of convolutional layers, and what backward needs."""

    def conv_saved(self, x: Tensor, shapes: Sequence[ConvShape], fanins: Tensors, thetas: Tensors) -> list[Tensor]:
        """Empty tensors of the shapes that :meth:`conv_chain_fwd` saves."""

    def conv_chain_bwd(
        self,
        grad_out: Tensor,
        x: Tensor,
        saved: Tensors,
        shapes: Sequence[ConvShape],
        fanins: Tensors,
        thetas: Tensors,
        maps: Maps,
        needs: Needs,
    ) -> Gradients:
        """Gradients of :meth:`conv_chain_fwd`."""
