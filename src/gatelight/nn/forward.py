"""How layers make tables from their parameters: one value for all layers, stacks and backends.

In training that is :data:`SOFT` unless :func:`using` says otherwise, and :data:`ROUNDED` inside
:func:`gatelight.nn.rounded`. A value of your own changes what training computes, in every kind of layer:

>>> class Sharp(Forward):
...     '''Tables pushed away from 1/2.'''
...
...     def table(self, parametrization, theta, generator):
...         return (2 * parametrization.table(theta) - 0.5).clamp(0, 1)
>>> from gatelight.nn import LogicDense, LogicStack
>>> stack = LogicStack(LogicDense(4, 8, seed=0), LogicDense(8, 2, seed=1))
>>> with using(stack, Sharp()):
...     sharp = stack(torch.rand(3, 4))

This choice is kept here and not in the layers, so that a copy of a layer made meanwhile is an ordinary one.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from gatelight.parametrize import Parametrization


class Forward(ABC):
    """Makes the tables that a layer computes with."""

    @abstractmethod
    def table(self, parametrization: Parametrization, theta: Tensor, generator: torch.Generator | None) -> Tensor:
        """Tables [gates, 2**arity].

        Args:
            parametrization: The layer's parametrization.
            theta: The layer's parameters, [gates, parameters].
            generator: In training the step's generator, from which noise may be drawn; None in evaluation.
        """

    def native_map(self, parametrization: Parametrization) -> str | None:
        """The kernels' name of a map from theta to the same tables; with None they get the tables."""
        del parametrization
        return None


class Soft(Forward):
    """The parametrization's relaxed tables, with its noise in training."""

    def table(self, parametrization: Parametrization, theta: Tensor, generator: torch.Generator | None) -> Tensor:
        """Relaxed tables, differentiable in theta."""
        if generator is not None and parametrization.stochastic:
            return parametrization.sample(theta, generator)
        return parametrization.table(theta)

    def native_map(self, parametrization: Parametrization) -> str | None:
        """The parametrization's own map, unless it draws noise."""
        return None if parametrization.stochastic else parametrization.native_map


class Rounded(Forward):
    """Tables rounded to 0 and 1 by the parametrization's rule, without a gradient."""

    @torch.no_grad()
    def table(self, parametrization: Parametrization, theta: Tensor, generator: torch.Generator | None) -> Tensor:
        """Rounded tables."""
        del generator
        return parametrization.rounded(theta)


SOFT = Soft()
ROUNDED = Rounded()

#: What each layer computes with, innermost last, and how many :func:`using` blocks there are.
_in_use: weakref.WeakKeyDictionary[nn.Module, list[Forward]] = weakref.WeakKeyDictionary()
_blocks = 0


def of(layer: nn.Module) -> Forward:
    """How a layer makes its tables now."""
    return _in_use[layer][-1] if _blocks and layer in _in_use else SOFT


@contextmanager
def using(model: nn.Module, forward: Forward) -> Iterator[None]:
    """Inside the with block, every logic layer of the model makes its tables in this way."""
    global _blocks
    _blocks += 1
    layers = list(model.modules())
    for layer in layers:
        _in_use.setdefault(layer, []).append(forward)
    try:
        yield
    finally:
        _blocks -= 1
        for layer in layers:
            _in_use[layer].remove(forward)
            if not _in_use[layer]:
                del _in_use[layer]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Inside the with block, the model is in evaluation mode; then every module returns to its earlier mode."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def rounded(model: nn.Module) -> Iterator[None]:
    """Inside the with block, the model is in evaluation mode and its logic layers compute with rounded tables.

    >>> from gatelight.nn import GroupSum, LogicDense, LogicNetwork
    >>> net = LogicNetwork(None, [LogicDense(4, 4, seed=0)], GroupSum(2))
    >>> with rounded(net):
    ...     net(torch.rand(1, 4).round()) % 1      # sums of zeros and ones
    tensor([[0., 0.]])
    """
    with using(model, ROUNDED), evaluating(model), torch.no_grad():
        yield


def step_generator(device: torch.device) -> torch.Generator:
    """The generator from which a training step draws on a device: torch's own, which the trainer seeds each step."""
    if device.type == "cuda":
        torch.cuda.init()
        index = torch.cuda.current_device() if device.index is None else device.index
        return torch.cuda.default_generators[index]
    return torch.default_generator
