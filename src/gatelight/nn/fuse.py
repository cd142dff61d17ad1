"""Turning sequences of layers into stacks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from torch import nn

from gatelight.nn.conv import LogicConv2d
from gatelight.nn.conv_stack import LogicConvStack
from gatelight.nn.dense import LogicDense
from gatelight.nn.fusion import is_fusible
from gatelight.nn.pool import OrPool2d
from gatelight.nn.stack import LogicStack


def fuse(module: nn.Module) -> nn.Module:
    """The same model with runs of logic layers inside ``nn.Sequential`` as stacks, which run as one op each.

    The result shares all layers with the model, so training it trains the model. Layers with hooks and other modules
    stay as they are, and so does a model with nothing to fuse.

    >>> from gatelight.nn import GroupSum
    >>> net = nn.Sequential(LogicDense(8, 16, seed=0), LogicDense(16, 4, seed=1), GroupSum(2))
    >>> [type(layer).__name__ for layer in fuse(net)]
    ['LogicStack', 'GroupSum']
    """
    if type(module) is not nn.Sequential or not is_fusible(module, (nn.Sequential,)):
        return module
    children = list(module)
    fused = list(_fused_runs(fuse(child) for child in children))
    if len(fused) == len(children) and all(a is b for a, b in zip(fused, children, strict=True)):
        return module
    result = nn.Sequential(*fused)
    result.training = module.training  # of this module only: children keep their mode
    return result


def _fused_runs(modules: Iterator[nn.Module]) -> Iterator[nn.Module]:
    for stack, run in itertools.groupby(modules, _stack_for):
        layers = list(run)
        if stack is LogicConvStack:  # pooling before the first layer is not part of it
            first = next((i for i, layer in enumerate(layers) if isinstance(layer, LogicConv2d)), len(layers))
            yield from layers[:first]
            layers = layers[first:]
        if stack is None or not layers:
            yield from layers
            continue
        whole = stack(*layers)
        whole.training = layers[0].training
        yield whole


def _stack_for(layer: nn.Module) -> type[LogicStack | LogicConvStack] | None:
    """The kind of stack that takes a layer, if there is one."""
    if is_fusible(layer, (LogicDense,)):
        return LogicStack
    return LogicConvStack if is_fusible(layer, (LogicConv2d, OrPool2d)) else None
