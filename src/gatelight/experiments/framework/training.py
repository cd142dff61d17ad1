"""Cells that train a network with the trainer that ``gatelight train`` uses, including its checkpoints.

Only this file knows the trainer, its configuration and its run folder; experiments import them from here.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from gatelight.config import RunConfig, from_flat, replace
from gatelight.data import Split
from gatelight.data.catalog import task
from gatelight.experiments.framework.cell import Context, StoppedError, dataset, settings
from gatelight.files import write_text
from gatelight.nn import LogicNetwork
from gatelight.training.metrics import accuracy
from gatelight.training.progress import ProgressObserver
from gatelight.training.run import TrainingRun
from gatelight.training.run_folder import RunFolder, build_model, load_model

__all__ = ["RunConfig", "Training", "build", "from_flat", "gates_of", "seconds_of", "snapshots"]

#: Measured on two cores, in seconds: a step of any network, and a gate in training for one sample.
_STEP = 0.6e-3
_GATE = {"dlgn": 1.2e-9, "cdlgn": 0.4e-9}
_TRAIN_SAMPLES = 5_000


@dataclass(frozen=True)
class Training:
    """Trains a network; the result is its curve and its accuracies on training and test set.

    Attributes:
        config: The run, with all values that decide it.
    """

    version: ClassVar[int] = 1
    timed: ClassVar[bool] = False
    config: RunConfig

    @property
    def label(self) -> str:
        """Data set, network and seed."""
        c, gates = self.config, self.config.model.gates
        parts = [c.dataset, c.model.model, gates.parametrization, gates.init, f"D={c.model.depth_scale}"]
        changed = settings(c)
        parts += [f"{name.replace('_', '-')}={changed[name]}" for name in _IN_LABEL if name in changed]
        return " ".join([*parts, f"seed={c.seed}"])

    @property
    def seconds(self) -> float:
        """About how long it takes on two cores."""
        how = self.config.optimization
        steps = how.steps or 0
        # Besides those on the way, it measures on the test and the training set at the end.
        return seconds_of(self.config, steps, evaluations=8 + steps / (how.eval_every or 1))

    def run(self, context: Context) -> dict[str, Any]:
        """Train to the end, continuing from where an interrupted run stopped."""
        trainer = _trainer(self.config, context, context.advanced)
        if not trainer.run(context.stop):
            raise StoppedError
        result = trainer.finish()
        model, _ = load_model(trainer.folder.path)
        fitted = trainer.trainer.train
        seen = Split(fitted.x[:_TRAIN_SAMPLES], fitted.y[:_TRAIN_SAMPLES])
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


_IN_LABEL = (
    "estimator", "init_strength", "init_spread", "temperature", "thresholds", "wide_head", "residual_fraction",
    "intervention", "intervention_value", "dropout",
)  # fmt: skip
_CURVE = ("step", "loss", "soft_accuracy", "discrete_accuracy")


def build(config: RunConfig) -> LogicNetwork:
    """The network of a configuration, before training."""
    return build_model(config, task(config.dataset))


def gates_of(config: RunConfig) -> int:
    """About how many gates a sample goes through.

    They are counted in a network of the smallest width, since a wide one takes long to build.

    >>> gates_of(from_flat({"dataset": "digits", "layers": 3, "width": 500}))
    1500
    """
    model = config.model
    unit = task(config.dataset).classes if model.model == "dlgn" else 1
    layout = {name: getattr(model, name) for name in ("model", "size", "layers", "depth_scale", "wide_head")}
    return _count_gates(from_flat({"dataset": config.dataset, "width": unit, **layout})) * (model.width or 0) // unit


@functools.cache
def _count_gates(config: RunConfig) -> int:
    return build(config).gates


def seconds_of(config: RunConfig, steps: int, evaluations: float = 0.0) -> float:
    """About how long training takes on two cores.

    >>> 1 < seconds_of(from_flat({"dataset": "digits", "layers": 4, "width": 2_000, "batch": 100}), 2_000) < 4
    True
    """
    # An evaluation runs only forward, which is a third of a step. Interventions draw a number for every gate.
    evaluated = evaluations * (150 if config.dataset == "digits" else 5_000) / 3
    trained = steps * (config.optimization.batch or 0) * (10 if config.model.intervention else 1)
    return 0.2 + steps * _STEP + (trained + evaluated) * gates_of(config) * _GATE[config.model.model]


def snapshots(
    config: RunConfig, at: Sequence[int], measure: Callable[[LogicNetwork], Any], context: Context
) -> list[Any]:
    """Train and measure the network after each of the given numbers of steps, in ascending order.

    Measurements are saved on the way, so that an interrupted cell continues from the last one.
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
    """A trainer in the cell's folder, at the step where the last one was interrupted."""
    folder = context.folder / "run"
    observer = ProgressObserver(advanced) if advanced else None
    data = dataset(config.dataset, context.data)
    trainer = TrainingRun(config, data, folder, device=context.device, observer=observer)
    if RunFolder(folder).exists:
        trainer.resume()
    else:
        trainer.start()
    return trainer
