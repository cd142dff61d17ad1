"""Where a trainer keeps its results: in memory, or in a folder from which it can continue."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from gatelight.training import checkpoint, distributed
from gatelight.training.checkpoint import Checkpoint
from gatelight.training.run_folder import RunFolder


class Store(Protocol):
    """Keeps rows of metrics, the best weights, and the last weights with the optimizer's state."""

    def append(self, row: dict[str, Any]) -> None:
        """Add an evaluation."""

    def rows(self) -> list[dict[str, Any]]:
        """All evaluations, oldest first."""

    def has_best(self) -> bool:
        """Whether there are best weights yet."""

    def save_best(self, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
        """Keep the best weights."""

    def save_last(self, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
        """Keep what is needed to continue."""

    def best(self) -> Checkpoint:
        """The best weights."""


class MemoryStore:
    """Keeps rows and best weights in memory. Training cannot be resumed from it."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._best: Checkpoint | None = None

    def append(self, row: dict[str, Any]) -> None:
        """Add an evaluation."""
        self._rows.append(row)

    def rows(self) -> list[dict[str, Any]]:
        """All evaluations, oldest first."""
        return self._rows

    def has_best(self) -> bool:
        """Whether there are best weights yet."""
        return self._best is not None

    def save_best(self, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
        """Keep a copy of the best weights."""
        self._best = Checkpoint({name: tensor.detach().clone() for name, tensor in tensors.items()}, header)

    def save_last(self, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
        """Keep nothing: the model itself has the last weights."""

    def best(self) -> Checkpoint:
        """The best weights."""
        if self._best is None:
            raise ValueError("no weights were kept yet")
        return self._best


class FolderStore:
    """Keeps everything in a run's folder; with several processes the first one writes."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)
        self._writes = distributed.rank() == 0

    def append(self, row: dict[str, Any]) -> None:
        """Add an evaluation to ``metrics.jsonl``."""
        if self._writes:
            self.folder.append_metrics(row)

    def rows(self) -> list[dict[str, Any]]:
        """All evaluations, oldest first."""
        return self.folder.metrics()

    def has_best(self) -> bool:
        """Whether there is a ``best.safetensors``."""
        return self.folder.file("best.safetensors").exists()

    def save_best(self, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
        """Write ``best.safetensors``."""
        if self._writes:
            checkpoint.save(self.folder.file("best.safetensors"), tensors, header)

    def save_last(self, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
        """Write ``last.safetensors``."""
        if self._writes:
            checkpoint.save(self.folder.file("last.safetensors"), tensors, header)

    def best(self) -> Checkpoint:
        """The best weights."""
        return checkpoint.load(self.folder.file("best.safetensors"))
