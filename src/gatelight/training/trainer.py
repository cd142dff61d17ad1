"""The training loop.

No random state is carried from step to step: the order of the data, augmentation and random numbers of the model come
from (seed, step), so training that is killed and resumed from its last checkpoint repeats the same bits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from gatelight.data import Split
from gatelight.data.augment import augment
from gatelight.data.batches import Batches
from gatelight.nn import fuse
from gatelight.training import adam_state, cuda_graphs, distributed
from gatelight.training.checkpoint import Checkpoint
from gatelight.training.halves import draws, halves
from gatelight.training.metrics import shared_accuracy
from gatelight.training.recipe import Recipe
from gatelight.training.store import Store


class Observer(Protocol):
    """Gets progress reports, in the process of rank 0."""

    def started(self, step: int, steps: int, model: nn.Module) -> None:
        """Training begins at ``step``."""

    def stepped(self, step: int, loss: float) -> None:
        """A step has been done."""

    def evaluated(self, row: dict[str, Any]) -> None:
        """A row of metrics has been written."""


def _nothing() -> dict[str, Any]:
    return {}


class Trainer:
    """Trains a model that maps a batch to class scores.

    Args:
        model: Any module, [batch, ...] -> [batch, classes]; it is trained in place, on ``device``.
        train: The samples to learn from.
        held_out: The samples to evaluate on; None means ``train``.
        recipe: How it is trained.
        store: Keeps rows of metrics and weights.
        seed: Draws the order of the data, augmentation, and random numbers of the model.
        device: Where it is computed.
        observer: Gets progress reports.
        about: What checkpoints say about the model and its data, besides the step.
        binary: Whether the inputs are bits, and stay so when images are augmented.
    """

    def __init__(
        self,
        model: nn.Module,
        train: Split,
        held_out: Split | None,
        recipe: Recipe,
        store: Store,
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
        observer: Observer | None = None,
        about: Callable[[], dict[str, Any]] = _nothing,
        binary: bool = False,
    ) -> None:
        if recipe.batch < distributed.world_size():
            raise ValueError(f"a batch of {recipe.batch} is too small for {distributed.world_size()} processes")
        self.train, self.held_out = train, train if held_out is None else held_out
        self.recipe, self.store, self.seed = recipe, store, seed
        self.device = torch.device(device)
        self.observer = observer if distributed.rank() == 0 else None
        self.inputs, self.labels = torch.from_numpy(train.x), torch.from_numpy(train.y)
        self.order = Batches(len(train), recipe.batch, seed)
        self.model = model.to(self.device)
        # The halves share the model's parameters; checkpoints use the model's names.
        self._running = fuse(self.model)
        self._halves = halves(self._running)
        self._draws = draws(self.model)
        self._about, self._binary = about, binary
        self.parameters = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        # Weight decay separate from the gradients, as in AdamW: added to gradients this small, it would dominate them.
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(), lr=recipe.lr, weight_decay=recipe.weight_decay, fused=True
        )
        self.step = 0
        self.best = -1.0
        self.seconds = 0.0
        self.loss_sum, self.loss_steps = 0.0, 0
        self._graph: cuda_graphs.GraphedStep | None = None

    def run(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Train to the end or until ``stop()`` says so; either way the last step is saved. True at the end."""
        steps = self.recipe.steps
        if self.observer:
            self.observer.started(self.step, steps, self.model)
        begun, begun_at = time.monotonic() - self.seconds, self.step
        stopped = False
        # The next batch is encoded while the gates of this one are computed.
        with ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,)) as ahead:
            batch = ahead.submit(self.prepare, self.step)
            while self.step < steps and not stopped:
                bits, y = batch.result()
                if self.step == begun_at:
                    self._record(bits, y)
                batch = ahead.submit(self.prepare, self.step + 1)
                with cuda_graphs.advice_on_memory(self.device, self.recipe.batch, self.recipe.accumulate):
                    loss, stopped = self._step(bits, y, stop)
                self.step += 1
                self.loss_sum, self.loss_steps = self.loss_sum + loss, self.loss_steps + 1
                if self.observer:
                    self.observer.stepped(self.step, loss)
                due = self.step % self.recipe.eval_every == 0 or self.step == steps
                if due or stopped:
                    self._checkpoint(time.monotonic() - begun, evaluate=due)
        return self.step >= steps

    def prepare(self, step: int) -> tuple[Tensor, Tensor]:
        """The encoded samples and the labels of a step that are this process's share."""
        picked = self.order.at(step)
        x, y = self.inputs[picked], self.labels[picked]
        if self.recipe.augment != "none":
            generator = torch.Generator().manual_seed(_mix(self.seed, step, 1))
            crop, flip = "crop" in self.recipe.augment, "flip" in self.recipe.augment
            x = augment(x, generator, crop=crop, flip=flip, scale=(self.recipe.augment_scale, 1.0))
            if self._binary:
                x = x.round()  # a resampled image of bits is one of bits
        mine = distributed.share(len(picked))
        return self._halves.encode(x[mine].to(self.device)), y[mine].to(self.device)

    def encode(self, x: Tensor) -> Tensor:
        """The inputs of the learned part of the model, from raw inputs."""
        return self._halves.encode(x.to(self.device))

    def restore(self, saved: Checkpoint, path: Path) -> None:
        """Continue at the step of a checkpoint; the caller loads the model's weights."""
        header = saved.header
        try:
            self.step, self.best, self.seconds = int(header["step"]), float(header["best"]), float(header["seconds"])
            self.loss_sum, self.loss_steps = float(header["loss_sum"]), int(header["loss_steps"])
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{path}: the header does not say at which step training stopped") from None
        adam_state.restore(self.optimizer, self.parameters, saved.tensors, self.step, path)

    def _record(self, bits: Tensor, y: Tensor) -> None:
        """Record the step as a CUDA graph if a step has one backward pass that is the same every time.

        No other thread may use the GPU meanwhile, so this comes before the next batch is prepared.
        """
        parameters = list(self.parameters.values())
        same = self.recipe.accumulate == 1 and not self._draws
        if same and len(y) and cuda_graphs.wanted(self.device, parameters):
            self._running.train()
            with cuda_graphs.advice_on_memory(self.device, self.recipe.batch, self.recipe.accumulate):
                self._graph = cuda_graphs.try_to_record(self._loss, parameters, bits, y)

    def _loss(self, bits: Tensor, y: Tensor) -> Tensor:
        """The share of these samples in the mean loss of the whole batch."""
        return cross_entropy(self._halves.scores(bits), y, reduction="sum") / self.recipe.batch

    def _step(self, bits: Tensor, y: Tensor, stop: Callable[[], bool]) -> tuple[float, bool]:
        """One optimizer step; the mean loss, and whether any process was asked to stop."""
        if self._draws:
            torch.manual_seed(_mix(self.seed, self.step, 2 + distributed.rank()))
        self._set_learning_rate()
        self._running.train()
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
        gradients = [p.grad for p in self.parameters.values() if p.grad is not None]
        distributed.sum_over_processes([*gradients, total])
        self.optimizer.step()
        loss_value, stopped = total.tolist()
        return loss_value, stopped > 0

    def _set_learning_rate(self) -> None:
        lr = self.recipe.lr
        if self.recipe.schedule == "cosine":
            lr *= 0.5 * (1 + math.cos(math.pi * self.step / self.recipe.steps))
        for group in self.optimizer.param_groups:
            group["lr"] = lr

    def _checkpoint(self, seconds: float, *, evaluate: bool) -> None:
        """Save the state of training, after an evaluation if one is due, unless it has diverged."""
        self.seconds = seconds
        if not math.isfinite(self.loss_sum):
            raise ValueError(f"the loss is not finite at step {self.step}; try a smaller lr")
        if evaluate:
            self._evaluate()
        if not self.store.has_best():
            self.store.save_best(self._weights(), self._header())
        moments = adam_state.tensors(self.optimizer, self.parameters, self.step)
        self.store.save_last(self._weights() | moments, self._header())

    def _evaluate(self) -> None:
        accuracy = shared_accuracy(self._running, self.held_out)
        row = {
            "step": self.step,
            "loss": self.loss_sum / self.loss_steps,
            "lr": self.optimizer.param_groups[0]["lr"],
            "on": "train" if self.held_out is self.train else "validation",
            "soft_accuracy": accuracy.soft,
            "soft_loss": accuracy.soft_loss,
            "discrete_accuracy": accuracy.rounded,
            "seconds": round(self.seconds, 3),
        }
        self.loss_sum, self.loss_steps = 0.0, 0
        # Of equal evaluations the later one is kept: its weights have trained for longer.
        if accuracy.rounded >= self.best:
            self.best = accuracy.rounded
            self.store.save_best(self._weights(), self._header())
        self.store.append(row)
        if self.observer:
            self.observer.evaluated(row)

    def _weights(self) -> dict[str, Tensor]:
        return {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}

    def _header(self) -> dict[str, Any]:
        stands = {
            "step": self.step,
            "best": self.best,
            "seconds": self.seconds,
            "loss_sum": self.loss_sum,
            "loss_steps": self.loss_steps,
        }
        return stands | self._about()


def _mix(seed: int, step: int, stream: int) -> int:
    """One seed from three numbers."""
    return int(np.random.SeedSequence([seed, step, stream]).generate_state(1, np.uint64)[0] >> np.uint64(1))
