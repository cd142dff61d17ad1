"""Rounding a model for a while, and evaluating one, without leaving a trace.

Which layers are rounded is kept here and not in the layers, so that a copy made meanwhile is an ordinary one.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

#: How many times each layer is inside :func:`rounded`, and how many such blocks there are.
_rounded: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
_blocks = 0


def is_rounded(layer: nn.Module) -> bool:
    """Whether a logic layer computes with rounded tables now."""
    return _blocks > 0 and layer in _rounded


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Inside, the model is in evaluation mode; afterwards every module is in the mode it was in."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def rounded(model: nn.Module) -> Iterator[None]:
    """Inside, every logic layer of the model computes with its rounded tables and the model is in evaluation mode.

    >>> from gatelight.nn import GroupSum, LogicDense, LogicNetwork
    >>> net = LogicNetwork(None, [LogicDense(4, 4, seed=0)], GroupSum(2))
    >>> with rounded(net):
    ...     net(torch.rand(1, 4).round()) % 1      # sums of zeros and ones
    tensor([[0., 0.]])
    """
    layers = [module for module in model.modules() if isinstance(module, LogicLayer)]
    global _blocks
    _blocks += 1
    for layer in layers:
        _rounded[layer] = _rounded.get(layer, 0) + 1
    try:
        with evaluating(model), torch.no_grad():
            yield
    finally:
        _blocks -= 1
        for layer in layers:
            _rounded[layer] -= 1
            if not _rounded[layer]:
                del _rounded[layer]


class LogicLayer(nn.Module):
    """A layer of gates, dense or convolutional: what :func:`rounded` acts on."""

    @property
    def discrete(self) -> bool:
        """Whether the layer computes with rounded tables, as inside :func:`rounded`."""
        return is_rounded(self)
