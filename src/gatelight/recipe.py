"""How a run is trained: the values that its configuration may leave open, settled."""

from __future__ import annotations

from dataclasses import dataclass

from gatelight import models
from gatelight.config import TrainConfig


@dataclass(frozen=True)
class Recipe:
    """The values of a run that its configuration may leave open, all settled."""

    steps: int
    batch: int
    lr: float
    schedule: str
    validation: float
    eval_every: int
    augment: str
    augment_scale: float
    weight_decay: float


def recipe_of(config: TrainConfig) -> Recipe:
    """What the configuration says and, where it is silent, what goes with the data set and size."""
    size = models.size_of(config.dataset, config.size, config.model)
    steps = config.steps or size.steps
    return Recipe(
        steps=steps,
        batch=config.batch or size.batch,
        lr=config.lr or size.learning_rate,
        schedule=config.schedule or size.schedule,
        validation=size.validation if config.validation is None else config.validation,
        eval_every=config.eval_every or max(1, min(1000, steps // 20)),
        augment=config.augment or size.augment,
        augment_scale=config.augment_scale or size.augment_scale,
        weight_decay=(size.weight_decay if config.parametrization == "op" else 0.0)
        if config.weight_decay is None
        else config.weight_decay,
    )
