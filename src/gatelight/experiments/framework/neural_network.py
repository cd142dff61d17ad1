"""A cell that trains the paper's small convolutional neural network on thermometer-encoded images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from gatelight.data import Split, validation_split
from gatelight.data.augment import augment
from gatelight.data.batches import Batches
from gatelight.experiments.framework.cell import Context, StoppedError, dataset
from gatelight.nn import Thermometer
from gatelight.ops.backends import cpu
from gatelight.training import adam_state, checkpoint


@dataclass(frozen=True)
class NeuralNetwork:
    """Train the paper's CNN: two 3x3 convolutions, pooling, two linear layers.

    Attributes:
        dataset: Images.
        thresholds: Of the thermometer.
        channels: Of the first convolution, 256 in the paper; the second has twice as many.
        steps: Of Adam.
        batch: Samples of a step.
        lr: Learning rate.
        augment: Whether images are cropped and flipped.
        save_every: Steps between checkpoints.
        seed: Draws weights and the order of the data.
    """

    version: ClassVar[int] = 1
    timed: ClassVar[bool] = False
    dataset: str
    thresholds: int
    channels: int
    steps: int
    batch: int
    lr: float
    augment: bool
    save_every: int
    seed: int

    @property
    def label(self) -> str:
        """Resolution and seed."""
        return f"{self.dataset} CNN thresholds={self.thresholds} seed={self.seed}"

    @property
    def seconds(self) -> float:
        """About how long it takes on two cores."""
        places = 64 if self.dataset == "digits" else 1024
        return (self.steps + 60) * self.batch * places * self.channels * 6e-8 * (1 + self.thresholds / 60)

    def run(self, context: Context) -> dict[str, Any]:
        """Train, continuing from the last checkpoint; accuracy and loss on both sets after the last step."""
        threads = torch.get_num_threads()
        torch.set_num_threads(max(threads, cpu.get_threads() if cpu.is_available() else 1))
        try:
            return self._run(context)
        finally:
            torch.set_num_threads(threads)

    def _run(self, context: Context) -> dict[str, Any]:
        data = dataset(self.dataset, context.data)
        fit, _ = validation_split(data.train, 0.1, self.seed)
        encoder = Thermometer.even(self.thresholds).to(context.device)
        torch.manual_seed(self.seed)
        model = build(data.input_shape[0] * self.thresholds, self.channels, data.num_classes).to(context.device)
        optimizer = torch.optim.Adam(model.parameters(), lr=self.lr)
        path = context.folder / "cnn.safetensors"
        step = _load(path, model, optimizer) if path.exists() else 0
        order = Batches(len(fit), self.batch, self.seed)
        inputs, labels = torch.from_numpy(fit.x), torch.from_numpy(fit.y)
        while step < self.steps:
            picked = order.at(step)
            x = inputs[picked]
            if self.augment:
                x = augment(x, torch.Generator().manual_seed(self.seed * 1_000_003 + step))
            optimizer.zero_grad()
            scores = model(encoder(x.to(context.device)))
            cross_entropy(scores, labels[picked].to(context.device)).backward()
            optimizer.step()
            step += 1
            stopped = context.stop()
            if stopped or step % self.save_every == 0:
                _save(path, model, optimizer, step)
                context.advanced(step / self.steps, f"step {step:,}/{self.steps:,}")
            if stopped:
                raise StoppedError
        seen = Split(fit.x[:5_000], fit.y[:5_000])
        return {
            "parameters": sum(p.numel() for p in model.parameters()),
            "train": _measure(model, encoder, seen, context.device),
            "last": _measure(model, encoder, data.test, context.device),
        }


def build(inputs: int, channels: int, classes: int) -> nn.Sequential:
    """The paper's table of layers, with ``channels`` instead of 256.

    >>> sum(p.numel() for p in build(93, 256, 100).parameters())
    1551716
    """
    return nn.Sequential(
        nn.Conv2d(inputs, channels, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * channels, channels),
        nn.ReLU(),
        nn.Linear(channels, classes),
    )


@torch.no_grad()
def _measure(model: nn.Module, encoder: Thermometer, split: Split, device: str) -> dict[str, float]:
    """Share of correct answers and mean cross-entropy."""
    hits, loss = 0, 0.0
    for first in range(0, len(split), 250):
        x = torch.from_numpy(split.x[first : first + 250]).to(device)
        y = torch.from_numpy(split.y[first : first + 250]).to(device)
        scores = model(encoder(x))
        hits += int((scores.argmax(1) == y).sum())
        loss += float(cross_entropy(scores, y, reduction="sum"))
    return {"soft_accuracy": hits / len(split), "loss": loss / len(split)}


def _save(path: Path, model: nn.Module, optimizer: torch.optim.Adam, step: int) -> None:
    weights = {f"model.{name}": value for name, value in model.state_dict().items()}
    moments = adam_state.tensors(optimizer, dict(model.named_parameters()), step)
    checkpoint.save(path, weights | moments, {"step": step})


def _load(path: Path, model: nn.Module, optimizer: torch.optim.Adam) -> int:
    saved = checkpoint.load(path)
    checkpoint.restore(model, saved, path)
    step = int(saved.header["step"])
    adam_state.restore(optimizer, dict(model.named_parameters()), saved.tensors, step, path)
    return step
