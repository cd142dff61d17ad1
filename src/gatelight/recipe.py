"""How a run is trained: the values that its configuration may leave open, settled."""

from __future__ import annotations

from dataclasses import dataclass

from gatelight import models
from gatelight.config import RunConfig


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
    """What the configuration says and, where it is silent, what goes with the data set and size."""
    given, model = config.optimization, config.model
    size = models.size_of(config.dataset, model.size, model.model)
    steps = given.steps or size.steps
    decay = size.weight_decay if model.gates.parametrization == "op" else 0.0
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
