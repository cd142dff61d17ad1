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

import numpy as np
import torch
from torch import Tensor

from gatelight import truthtable
from gatelight.names import check_name
from gatelight.parametrize.base import Parametrization
from gatelight.parametrize.inits import Init


@dataclass(frozen=True)
class Estimator:
    """A map from a real parameter to a table entry in [0, 1].

    Attributes:
        formula: The formula, as text.
        value: theta -> entry.
        slope: What backward uses as the derivative (straight-through); None uses the derivative itself.
        center: The theta whose entry is 1/2.
        strength: Distance from the center at which heavy-tail inits put theta (the paper's mu).
        std: Standard deviation of theta around that point (the paper's sigma).
        gaussian: Standard deviation of the gaussian init around the center.
    """

    formula: str
    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor] | None
    center: float
    strength: float
    std: float
    gaussian: float


def _sin01(theta: Tensor) -> Tensor:
    return 0.5 + 0.5 * torch.sin(theta)


def _sin01_clamped(theta: Tensor) -> Tensor:
    return _sin01(theta.clamp(-math.pi / 2, math.pi / 2))


def _clamp01(theta: Tensor) -> Tensor:
    return theta.clamp(0.0, 1.0)


def _sign_of_cosine(theta: Tensor) -> Tensor:
    return torch.sign(torch.cos(theta))


#: With the derivative of the sine taken as 1, a parameter past the maximum would be pushed the wrong way forever. Two
#: estimators avoid that: ``sin-st`` clamps the angle to the rising half of the sine, ``sin-sign`` (what the authors of
#: the paper have in their code) takes the sign of the true derivative, so that parameters may go around.
ESTIMATORS = {
    "sin": Estimator("1/2 + 1/2 sin(theta)", _sin01, None, 0.0, 1.2, 0.25, 1.0),
    "sigmoid": Estimator("1/(1 + exp(-theta))", torch.sigmoid, None, 0.0, 3.0, 0.5, 1.0),
    "sigmoid-st": Estimator("1/(1 + exp(-theta)), gradient 1", torch.sigmoid, torch.ones_like, 0.0, 3.0, 0.5, 1.0),
    "sin-st": Estimator(
        "1/2 + 1/2 sin(clamp(theta, ±pi/2)), gradient 1", _sin01_clamped, torch.ones_like, 0.0, 1.2, 0.25, 1.0
    ),
    "sin-sign": Estimator(
        "1/2 + 1/2 sin(theta), gradient sign(cos(theta))", _sin01, _sign_of_cosine, 0.0, 1.2, 0.25, 1.0
    ),
    "linear-st": Estimator("clamp(theta, 0, 1), gradient 1", _clamp01, torch.ones_like, 0.5, 0.45, 0.05, 0.25),
}


@dataclass(frozen=True)
class IWP(Parametrization):
    """``table = estimator(theta)`` entry by entry; see the module's docstring.

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
    def native_map(self) -> str | None:
        """``iwp-`` and the estimator; a subclass may compute something else and has none."""
        return f"iwp-{self.estimator}" if type(self) is IWP else None

    def table(self, theta: Tensor) -> Tensor:
        """Relaxed tables, [gates, 2**arity]."""
        estimator = ESTIMATORS[self.estimator]
        value = estimator.value(theta)
        if estimator.slope is None:
            return value
        # The value without its own derivative, plus a zero that has the replacement derivative.
        line = theta * estimator.slope(theta).detach()
        return value.detach() + (line - line.detach())

    def rounded(self, theta: Tensor) -> Tensor:
        """Tables rounded entry by entry, ``table > 1/2``, [gates, 2**arity]."""
        return (ESTIMATORS[self.estimator].value(theta) > 0.5).to(theta.dtype)

    def swap_inputs(self, theta: Tensor) -> Tensor:
        """Parameters of the same functions with their first and last input swapped, [gates, parameters]."""
        return theta[:, torch.from_numpy(truthtable.swap_ends(np.arange(self.parameters)))]

    def init(self, gates: int, init: Init, generator: torch.Generator) -> Tensor:
        """``theta ~ N(center ± strength, std)``, the sign from the drawn table; gaussian: around the center."""
        estimator = ESTIMATORS[self.estimator]
        noise = torch.randn(gates, self.parameters, generator=generator)
        if init.name == "gaussian":
            return estimator.center + noise * (estimator.gaussian if init.std is None else init.std)
        sign = 2.0 * init.target_tables(gates, self.arity, generator).float() - 1.0
        mean = estimator.center + sign * (estimator.strength if init.strength is None else init.strength)
        return mean + noise * (estimator.std if init.std is None else init.std)

    def describe(self) -> str:
        """The formula, for a layer's repr."""
        return f"table = {ESTIMATORS[self.estimator].formula}"
