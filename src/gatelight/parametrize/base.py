"""What every parametrization is: a map from parameters theta to truth tables.

A parametrization is a value that a layer holds. Write one as a small class, best as a frozen dataclass:

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Halves(Parametrization):
...     '''Tables (1 + theta) / 2: one parameter for each entry.'''
...
...     arity: int = 2
...
...     @property
...     def parameters(self) -> int:
...         return 2**self.arity
...
...     def init(self, gates, init, generator):
...         return init.target_tables(gates, self.arity, generator) * 1.6 - 0.8
...
...     def table(self, theta):
...         return ((1 + theta) / 2).clamp(0, 1)
>>> from gatelight.nn import LogicDense
>>> LogicDense(8, 4, parametrization=Halves(arity=3), seed=0)(torch.rand(2, 8)).shape
torch.Size([2, 4])
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from gatelight.parametrize.inits import Init


class Parametrization(ABC):
    """A map theta [gates, parameters] -> table [gates, 2**arity] with entries in [0, 1].

    Only ``arity``, ``parameters``, ``init`` and ``table`` are required. The rest has defaults.

    Attributes:
        arity: Inputs of a gate.
        stochastic: Whether :meth:`sample` draws noise in training.
        decays: Whether the weight decay of a network's recipe applies to these parameters.
    """

    arity: int
    stochastic: bool = False
    decays: bool = False

    @property
    @abstractmethod
    def parameters(self) -> int:
        """Parameters of a gate."""

    @property
    def name(self) -> str:
        """A short name, for the repr of a layer."""
        return type(self).__name__.lower()

    @property
    def native_map(self) -> str | None:
        """The name of the kernels' version of :meth:`table`; None computes tables in torch."""
        return None

    @abstractmethod
    def init(self, gates: int, init: Init, generator: torch.Generator) -> Tensor:
        """Initial parameters, float32 [gates, parameters]."""

    @abstractmethod
    def table(self, theta: Tensor) -> Tensor:
        """Relaxed tables, differentiable in theta, [gates, 2**arity]."""

    def sample(self, theta: Tensor, generator: torch.Generator) -> Tensor:
        """Relaxed tables of one training step, with noise drawn from the step's generator on theta's device.

        Called instead of :meth:`table` in training if :attr:`stochastic` is true. Draw only from the generator:
        then a run that is interrupted and resumed repeats the same bits.
        """
        del generator
        return self.table(theta)

    def rounded(self, theta: Tensor) -> Tensor:
        """Rounded tables: 0 or 1 in theta's dtype, [gates, 2**arity]."""
        return (self.table(theta) > 0.5).to(theta.dtype)

    def swap_inputs(self, theta: Tensor) -> Tensor | None:
        """Parameters of the same functions with their first and last input swapped, [gates, parameters].

        Stacks list their gates in an order that is fast to compute, which swaps the inputs of some gates. None, the
        default, keeps the gates in the order in which they were drawn.
        """
        del theta
        return None

    def describe(self) -> str:
        """The formula, for a layer's repr."""
        return "table = f(theta)"


_MEMBERS = (
    "arity",
    "parameters",
    "stochastic",
    "decays",
    "name",
    "native_map",
    "init",
    "table",
    "sample",
    "rounded",
    "swap_inputs",
    "describe",
)


def check(value: object) -> None:
    """Raise a ValueError if a value is not a parametrization, and say what is missing.

    >>> check(3)
    Traceback (most recent call last):
    ValueError: a parametrization is a name or a gatelight.parametrize.Parametrization, got 3, which has no arity
    """
    if isinstance(value, type):
        raise ValueError(f"a parametrization is a value: {value.__name__}(), not the class {value.__name__}")
    for name in _MEMBERS:
        if not hasattr(value, name):
            raise ValueError(
                f"a parametrization is a name or a gatelight.parametrize.Parametrization, got {value!r}, "
                f"which has no {name}"
            )
