"""A run: a configuration trained on a data set, in a folder."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gatelight.config import RunConfig, replace
from gatelight.data import Dataset, Split, validation_split
from gatelight.files import write_text
from gatelight.nn import LogicNetwork
from gatelight.training import checkpoint, distributed
from gatelight.training.inputs import check_bits
from gatelight.training.metrics import shared_accuracy
from gatelight.training.recipe import recipe_of
from gatelight.training.run_folder import RunFolder, build_model, model_from, settle, task_of
from gatelight.training.same_data import same_data
from gatelight.training.store import FolderStore
from gatelight.training.trainer import Observer, Trainer


class TrainingRun:
    """A run in progress.

    Args:
        config: The run; open values are filled in.
        dataset: Its data.
        folder: Where it is written.
        device: Where it is computed.
        observer: Gets progress reports.

    Attributes:
        config: The run, with the values that the data set and size decide filled in.
        trainer: Does the work.
        notes: What the user should know, in lines of text.
    """

    def __init__(
        self,
        config: RunConfig,
        dataset: Dataset,
        folder: Path,
        *,
        device: torch.device | str = "cpu",
        observer: Observer | None = None,
    ) -> None:
        self.recipe = recipe_of(config)
        self._given = replace(config, **dataclasses.asdict(self.recipe))
        self.notes: list[str] = list(dataset.notes)
        self.folder = RunFolder(folder)
        self.device, self._observer = torch.device(device), observer
        self.dataset = dataset
        self.task = task_of(dataset)
        self.config = settle(self._given, self.task)
        if self.recipe.augment != "none" and len(self.task.shape) != 3:
            raise ValueError(f"augment is for images, but {dataset.name} has inputs of shape {self.task.shape}")
        train, held_out = self._splits()
        samples = torch.from_numpy(train.x) if self.config.model.encoding == "quantile" else None
        self.model = build_model(self.config, self.task, samples=samples)
        self.trainer = self._make_trainer(train, held_out)

    @property
    def step(self) -> int:
        """Steps done so far."""
        return self.trainer.step

    def start(self, *, overwrite: bool = False) -> None:
        """Make the run's folder."""
        check_bits(self.trainer.encode, self.trainer.inputs, self.dataset.name)
        if distributed.rank() == 0:
            self.folder.begin(self.config, overwrite=overwrite)

    def resume(self) -> None:
        """Continue from the last checkpoint, or from the beginning if there is none yet."""
        path = self.folder.file("last.safetensors")
        if path.exists():
            saved = checkpoint.load(path)
            self.dataset, task = same_data(saved.header, self.dataset, path)
            if task != self.task:
                self.task, self.config = task, settle(self._given, task)
            if "data" not in saved.header:
                what = f"whether {self.dataset.name} has changed since the run began"
                self.notes.append(f"{what} could not be checked: {path} is from an older gatelight")
            self.model = model_from(saved, path)
            self.trainer = self._make_trainer(*self._splits())
            self.trainer.restore(saved, path)
        if distributed.rank() == 0:
            self.folder.prolong(self.config)
            self.folder.trim_metrics(self.step)

    def run(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Train to the end or until ``stop()`` says so; either way the last step is saved. True at the end."""
        return self.trainer.run(stop)

    def finish(self) -> dict[str, Any]:
        """Measure the best and the last weights on the test set and write ``result.json``."""
        result: dict[str, Any] = {
            "dataset": self.dataset.name,
            "steps": self.step,
            "seconds": round(self.trainer.seconds, 3),
            "gates": self.model.gates,
            "parameters": sum(p.numel() for p in self.model.parameters()),
        }
        distributed.barrier()
        for which in ("best", "last"):
            path = self.folder.file(f"{which}.safetensors")
            saved = checkpoint.load(path)
            model: LogicNetwork = model_from(saved, path).to(self.device)
            accuracy = shared_accuracy(model, self.dataset.test)
            result[which] = {
                "step": saved.header["step"],
                "soft_accuracy": accuracy.soft,
                "discrete_accuracy": accuracy.rounded,
            }
        if distributed.rank() == 0:
            write_text(self.folder.file("result.json"), json.dumps(result, indent=2) + "\n")
        return result

    def _splits(self) -> tuple[Split, Split | None]:
        """The training samples, and those held out."""
        if not self.recipe.validation:
            return self.dataset.train, None
        return validation_split(self.dataset.train, self.recipe.validation, self.config.seed)

    def _make_trainer(self, train: Split, held_out: Split | None) -> Trainer:
        return Trainer(
            self.model,
            train,
            held_out,
            self.recipe,
            FolderStore(self.folder.path),
            seed=self.config.seed,
            device=self.device,
            observer=self._observer,
            about=self._about,
            binary=self.task.binary,
        )

    def _about(self) -> dict[str, Any]:
        """What a checkpoint says about the network and its data."""
        encoding = self.dataset.encoding
        return {
            "config": self.config.to_flat(),
            "task": dataclasses.asdict(self.task),
            "classes": list(self.dataset.classes),
            "feature_names": list(self.dataset.feature_names),
            "encoding": None if encoding is None else encoding.to_dict(),
            "data": self.dataset.fingerprint,
        }
