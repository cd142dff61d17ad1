"""A model in two halves: an encoder that may run ahead in the background, and the learned part after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gatelight.nn import GateIntervention, LogicNetwork, PathDropout, Thermometer, forward
from gatelight.nn.fusion import is_fusible

#: torch's modules that compute nothing, or the same every time. Other modules may draw random numbers.
_FIXED = (nn.Sequential, nn.ModuleList, nn.ModuleDict, nn.Flatten, nn.Unflatten, nn.Identity)


@dataclass(frozen=True)
class Halves:
    """What a model does, in two steps: ``scores(encode(x))`` is ``model(x)``.

    Attributes:
        encode: From raw inputs to the inputs of the learned part. It has no parameters.
        scores: From those to class scores, [batch, classes].
    """

    encode: Callable[[Tensor], Tensor]
    scores: Callable[[Tensor], Tensor]


def halves(model: nn.Module) -> Halves:
    """The halves of a model; if it does not start with an encoder, bytes are scaled to [0, 1] instead.

    >>> model = nn.Sequential(Thermometer.even(3), nn.Flatten(), nn.Linear(12, 2))
    >>> halves(model).encode(torch.zeros(5, 1, 2, 2, dtype=torch.uint8)).shape
    torch.Size([5, 3, 2, 2])
    """
    if is_fusible(model, (LogicNetwork,)):
        assert isinstance(model, LogicNetwork)
        return Halves(model.encode, model.scores)
    if is_fusible(model, (nn.Sequential,)):
        assert isinstance(model, nn.Sequential)
        if len(model) > 1 and is_fusible(model[0], (Thermometer,)):
            return Halves(model[0], model[1:])
    return Halves(as_floats, model)


def as_floats(x: Tensor) -> Tensor:
    """Bytes u as u / 255, bools as 0 and 1, floating point as it is."""
    if x.dtype == torch.uint8:
        return x.to(torch.float32) / 255
    return x if x.is_floating_point() else x.to(torch.float32)


def draws(model: nn.Module) -> bool:
    """Whether the model may draw random numbers in training, as far as its modules show.

    >>> draws(nn.Sequential(nn.Flatten(), nn.Dropout())), draws(nn.Sequential(nn.Flatten(), Thermometer.even(3)))
    (True, False)
    """
    return any(_may_draw(module) for module in model.modules())


def _may_draw(module: nn.Module) -> bool:
    if type(module) in _FIXED:
        return False
    if not type(module).__module__.startswith("gatelight."):
        return True
    if isinstance(module, GateIntervention | PathDropout) or forward.of(module) is not forward.SOFT:
        return True
    return bool(getattr(getattr(module, "parametrization", None), "stochastic", False))
