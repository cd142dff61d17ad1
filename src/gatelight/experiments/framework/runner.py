"""Runs cells one after another and keeps their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gatelight.experiments.framework.cell import Cell, Context, StoppedError
from gatelight.experiments.framework.store import Store

#: How data, machine and numbers can make a cell fail; any other exception is a bug and ends the program.
FAILURES = (ArithmeticError, ImportError, LookupError, MemoryError, OSError, RuntimeError, ValueError)


class Observer(Protocol):
    """Gets progress reports about cells."""

    def began(self, cell: Cell) -> None:
        """A cell starts."""

    def advanced(self, cell: Cell, share: float, text: str) -> None:
        """A share of a cell is done."""

    def ended(self, cell: Cell, seconds: float) -> None:
        """A cell is finished and kept."""

    def failed(self, cell: Cell, why: str) -> None:
        """A cell has failed; the others continue."""


@dataclass(frozen=True)
class Machine:
    """What cells run on: folder of data sets, device."""

    data: Path | None = None
    device: str = "cpu"

    def context(self, store: Store, cell: Cell, **extra: Any) -> Context:
        """The context of one cell, with its folder made."""
        folder = store.run_folder(cell)
        folder.mkdir(parents=True, exist_ok=True)
        return Context(folder, self.data, self.device, **extra)


def run(
    cells: Sequence[Cell], store: Store, machine: Machine, observer: Observer, stop: Callable[[], bool]
) -> list[Cell]:
    """Run cells one after another and return those that failed.

    Raises:
        StoppedError: If ``stop()`` said so; everything finished is kept and a cell that can has saved where it stood.
    """
    failed = []
    for cell in cells:
        if stop():
            raise StoppedError
        observer.began(cell)
        begun = time.monotonic()

        def advanced(share: float, text: str, cell: Cell = cell) -> None:
            observer.advanced(cell, share, text)

        try:
            result = cell.run(machine.context(store, cell, stop=stop, advanced=advanced))
            seconds = time.monotonic() - begun
            store.save(cell, result, seconds)
        except FAILURES as error:
            observer.failed(cell, explain(error))
            failed.append(cell)
        else:
            observer.ended(cell, seconds)
    return failed


def explain(error: BaseException) -> str:
    """Why a cell failed, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
