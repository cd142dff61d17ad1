"""How a run is trained: the values that its configuration may leave open, settled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gatelight import parametrize
from gatelight.config import Optimization, RunConfig, replace
from gatelight.names import check_name
from gatelight.sizes import TASKS, ConvSize, Size, size_of


@dataclass(frozen=True)
class Recipe:
    """An :class:`~gatelight.config.Optimization` with no value left open."""

    steps: int
    batch: int
    accumulate: int
    lr: float
    schedule: str
    weight_decay: float
    augment: str
    augment_scale: float
    validation: float
    eval_every: int


def recipe_of(config: RunConfig) -> Recipe:
    """The values of the configuration; for those left open, the values of the data set and size."""
    size = size_of(config.dataset, config.model.size, config.model.model)
    name = config.model.gates.parametrization
    kind = parametrize.NAMED[check_name("parametrization", name, parametrize.NAMED)]
    return settled(config.optimization, size, decays=kind.decays)


def settled(given: Optimization, size: Size, *, decays: bool = False) -> Recipe:
    """An optimization with its open values filled in.

    >>> settled(Optimization(steps=100), size_of("mine", "S")).eval_every
    5

    Args:
        given: The given values.
        size: Gives the rest.
        decays: Whether the size's weight decay applies.
    """
    steps = given.steps or size.steps
    decay = size.weight_decay if decays else 0.0
    return Recipe(
        steps=steps,
        batch=given.batch or size.batch,
        accumulate=given.accumulate,
        lr=given.lr or size.learning_rate,
        schedule=given.schedule or size.schedule,
        weight_decay=decay if given.weight_decay is None else given.weight_decay,
        augment=given.augment or size.augment,
        augment_scale=given.augment_scale or size.augment_scale,
        validation=size.validation if given.validation is None else given.validation,
        eval_every=given.eval_every or max(1, min(1000, steps // 20)),
    )


#: What decides the values of a network's size.
_NETWORK = ("dataset", "model", "size", "wide_head")
#: Up to this many classes, a width for your own data counts as the size's, which is rounded up to a multiple of them.
_ROUNDED = 1_000


def changed(base: RunConfig, changes: Mapping[str, Any]) -> tuple[RunConfig, list[str], list[str]]:
    """A configuration with other leaves; if they choose another network, values of the old size are dropped.

    >>> base = replace(RunConfig(), layers=4, width=2000, lr=0.5)
    >>> config, dropped, because = changed(base, {"model": "cdlgn"})
    >>> config.model.layers, config.optimization.lr, dropped, because
    (None, 0.5, ['layers', 'width'], ['model'])

    Returns:
        The configuration, the leaves that were dropped, and the changes that they were dropped for.
    """
    flat = base.to_flat()
    because = [name for name in _NETWORK if name in changes and changes[name] != flat[name]]
    dropped = [name for name in _of_the_size(base) if name not in changes] if because else []
    return replace(replace(base, **dict.fromkeys(dropped)), **changes), dropped, because


def _of_the_size(config: RunConfig) -> list[str]:
    """The values of a configuration that come from its size and do not apply to another size."""
    model = config.model
    size = size_of(config.dataset, model.size, model.model)
    width = size.k if isinstance(size, ConvSize) else getattr(size, "width", 0)
    room = 1 if config.dataset in TASKS or isinstance(size, ConvSize) else _ROUNDED
    temperature = size.temperature * (math.sqrt(10) if model.wide_head else 1.0)
    same = {
        "layers": model.layers == getattr(size, "layers", None),
        "width": model.width is not None and 0 <= model.width - width < room,
        "temperature": model.temperature == temperature,
        "thresholds": model.thresholds in (0, size.thresholds or 3),
    }
    return [name for name, is_same in same.items() if is_same and getattr(model, name) is not None]
