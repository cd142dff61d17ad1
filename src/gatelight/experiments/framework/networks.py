"""The networks and trainings that the experiments share, at each scale.

Experiments that ask for the same network, depth and seed get the same cell, so each is trained once.
"""

from __future__ import annotations

import math
from typing import Any

from gatelight.data.catalog import TASKS
from gatelight.experiments.framework.training import RunConfig, Training, from_flat


def recipe(scale: str, **changes: Any) -> RunConfig:
    """The training that all experiments of a scale share, plus the changes of one experiment.

    ``paper`` is the published setting. ``cpu`` keeps its recipe on CIFAR-10 with narrower layers and fewer steps;
    the temperature shrinks with the square root of the gates of a class, as in the paper for CIFAR-100.

    >>> recipe("cpu").model.width, recipe("cpu").model.temperature, recipe("paper").model.temperature
    (2000, 12.5, 31.62)
    """
    values: dict[str, Any] = {**_RECIPES[scale], **changes}
    if "temperature" not in values:
        classes = TASKS[values["dataset"]].classes
        values["temperature"] = round(100 * math.sqrt(values["width"] / 128_000 * 10 / classes), 2)
    return from_flat(values)


#: Everything that decides a run is set here or by the experiment, so that no default can change a kept result.
_RECIPES: dict[str, dict[str, Any]] = {
    "smoke": {
        "dataset": "digits", "layers": 2, "width": 100, "thresholds": 7, "steps": 60, "batch": 50, "lr": 0.1,
        "schedule": "constant", "validation": 0.1, "eval_every": 20, "augment": "none", "augment_scale": 0.5,
    },
    "cpu": {
        "dataset": "cifar10", "layers": 4, "width": 2_000, "thresholds": 3, "steps": 10_000, "batch": 100, "lr": 0.01,
        "schedule": "constant", "validation": 0.1, "eval_every": 250, "augment": "crop-flip", "augment_scale": 0.5,
    },
    "paper": {
        "dataset": "cifar100", "layers": 4, "width": 128_000, "thresholds": 3, "steps": 250_000, "batch": 100,
        "lr": 0.01, "schedule": "constant", "validation": 0.1, "eval_every": 1_000, "augment": "crop-flip",
        "augment_scale": 0.5, "wiring": "random",
    },
}  # fmt: skip


def convolutional(scale: str, **changes: Any) -> RunConfig:
    """Like :func:`recipe`, for the convolutional network: k is 256 in the paper, 16 at ``cpu``.

    At ``cpu`` the temperature is that of size S, 20 for k = 32, shrunk with the square root of k, and batches are
    small, which leaves time for more steps.

    >>> convolutional("cpu").model.temperature, convolutional("paper").model.temperature
    (14.14, 40.0)
    """
    bases: dict[str, dict[str, Any]] = {
        "smoke": {"width": 4, "steps": 20, "eval_every": 10, "thresholds": 3, "temperature": 5.0},
        "cpu": {"width": 16, "steps": 8_000, "batch": 32, "eval_every": 1_000, "temperature": 14.14, "lr": 0.02},
        "paper": {"size": "M", "width": 256, "temperature": 40.0, "lr": 0.02, "wide_head": True},
    }
    return recipe(scale, **{"model": "cdlgn", "layers": None, **bases[scale], **changes})


def weight_decay(parametrization: str) -> float:
    """Of the convolutional network: the paper keeps it for OP and switches it off for IWP."""
    return 0.002 if parametrization == "op" else 0.0


def words(config: RunConfig, seeds: int) -> str:
    """A training in words, for the page."""
    model, how = config.model, config.optimization
    wide = f"k = {model.width}" if model.model == "cdlgn" else f"{model.width:,} gates wide"
    return (
        f"{config.dataset}, {wide}, {how.steps or 0:,} steps of {how.batch} samples, Adam lr {how.lr}, "
        f"augmentation {how.augment}, {how.validation:.0%} validation, {seeds} seed{'s' if seeds > 1 else ''}"
    )


def seeds(scale: str) -> range:
    """The seeds of a scale."""
    return range(2 if scale == "smoke" else 3)


def few_seeds(scale: str) -> range:
    """The seeds of experiments with many variants."""
    return range(3 if scale == "paper" else 2)


def dense(scale: str, depth: int, seed: int, **changes: Any) -> Training:
    """A dense network of a given depth, as in the experiments that share these runs.

    At ``cpu`` it is wider than the recipe's, because the rounding error of deep networks falls with the width, and
    trained with smaller batches to make up for the time.
    """
    own = {"cpu": {"width": 8_000, "batch": 32}}.get(scale, {})
    return Training(recipe(scale, **{**own, "depth_scale": depth, "seed": seed, **changes}))


def convolution(scale: str, depth: int, seed: int, parametrization: str = "iwp", **changes: Any) -> Training:
    """A convolutional network of a given depth."""
    decay = weight_decay(parametrization)
    pieces = 4 if scale == "paper" and depth >= 4 else 1
    config = convolutional(
        scale,
        depth_scale=depth,
        seed=seed,
        parametrization=parametrization,
        weight_decay=decay,
        accumulate=pieces,
        **changes,
    )
    return Training(config)
