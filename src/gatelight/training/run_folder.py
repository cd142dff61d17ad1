"""A run's folder: its files, and the model they hold.

config.json        the configuration with every value that the data set and size decide; ``--config`` repeats the run
metrics.jsonl      one line for each evaluation
best.safetensors   weights with the best rounded accuracy so far; of equals, the latest
last.safetensors   weights and optimizer state to continue from
result.json        accuracies on the test set
curves.png         loss and accuracies over steps

The folder of a :func:`gatelight.fit` has ``fit.json`` instead of ``config.json``, and no result.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatelight import data, models
from gatelight.config import RunConfig, from_flat, read_config, replace, to_json
from gatelight.data import encoding
from gatelight.files import replacing, write_text
from gatelight.models.build import build_from
from gatelight.names import shorten
from gatelight.nn import LogicNetwork, Thermometer
from gatelight.training import checkpoint

FILES = (
    "config.json", "fit.json", "metrics.jsonl", "best.safetensors", "last.safetensors", "result.json", "curves.png",
)  # fmt: skip


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run."""

    path: Path

    def file(self, name: str) -> Path:
        """The path of one of the run's files."""
        return self.path / name

    @property
    def exists(self) -> bool:
        """Whether a run has begun here."""
        return self.file("config.json").exists() or self.file("fit.json").exists()

    def begin(self, config: RunConfig, *, overwrite: bool = False) -> None:
        """Make the folder for a new run; an existing run is only replaced if ``overwrite``, other files never."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is a file, expected a folder for the run")
        if self.exists and not overwrite:
            raise ValueError(f"{self.path} already holds a run; use --resume to continue or --overwrite to replace it")
        self.clear()
        write_text(self.file("config.json"), to_json(config))

    def clear(self) -> None:
        """Make the folder if needed, and remove the files of a run from it, but no others."""
        self.path.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            self.file(name).unlink(missing_ok=True)
        for events in self.path.glob("events.out.tfevents.*"):
            events.unlink()

    def prolong(self, config: RunConfig) -> None:
        """Note that the run continues, perhaps for more steps."""
        if self.config() != config:
            write_text(self.file("config.json"), to_json(config))

    def config(self) -> RunConfig:
        """The run's resolved configuration."""
        if not self.path.is_dir():
            raise ValueError(f"no run at {self.path}: there is no such folder")
        return read_config(self.file("config.json"))

    def metrics(self) -> list[dict[str, Any]]:
        """All evaluations so far, oldest first. A line cut off by a crash is left out."""
        rows: list[dict[str, Any]] = []
        if not self.file("metrics.jsonl").exists():
            return rows
        lines = self.file("metrics.jsonl").read_text("utf-8", errors="replace").split("\n")
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line) if line else None
            except (json.JSONDecodeError, RecursionError):
                if number == len(lines):
                    break
                raise ValueError(f"{self.file('metrics.jsonl')}, line {number} is not JSON") from None
            if row is not None and not _is_evaluation(row):
                raise ValueError(f"{self.file('metrics.jsonl')}, line {number} is not an evaluation")
            if row is not None:
                rows.append(row)
        return rows

    def append_metrics(self, row: dict[str, Any]) -> None:
        """Add an evaluation."""
        with self.file("metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def draw_curves(self) -> bool:
        """Draw the evaluations, if there are any, as ``curves.png``; False if matplotlib is not installed."""
        if importlib.util.find_spec("matplotlib") is None:
            return False
        from gatelight import plots

        if rows := self.metrics():
            plots.save(plots.curves(rows, self.path.name), self.file("curves.png"))
        return True

    def trim_metrics(self, step: int) -> None:
        """Remove evaluations after a step: a resumed run repeats them."""
        kept = [row for row in self.metrics() if row["step"] <= step]
        with replacing(self.file("metrics.jsonl")) as temporary:
            temporary.write_text("".join(json.dumps(row) + "\n" for row in kept), "utf-8")


def _is_evaluation(row: Any) -> bool:
    """Whether a line of the metrics has all the values that its readers need."""
    return (
        isinstance(row, dict)
        and isinstance(row.get("step"), int)
        and all(isinstance(row.get(name), int | float) for name in ("loss", "soft_accuracy", "discrete_accuracy"))
    )


def next_folder(parent: Path, config: RunConfig) -> Path:
    """The first unused name for a run, such as ``runs/mnist-dlgn-S-001``."""
    stem = f"{Path(config.dataset).stem}-{config.model.model}-{config.model.size}"
    number = 1
    while (parent / f"{stem}-{number:03d}").exists():
        number += 1
    return parent / f"{stem}-{number:03d}"


def task_of(dataset: data.Dataset) -> models.Task:
    """The task that a data set sets for a network."""
    return models.Task(tuple(dataset.input_shape), dataset.num_classes, dataset.binary)


def settle(config: RunConfig, task: models.Task) -> RunConfig:
    """The configuration with the values that the size decides filled in."""
    names = [f.name for f in dataclasses.fields(models.Settled)]
    given = {name: getattr(config.model, name) for name in ("model", "size", "wide_head", *names)}
    return replace(config, **dataclasses.asdict(models.settle(config.dataset, **given, task=task)))


def build_model(config: RunConfig, task: models.Task, **extra: Any) -> LogicNetwork:
    """The network of a configuration, freshly initialized."""
    return build_from(config.dataset, config.model, task, seed=config.seed, **extra)


def load_model(path: Path, which: str = "best") -> tuple[LogicNetwork, dict[str, Any]]:
    """The trained network of a run's folder or of a checkpoint file, and the checkpoint's header.

    Args:
        path: A run's folder or a ``.safetensors`` checkpoint.
        which: For a folder: ``best`` or ``last``.
    """
    if path.is_dir():
        RunFolder(path).config()
        path = path / f"{which}.safetensors"
    saved = checkpoint.load(path)
    return model_from(saved, path), saved.header


def model_from(saved: checkpoint.Checkpoint, path: Path) -> LogicNetwork:
    """Rebuild the network that a checkpoint describes and load its weights."""
    try:
        config = from_flat(saved.header["config"], str(path))
        described = saved.header["task"]
        task = models.Task(tuple(described["shape"]), described["classes"], described["binary"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: the header lacks {error} or holds a wrong value") from None
    model = build_model(replace(config, encoding="even"), task)
    if model.encoder is not None and "model.encoder.thresholds" in saved.tensors:
        model.encoder = Thermometer(saved.tensors["model.encoder.thresholds"])
    checkpoint.restore(model, saved, path)
    return model


def load_data(
    header: dict[str, Any],
    name: str | None = None,
    folder: Path | None = None,
    *,
    progress: data.Progress | None = None,
) -> data.Dataset:
    """The data that a checkpoint's network was trained on, or other data of the same shape and classes.

    A table is encoded like the training table: with its ranges and words; columns and classes are matched by name.

    Args:
        header: The checkpoint's header, as :func:`load_model` gives it.
        name: A data set's name or a file; None means the training data.
        folder: The data folder.
        progress: Called as for :func:`gatelight.data.load`.

    Raises:
        ValueError: If the data does not fit the network.
    """
    own = header["config"]["dataset"]
    name = own if name is None else name
    stored = header.get("encoding")
    known = None
    if data.is_table(name):
        if stored is not None:
            known = encoding.from_dict(stored, "the checkpoint")
        elif not _same_file(name, own):
            raise ValueError(
                f"the checkpoint does not say how its features were made from a table, so {name} would be "
                f"scaled by its own rows; only {own}, which it was trained on, can be used"
            )
    dataset = data.load(name, folder, progress=progress, encoding=known)
    _check_features(header, dataset)
    classes = header.get("classes", list(dataset.classes))
    try:
        dataset = dataset.with_classes(classes)
    except ValueError:
        raise ValueError(
            f"the network tells {shorten(classes)} apart, but {dataset.name} has {shorten(dataset.classes)}"
        ) from None
    task, trained = task_of(dataset), header["task"]
    if trained["binary"] and not task.binary:
        raise ValueError(f"the network takes bits, but the inputs of {dataset.name} are not only 0 and 1")
    if list(task.shape) != trained["shape"] or task.classes != trained["classes"]:
        raise ValueError(
            f"the network takes {tuple(trained['shape'])} and tells {trained['classes']} classes, "
            f"but {dataset.name} has {task.shape} and {task.classes}"
        )
    return dataset


def _same_file(name: str, other: str) -> bool:
    one, two = (Path(path).expanduser().resolve() for path in (name, other))
    return one == two


def _check_features(header: dict[str, Any], dataset: data.Dataset) -> None:
    """Refuse data whose features have names other than those of the training data, if both have names."""
    before, now = header.get("feature_names") or [], dataset.feature_names
    if not before or not now or list(now) == before:
        return
    at = next((i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now)))
    was, found = (repr(names[at]) if at < len(names) else "nothing" for names in (before, now))
    raise ValueError(f"{dataset.name}: feature {at} was {was:.60} in the data that was trained on and is {found:.60}")
