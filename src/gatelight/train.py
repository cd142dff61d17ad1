"""Training: one loop for a laptop, a GPU and ``torchrun``.

Nothing random is carried from step to step: the order of the data, augmentation and regularisers are drawn from
(seed, step), so a run that is killed and resumed from its last checkpoint repeats the same bits.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from gatelight import checkpoint, distributed, gpu, models
from gatelight.config import RunConfig, replace
from gatelight.data import Dataset, Split, validation_split
from gatelight.data.augment import augment
from gatelight.data.batches import Batches
from gatelight.files import write_text
from gatelight.metrics import Accuracy, evaluate
from gatelight.nn import LogicNetwork
from gatelight.recipe import recipe_of
from gatelight.run import RunFolder, build_model, model_from, settle, task_of


class Observer(Protocol):
    """Is told how training goes, in the process of rank 0."""

    def started(self, step: int, steps: int, model: LogicNetwork) -> None:
        """Training begins at ``step``."""

    def stepped(self, step: int, loss: float) -> None:
        """A step has been done."""

    def evaluated(self, row: dict[str, Any]) -> None:
        """A row of metrics has been written."""


def same_data(header: dict[str, Any], dataset: Dataset, path: Path) -> tuple[Dataset, models.Task]:
    """The data, and what it asks of the network, with which a run goes on.

    Args:
        header: The header of the run's last checkpoint.
        dataset: The data as it is now.
        path: The checkpoint, for messages.

    Raises:
        ValueError: If the data has changed since the run began.
    """
    task = task_of(dataset)
    before = header.get("task")
    if before == _as_json(dataclasses.replace(task, binary=False)):
        # In runs of older versions images of bits go through a thermometer, which leaves them as they are.
        task = dataclasses.replace(task, binary=False)
    dataset = _with_old_names(dataset, header.get("classes"))
    for what, old, new in (
        ("inputs and classes", before, _as_json(task)),
        ("class names", header.get("classes"), list(dataset.classes)),
    ):
        if old != new:
            raise ValueError(f"{path}: {dataset.name} has changed, its {what} were {old} and are {new}")
    if header.get("data", dataset.fingerprint) != dataset.fingerprint:
        raise ValueError(
            f"{path}: {dataset.name} has changed since the run began, its training inputs, labels or names are not "
            f"the same; a run goes on with its own data alone"
        )
    return dataset, task


def _as_json(task: models.Task) -> dict[str, Any]:
    return dataclasses.asdict(task) | {"shape": list(task.shape)}


def _with_old_names(dataset: Dataset, classes: Any) -> Dataset:
    """The data with the classes 2.0 and 10.0, in an old run's order of words, where they are 2 and 10 now."""
    try:
        renamed = dataset.with_classes(tuple(classes))
    except (ValueError, TypeError):
        return dataset
    return renamed if len(renamed.classes) == len(dataset.classes) else dataset


class Trainer:
    """A run in progress.

    Args:
        config: The run; open values are resolved.
        dataset: Its data.
        folder: Where it is written.
        device: Where it is computed.
        observer: Is told how it goes.

    Attributes:
        config: The run with every value settled that the data set and size decide.
        notes: What its user should know, in lines of text.
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
        self.device = torch.device(device)
        self.observer = observer if distributed.rank() == 0 else None
        self.dataset = dataset
        self.task = task_of(dataset)
        self.config = settle(self._given, self.task)
        if self.recipe.augment != "none" and len(self.task.shape) != 3:
            raise ValueError(f"augment is for images, but {dataset.name} has inputs of shape {self.task.shape}")
        if self.recipe.batch < distributed.world_size():
            raise ValueError(f"a batch of {self.recipe.batch} is too small for {distributed.world_size()} processes")
        self._use(dataset)
        self.order = Batches(len(self.fit), self.recipe.batch, self.config.seed)
        samples = self.inputs if self.config.model.encoding == "quantile" else None
        self.model = build_model(self.config, self.task, samples=samples).to(self.device)
        self.step = 0
        self.best = -1.0
        self.seconds = 0.0
        self.loss_sum, self.loss_steps = 0.0, 0
        self._graph: gpu.GraphedStep | None = None

    def _use(self, dataset: Dataset) -> None:
        """Divide the training data into what is learned from and what is held out."""
        self.dataset = dataset
        self.fit = self.holdout = dataset.train
        if self.recipe.validation:
            self.fit, self.holdout = validation_split(dataset.train, self.recipe.validation, self.config.seed)
        self.inputs, self.labels = torch.from_numpy(self.fit.x), torch.from_numpy(self.fit.y)

    def start(self, *, overwrite: bool = False) -> None:
        """Make the run's folder."""
        self._check_inputs()
        if distributed.rank() == 0:
            self.folder.begin(self.config, overwrite=overwrite)
        self._make_optimizer()

    def _check_inputs(self) -> None:
        """Refuse data from which nothing can be learned because the encoder makes the same bits of every sample."""
        bits = self.model.encode(self.inputs[:_LOOKED_AT].to(self.device))
        if len(bits) > 1 and bool((bits == bits[:1]).all()):
            low, high = self.inputs.min().item(), self.inputs.max().item()
            raise ValueError(
                f"all input bits of {self.dataset.name} are the same in the first {len(bits):,} samples; values span "
                f"{low:.4g} to {high:.4g}: scale them to [0, 1] (whole numbers: 0 to 255), or try --encoding quantile"
            )

    def resume(self) -> None:
        """Go on from the last checkpoint, or from the beginning where there is none yet."""
        path = self.folder.file("last.safetensors")
        if path.exists():
            saved = checkpoint.load(path)
            dataset, task = same_data(saved.header, self.dataset, path)
            if dataset is not self.dataset:
                self._use(dataset)
            if task != self.task:
                self.task, self.config = task, settle(self._given, task)
            if "data" not in saved.header:
                what = f"whether {self.dataset.name} has changed since the run began"
                self.notes.append(f"{what} could not be checked: {path} is from an older gatelight")
            self.model = model_from(saved, path).to(self.device)
            self._make_optimizer()
            self._restore_optimizer(saved, path)
        else:
            self._make_optimizer()
        if distributed.rank() == 0:
            self.folder.prolong(self.config)
            self.folder.trim_metrics(self.step)

    def run(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Train to the end or until ``stop()`` says so; either way the last step is saved. True at the end."""
        steps = self.recipe.steps
        if self.observer:
            self.observer.started(self.step, steps, self.model)
        begun, begun_at = time.monotonic() - self.seconds, self.step
        stopped = False
        # The next batch is encoded while the gates of this one are computed.
        with ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,)) as ahead:
            batch = ahead.submit(self._prepare, self.step)
            while self.step < steps and not stopped:
                bits, y = batch.result()
                if self.step == begun_at:
                    self._record(bits, y)
                batch = ahead.submit(self._prepare, self.step + 1)
                with gpu.advice_on_memory(self.device, self.recipe.batch, self.recipe.accumulate):
                    loss, stopped = self._step(bits, y, stop)
                self.step += 1
                self.loss_sum, self.loss_steps = self.loss_sum + loss, self.loss_steps + 1
                if self.observer:
                    self.observer.stepped(self.step, loss)
                due = self.step % self.recipe.eval_every == 0 or self.step == steps
                if due or stopped:
                    self._checkpoint(time.monotonic() - begun, evaluate=due)
        return self.step >= steps

    def finish(self) -> dict[str, Any]:
        """Measure the best and the last weights on the test set and write ``result.json``."""
        result: dict[str, Any] = {
            "dataset": self.dataset.name,
            "steps": self.step,
            "seconds": round(self.seconds, 3),
            "gates": self.model.gates,
            "parameters": sum(p.numel() for p in self.model.parameters()),
        }
        distributed.barrier()
        for which in ("best", "last"):
            path = self.folder.file(f"{which}.safetensors")
            saved = checkpoint.load(path)
            model = model_from(saved, path).to(self.device)
            accuracy = self._accuracy(model, self.dataset.test)
            result[which] = {
                "step": saved.header["step"],
                "soft_accuracy": accuracy.soft,
                "discrete_accuracy": accuracy.discrete,
            }
        if distributed.rank() == 0:
            write_text(self.folder.file("result.json"), json.dumps(result, indent=2) + "\n")
        return result

    def _prepare(self, step: int) -> tuple[Tensor, Tensor]:
        """The encoded samples and the labels of a step that are this process's share."""
        picked = self.order.at(step)
        x, y = self.inputs[picked], self.labels[picked]
        if self.recipe.augment != "none":
            generator = torch.Generator().manual_seed(_mix(self.config.seed, step, 1))
            crop, flip = "crop" in self.recipe.augment, "flip" in self.recipe.augment
            x = augment(x, generator, crop=crop, flip=flip, scale=(self.recipe.augment_scale, 1.0))
            if self.task.binary:
                x = x.round()  # a resampled image of bits is one of bits
        mine = distributed.share(len(picked))
        return self.model.encode(x[mine].to(self.device)), y[mine].to(self.device)

    def _record(self, bits: Tensor, y: Tensor) -> None:
        """Record the step as a CUDA graph where there is one backward pass a step, the same every time.

        No other thread may use the GPU meanwhile, so this comes before the next batch is prepared.
        """
        random = self.model.intervention is not None or self.model.dropout is not None
        parameters = list(self.model.parameters())
        if self.recipe.accumulate == 1 and not random and len(y) and gpu.wanted(self.device, parameters):
            self.model.train()
            with gpu.advice_on_memory(self.device, self.recipe.batch, self.recipe.accumulate):
                self._graph = gpu.try_to_record(self._loss, parameters, bits, y)

    def _loss(self, bits: Tensor, y: Tensor) -> Tensor:
        """The share of these samples in the mean loss of the whole batch."""
        return cross_entropy(self.model.scores(bits), y, reduction="sum") / self.recipe.batch

    def _step(self, bits: Tensor, y: Tensor, stop: Callable[[], bool]) -> tuple[float, bool]:
        """One optimiser step; the mean loss, and whether any process was told to stop."""
        self._seed(distributed.rank())
        self._set_learning_rate()
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        total = torch.zeros(2, device=self.device)
        if self._graph is not None and self._graph.takes(bits, y):
            total[0] = self._graph(bits, y)
        else:
            pieces = min(self.recipe.accumulate, len(y))
            for bits_part, y_part in zip(bits.tensor_split(pieces), y.tensor_split(pieces), strict=True):
                loss = self._loss(bits_part, y_part)
                loss.backward()
                total[0] += loss.detach()
        total[1] = float(stop())
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        distributed.sum_over_processes([*gradients, total])
        self.optimizer.step()
        loss_value, stopped = total.tolist()
        return loss_value, stopped > 0

    def _seed(self, stream: int) -> None:
        """Make what the regularisers draw in this step depend on (seed, step, process) alone."""
        if self.model.intervention is not None or self.model.dropout is not None:
            torch.manual_seed(_mix(self.config.seed, self.step, 2 + stream))

    def _checkpoint(self, seconds: float, *, evaluate: bool) -> None:
        """Save where training stands, after an evaluation if one is due, unless it has diverged."""
        self.seconds = seconds
        if not math.isfinite(self.loss_sum):
            raise ValueError(f"the loss is not finite at step {self.step}; try a smaller --lr")
        if evaluate:
            self._evaluate()
        self._save()

    def _set_learning_rate(self) -> None:
        lr = self.recipe.lr
        if self.recipe.schedule == "cosine":
            lr *= 0.5 * (1 + math.cos(math.pi * self.step / self.recipe.steps))
        for group in self.optimizer.param_groups:
            group["lr"] = lr

    def _evaluate(self) -> None:
        accuracy = self._accuracy(self.model, self.holdout)
        row = {
            "step": self.step,
            "loss": self.loss_sum / self.loss_steps,
            "lr": self.optimizer.param_groups[0]["lr"],
            "on": "train" if self.holdout is self.fit else "validation",
            "soft_accuracy": accuracy.soft,
            "soft_loss": accuracy.soft_loss,
            "discrete_accuracy": accuracy.discrete,
            "seconds": round(self.seconds, 3),
        }
        self.loss_sum, self.loss_steps = 0.0, 0
        # Of equal evaluations the later one: its weights have learned for longer.
        if accuracy.discrete >= self.best:
            self.best = accuracy.discrete
            if distributed.rank() == 0:
                checkpoint.save(self.folder.file("best.safetensors"), self._weights(), self._header())
        if distributed.rank() == 0:
            self.folder.append_metrics(row)
        if self.observer:
            self.observer.evaluated(row)

    def _accuracy(self, model: LogicNetwork, split: Split) -> Accuracy:
        """Accuracy on a split, each process on its share."""
        mine = distributed.share(len(split))
        counts = evaluate(model, Split(split.x[mine], split.y[mine]) if distributed.world_size() > 1 else split)
        total = torch.tensor([counts.soft_hits, counts.discrete_hits, counts.loss_sum], dtype=torch.float64)
        total = total.to(self.device)
        distributed.sum_over_processes([total])
        soft, discrete, loss = total.tolist()
        return Accuracy(soft / len(split), discrete / len(split), loss / len(split))

    def _weights(self) -> dict[str, Tensor]:
        return {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}

    def _header(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "best": self.best,
            "seconds": self.seconds,
            "loss_sum": self.loss_sum,
            "loss_steps": self.loss_steps,
            "config": self.config.to_flat(),
            "task": dataclasses.asdict(self.task),
            "classes": list(self.dataset.classes),
            "feature_names": list(self.dataset.feature_names),
            "encoding": None if self.dataset.encoding is None else self.dataset.encoding.to_dict(),
            "data": self.dataset.fingerprint,
        }

    def _save(self) -> None:
        if distributed.rank() != 0:
            return
        tensors = self._weights()
        for name, parameter in self.model.named_parameters():
            for moment in _MOMENTS:
                tensors[f"adam.{moment}.{name}"] = self.optimizer.state[parameter][moment]
        if not self.folder.file("best.safetensors").exists():
            checkpoint.save(self.folder.file("best.safetensors"), self._weights(), self._header())
        checkpoint.save(self.folder.file("last.safetensors"), tensors, self._header())

    def _make_optimizer(self) -> None:
        # Weight decay apart from the gradients, as AdamW has it: added to gradients this small, it would drown them.
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=self.recipe.lr, weight_decay=self.recipe.weight_decay, fused=True
        )

    def _restore_optimizer(self, saved: checkpoint.Checkpoint, path: Path) -> None:
        header = saved.header
        try:
            self.step, self.best, self.seconds = int(header["step"]), float(header["best"]), float(header["seconds"])
            self.loss_sum, self.loss_steps = float(header["loss_sum"]), int(header["loss_steps"])
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{path}: the header does not say where training stood") from None
        for name, parameter in self.model.named_parameters():
            state: dict[str, Tensor] = {"step": torch.tensor(float(self.step), device=self.device)}
            for moment in _MOMENTS:
                tensor = saved.tensors.get(f"adam.{moment}.{name}")
                if tensor is None or tensor.shape != parameter.shape or tensor.dtype != parameter.dtype:
                    raise ValueError(f"{path} lacks the optimiser state of {name}, or it has another shape")
                state[moment] = tensor.to(self.device)
            self.optimizer.state[parameter] = state


_MOMENTS = ("exp_avg", "exp_avg_sq")
_LOOKED_AT = 1_000


def _mix(seed: int, step: int, stream: int) -> int:
    """One seed from three numbers."""
    return int(np.random.SeedSequence([seed, step, stream]).generate_state(1, np.uint64)[0] >> np.uint64(1))
