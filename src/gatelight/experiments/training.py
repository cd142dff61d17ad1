"""Cells that train a network with the trainer that ``gatelight train`` uses, checkpoints and all."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from gatelight import models
from gatelight.config import RunConfig, from_flat, replace
from gatelight.data import Split
from gatelight.experiments.cell import Context, StoppedError, dataset, settings
from gatelight.files import write_text
from gatelight.nn import LogicNetwork
from gatelight.training.metrics import accuracy
from gatelight.training.progress import ProgressObserver
from gatelight.training.run import TrainingRun
from gatelight.training.run_folder import RunFolder, load_model

#: Measured on two cores, in seconds: a step of any network, and for one sample an encoded bit, a gate in training and
#: a gate in evaluation.
_STEP, _BIT = 0.6e-3, 0.7e-9
_TRAINED = {"dlgn": 1.15e-9, "cdlgn": 0.35e-9}
_EVALUATED = {"dlgn": 0.35e-9, "cdlgn": 0.2e-9}
_TRAIN_SAMPLES = 5_000


@dataclass(frozen=True)
class Training:
    """Train a network; its curve, and its accuracies on training and test set.

    Attributes:
        config: The run, with all values that decide it.
    """

    version: ClassVar[int] = 1
    timed: ClassVar[bool] = False
    config: RunConfig

    @property
    def label(self) -> str:
        """Data set, network and seed."""
        c = self.config
        parts = [
            c.dataset,
            c.model.model,
            c.model.gates.parametrization,
            c.model.gates.init,
            f"D={c.model.depth_scale}",
        ]
        told = settings(c)
        parts += [f"{name.replace('_', '-')}={told[name]}" for name in _TOLD if name in told]
        return " ".join([*parts, f"seed={c.seed}"])

    @property
    def seconds(self) -> float:
        """About how long it takes on two cores."""
        c, gates = self.config.model, self.gates
        how, dataset = self.config.optimization, self.config.dataset
        # Interventions draw random numbers for every gate; a wide head outgrows the cache.
        slower = (1.2 if c.gates.parametrization == "op" else 1.0) * (10 if c.intervention else 2 if c.wide_head else 1)
        sample = (
            math.prod(models.TASKS[dataset].shape) * (c.thresholds or 0) * _BIT + gates * _TRAINED[c.model] * slower
        )
        train = (how.steps or 0) * (_STEP + (how.batch or 0) * sample)
        evaluations = (how.steps or 0) / (how.eval_every or 1) + 8
        samples = 150 if dataset == "digits" else 5_000
        return 0.2 + train + evaluations * samples * (1e-5 + gates * _EVALUATED[c.model])

    @property
    def gates(self) -> int:
        """Gates evaluated for a sample."""
        c = self.config.model
        if c.model == "cdlgn":
            # Trees of 7 gates: k channels at 32 x 32 places, 4k at 16 x 16, 16k at 8 x 8, 32k at 4 x 4; then the head.
            convolutions = 7 * (1024 + 4 * 256 + 16 * 64 + 32 * 16)
            return (c.width or 0) * (c.depth_scale * (convolutions + 2240) + (2880 if c.wide_head else 0))
        return (c.width or 0) * ((c.layers or 0) * c.depth_scale + (9 if c.wide_head else 0))

    def run(self, context: Context) -> dict[str, Any]:
        """Train to the end, going on from where an interrupted run stood."""
        if self.config.model.model not in models.MODELS:
            raise ValueError(
                f"this gatelight has no network {self.config.model.model!r}, only {', '.join(models.MODELS)}"
            )
        trainer = _trainer(self.config, context, context.advanced)
        if not trainer.run(context.stop):
            raise StoppedError
        result = trainer.finish()
        model, _ = load_model(trainer.folder.path)
        seen = Split(trainer.trainer.train.x[:_TRAIN_SAMPLES], trainer.trainer.train.y[:_TRAIN_SAMPLES])
        on_train = accuracy(model.to(context.device), seen)
        rows = trainer.folder.metrics()
        return {
            "gates": result["gates"],
            "parameters": result["parameters"],
            "train": {"soft_accuracy": on_train.soft, "discrete_accuracy": on_train.rounded},
            "best": result["best"],
            "last": result["last"],
            "curve": {name: [row[name] for row in rows] for name in _CURVE},
        }


_TOLD = (
    "estimator", "init_strength", "init_spread", "temperature", "thresholds", "wide_head", "residual_fraction",
    "intervention", "intervention_value", "dropout",
)  # fmt: skip
_CURVE = ("step", "loss", "soft_accuracy", "discrete_accuracy")


def recipe(scale: str, **changes: Any) -> RunConfig:
    """The training that all experiments of a scale share, with what one of them changes.

    ``paper`` is the published setting. ``cpu`` keeps its recipe on CIFAR-10 with narrower layers and fewer steps;
    the temperature shrinks with the square root of the gates of a class, as the paper has it for CIFAR-100.

    >>> recipe("cpu").model.width, recipe("cpu").model.temperature, recipe("paper").model.temperature
    (2000, 12.5, 31.62)
    """
    values: dict[str, Any] = {**_RECIPES[scale], **changes}
    if "temperature" not in values:
        classes = models.TASKS[values["dataset"]].classes
        values["temperature"] = round(100 * math.sqrt(values["width"] / 128_000 * 10 / classes), 2)
    return from_flat(values)


#: Everything that decides a run is said here or by the experiment, so that no default can change a kept result.
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
    """As :func:`recipe` for the convolutional network: k is 256 in the paper, 16 at ``cpu``.

    At ``cpu`` the temperature is that of size S, 20 for k = 32, shrunk with the square root of k, and batches are
    small, which leaves time for more steps. Where this gatelight has no convolutional network, the cell refuses to run.

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


def snapshots(
    config: RunConfig, at: Sequence[int], measure: Callable[[LogicNetwork], Any], context: Context
) -> list[Any]:
    """Train and measure the network after each of the given numbers of steps, in ascending order.

    Measurements are saved on the way, so that an interrupted cell goes on from the last one.
    """
    path = context.folder / "snapshots.json"
    taken: list[Any] = json.loads(path.read_text("utf-8")) if path.exists() else []
    for step in at[len(taken) :]:
        trainer = _trainer(replace(config, steps=max(step, 1), eval_every=max(step, 1)), context)
        if step and not trainer.run(context.stop):
            raise StoppedError
        taken.append(measure(trainer.model))
        write_text(path, json.dumps(taken))
        context.advanced(len(taken) / len(at), f"after {step} steps")
    return taken


def _trainer(config: RunConfig, context: Context, advanced: Callable[[float, str], None] | None = None) -> TrainingRun:
    """A trainer in the cell's folder that stands where the last one was interrupted."""
    folder = context.folder / "run"
    observer = ProgressObserver(advanced) if advanced else None
    data = dataset(config.dataset, context.data)
    trainer = TrainingRun(config, data, folder, device=context.device, observer=observer)
    if RunFolder(folder).exists:
        trainer.resume()
    else:
        trainer.start()
    return trainer
