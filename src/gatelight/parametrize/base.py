"""What every parametrization is: a map from parameters theta to truth tables.

Layers hold one and know nothing more about it than this.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Parametrization(Protocol):
    """A map theta [gates, parameters] -> table [gates, 2**arity] with entries in [0, 1]."""

    @property
    def arity(self) -> int:
        """Inputs of a gate."""

    @property
    def parameters(self) -> int:
        """Parameters of a gate."""

    @property
    def kind(self) -> str:
        """The map's name for kernels that compute it themselves, such as ``iwp-sin``."""

    def table(self, theta: Tensor) -> Tensor:
        """Soft tables, differentiable in theta, [gates, 2**arity]."""

    def rounded(self, theta: Tensor) -> Tensor:
        """Rounded tables: 0 or 1 in theta's dtype, [gates, 2**arity]."""

    def exchanged(self, theta: Tensor) -> Tensor:
        """Parameters of the same functions with their first and last input exchanged, [gates, parameters]."""

    def init(
        self,
        gates: int,
        init: str,
        generator: torch.Generator,
        *,
        strength: float | None = None,
        spread: float | None = None,
    ) -> Tensor:
        """Initial parameters, float32 [gates, parameters]."""

    def describe(self) -> str:
        """The formula, for a layer's repr."""
