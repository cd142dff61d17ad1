"""Metrics as TensorBoard events, in addition to another observer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorboard  # noqa: F401  (torch's error does not name the missing package)
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from gatelight.training.trainer import Observer


class TensorBoardObserver:
    """An observer that passes everything on and writes evaluations as events."""

    def __init__(self, observer: Observer, folder: Path) -> None:
        self._observer = observer
        self._folder = folder
        self._writer: SummaryWriter | None = None

    def started(self, step: int, steps: int, model: nn.Module) -> None:
        """Open the event file."""
        self._writer = SummaryWriter(str(self._folder))
        self._observer.started(step, steps, model)

    def stepped(self, step: int, loss: float) -> None:
        """Pass on."""
        self._observer.stepped(step, loss)

    def evaluated(self, row: dict[str, Any]) -> None:
        """Write the row's numbers."""
        assert self._writer is not None
        for name in ("loss", "lr", "soft_accuracy", "soft_loss", "discrete_accuracy"):
            self._writer.add_scalar(name, row[name], row["step"])
        self._writer.flush()
        self._observer.evaluated(row)
