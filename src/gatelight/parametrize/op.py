"""The original parametrization (OP): a softmax over all functions of the gate's inputs.

``table = softmax(theta) @ T`` where row i of T is the table with the paper's id i + 1. A gate of arity n has
2**(2**n) parameters (4, 16, 256), so n is at most 3, and rounding takes the function of the largest weight.

The paper's example: weights 0.4 A + 0.3 B + 0.3 OR are nearest to OR, but the largest weight is A's.

>>> weights = torch.zeros(1, 16)
>>> weights[0, [3, 5, 7]] = torch.tensor([0.4, 0.3, 0.3])
>>> OP(arity=2).table(weights.log()).tolist()
[[0.0, 0.6000000238418579, 0.7000000476837158, 1.0]]
>>> OP(arity=2).rounded(weights.log()).tolist()
[[0.0, 0.0, 1.0, 1.0]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gatelight import truthtable
from gatelight.parametrize.base import Parametrization
from gatelight.parametrize.inits import Init

MAX_ARITY = 3
STRENGTH = 5.0


@dataclass(frozen=True)
class OP(Parametrization):
    """``table = softmax(theta) @ T``; see the module's docstring.

    Attributes:
        arity: Inputs of a gate, 1..3.
    """

    arity: int = 2

    #: Without weight decay the parameters of a softmax would grow without bound.
    decays = True

    def __post_init__(self) -> None:
        truthtable.check_arity(self.arity)
        if self.arity > MAX_ARITY:
            raise ValueError(
                f"the original parametrization needs 2**(2**arity) parameters per gate: arity must be at most "
                f"{MAX_ARITY}, got {self.arity}; use parametrization 'iwp'"
            )

    @property
    def parameters(self) -> int:
        """Parameters of a gate, 2**(2**arity)."""
        return 1 << (1 << self.arity)

    @property
    def native_map(self) -> str | None:
        """``op``; a subclass may compute something else and has none."""
        return "op" if type(self) is OP else None

    def table(self, theta: Tensor) -> Tensor:
        """Relaxed tables, [gates, 2**arity]."""
        return torch.softmax(theta, -1) @ self._functions(theta)

    def rounded(self, theta: Tensor) -> Tensor:
        """The table of the function with the largest weight (the first of equals), [gates, 2**arity]."""
        return self._functions(theta)[theta.argmax(-1)]

    def swap_inputs(self, theta: Tensor) -> Tensor:
        """Parameters of the same functions with their first and last input swapped, [gates, parameters]."""
        tables = truthtable.swap_ends(truthtable.all_tables(self.arity))
        return theta[:, torch.from_numpy(tables @ (1 << np.arange(tables.shape[1] - 1, -1, -1)))]

    def init(self, gates: int, init: Init, generator: torch.Generator) -> Tensor:
        """``theta = 0`` but ``strength`` at the drawn function, plus N(0, std) noise; gaussian: N(0, 1)."""
        if init.name == "gaussian":
            noise = torch.randn(gates, self.parameters, generator=generator)
            return noise * (1.0 if init.std is None else init.std)
        tables = init.target_tables(gates, self.arity, generator).long()
        weights = 1 << torch.arange((1 << self.arity) - 1, -1, -1)
        theta = torch.zeros(gates, self.parameters)
        theta.scatter_(1, (tables * weights).sum(1, keepdim=True), STRENGTH if init.strength is None else init.strength)
        if init.std:
            theta += torch.randn(gates, self.parameters, generator=generator) * init.std
        return theta

    def describe(self) -> str:
        """The formula, for a layer's repr."""
        return f"table = softmax(theta) @ T[{self.parameters}, {1 << self.arity}]"

    def _functions(self, like: Tensor) -> Tensor:
        return torch.from_numpy(truthtable.all_tables(self.arity)).to(like)
