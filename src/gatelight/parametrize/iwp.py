"""The input-wise parametrization (IWP): one parameter for each entry of the table.

``table = estimator(theta)``, so a gate of arity n has 2**n parameters, and rounding each entry on its own is
optimal in every Minkowski norm.

>>> iwp = IWP(arity=2, estimator="sin")
>>> iwp.table(torch.zeros(1, 4)).tolist()
[[0.5, 0.5, 0.5, 0.5]]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatelight import truthtable
from gatelight.names import check_name
from gatelight.parametrize.inits import target_tables


@dataclass(frozen=True)
class Estimator:
    """A map from a real parameter to a table entry in [0, 1].

    Attributes:
        formula: For people.
        value: theta -> entry.
        straight_through: Whether backward takes the derivative to be 1.
        centre: The theta whose entry is 1/2.
        strength: Distance from the centre at which heavy-tail inits put theta (the paper's mu).
        spread: Standard deviation of theta around that point (the paper's sigma).
        gaussian: Standard deviation of the gaussian init around the centre.
    """

    formula: str
    value: Callable[[Tensor], Tensor]
    straight_through: bool
    centre: float
    strength: float
    spread: float
    gaussian: float


def _sin01(theta: Tensor) -> Tensor:
    return 0.5 + 0.5 * torch.sin(theta)


def _sin01_clamped(theta: Tensor) -> Tensor:
    return _sin01(theta.clamp(-math.pi / 2, math.pi / 2))


def _clamp01(theta: Tensor) -> Tensor:
    return theta.clamp(0.0, 1.0)


#: ``sin-st`` clamps the angle to the rising half of the sine: with the derivative taken to be 1, a parameter past
#: the crest would be pushed the wrong way for ever.
ESTIMATORS = {
    "sin": Estimator("1/2 + 1/2 sin(theta)", _sin01, False, 0.0, 1.2, 0.25, 1.0),
    "sigmoid": Estimator("1/(1 + exp(-theta))", torch.sigmoid, False, 0.0, 3.0, 0.5, 1.0),
    "sigmoid-st": Estimator("1/(1 + exp(-theta)), gradient 1", torch.sigmoid, True, 0.0, 3.0, 0.5, 1.0),
    "sin-st": Estimator("1/2 + 1/2 sin(clamp(theta, ±pi/2)), gradient 1", _sin01_clamped, True, 0.0, 1.2, 0.25, 1.0),
    "linear-st": Estimator("clamp(theta, 0, 1), gradient 1", _clamp01, True, 0.5, 0.45, 0.05, 0.25),
}


class _StraightThrough(torch.autograd.Function):
    """Forward ``value(theta)``, backward the identity."""

    @staticmethod
    def forward(_ctx: Any, theta: Tensor, value: Callable[[Tensor], Tensor]) -> Tensor:
        return value(theta)

    @staticmethod
    def backward(_ctx: Any, *grads: Any) -> Any:
        return grads[0], None


@dataclass(frozen=True)
class IWP:
    """``table = estimator(theta)`` entry by entry; see the module's text.

    Attributes:
        arity: Inputs of a gate, 1..6.
        estimator: A name in :data:`ESTIMATORS`.
    """

    arity: int = 2
    estimator: str = "sin"

    def __post_init__(self) -> None:
        truthtable.check_arity(self.arity)
        check_name("estimator", self.estimator, ESTIMATORS)

    @property
    def parameters(self) -> int:
        """Parameters of a gate, 2**arity."""
        return 1 << self.arity

    @property
    def kind(self) -> str:
        """The map's name for kernels, ``iwp-`` and the estimator."""
        return f"iwp-{self.estimator}"

    def table(self, theta: Tensor) -> Tensor:
        """Soft tables, [gates, 2**arity]."""
        estimator = ESTIMATORS[self.estimator]
        if estimator.straight_through:
            table: Tensor = _StraightThrough.apply(theta, estimator.value)  # type: ignore[no-untyped-call]
            return table
        return estimator.value(theta)

    def rounded(self, theta: Tensor) -> Tensor:
        """Tables rounded entry by entry, ``table > 1/2``, [gates, 2**arity]."""
        return (ESTIMATORS[self.estimator].value(theta) > 0.5).to(theta.dtype)

    def exchanged(self, theta: Tensor) -> Tensor:
        """Parameters of the same functions with their first and last input exchanged, [gates, parameters]."""
        return theta[:, torch.from_numpy(truthtable.exchange_ends(np.arange(self.parameters)))]

    def init(
        self,
        gates: int,
        init: str,
        generator: torch.Generator,
        *,
        strength: float | None = None,
        spread: float | None = None,
    ) -> Tensor:
        """``theta ~ N(centre ± strength, spread)``, the sign from the drawn table; gaussian: around the centre."""
        estimator = ESTIMATORS[self.estimator]
        noise = torch.randn(gates, self.parameters, generator=generator)
        if init == "gaussian":
            return estimator.centre + noise * (estimator.gaussian if spread is None else spread)
        sign = 2.0 * target_tables(init, gates, self.arity, generator).float() - 1.0
        mean = estimator.centre + sign * (estimator.strength if strength is None else strength)
        return mean + noise * (estimator.spread if spread is None else spread)

    def describe(self) -> str:
        """The formula, for a layer's repr."""
        return f"table = {ESTIMATORS[self.estimator].formula}"
