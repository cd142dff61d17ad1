"""Gradient norms of the layers of a deep network, which several experiments measure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from gatelight.experiments.framework.cell import Context, dataset
from gatelight.experiments.framework.networks import recipe
from gatelight.experiments.framework.training import RunConfig, seconds_of, snapshots
from gatelight.nn import LogicNetwork
from gatelight.training.metrics import gradient_norms

#: Layers of the deep network.
LAYERS = 40


@dataclass(frozen=True)
class GradientNorms:
    """Gradient norms of a network after some steps of training.

    Attributes:
        config: The network, and the training for those measured after some steps.
        steps: When to measure, ascending.
    """

    version: ClassVar[int] = 1
    timed: ClassVar[bool] = False
    config: RunConfig
    steps: tuple[int, ...]

    @property
    def label(self) -> str:
        """Network and seed."""
        c = self.config
        fixed = f" fixed {c.model.residual_fraction:g}" if c.model.residual_fraction else ""
        return f"{c.model.gates.parametrization} {c.model.gates.estimator} {c.model.gates.init}{fixed} seed={c.seed}"

    @property
    def seconds(self) -> float:
        """About how long it takes on two cores."""
        return seconds_of(self.config, 1 + self.steps[-1])

    def run(self, context: Context) -> dict[str, Any]:
        """The norms of each layer, first to last; null for a layer without parameters."""
        train = dataset(self.config.dataset, context.data).train
        x = torch.from_numpy(train.x[: self.config.optimization.batch]).to(context.device)
        y = torch.from_numpy(train.y[: self.config.optimization.batch]).to(context.device)

        def measure(model: LogicNetwork) -> list[float | None]:
            return [None if math.isnan(norm) else norm for norm in gradient_norms(model.train(), x, y)]

        return {"norms": snapshots(self.config, self.steps, measure, context)}


def network(scale: str, **changes: Any) -> RunConfig:
    """The 40-layer network of a scale, for which gradients and gate outputs are measured."""
    sizes: dict[str, dict[str, Any]] = {
        "smoke": {"width": 600, "batch": 20},
        "cpu": {"dataset": "cifar100", "width": 12_000},
        "paper": {},
    }
    return recipe(scale, **{"layers": LAYERS, "augment": "none", "validation": 0.01, **sizes[scale], **changes})
