"""Runs cells one after another and keeps what they give, one file each."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gatelight import plots
from gatelight.experiments.cell import Cell, Context, StoppedError, key, settings
from gatelight.experiments.experiment import Experiment, Results
from gatelight.files import write_text

#: What data, machine and numbers can do to a cell; anything else is a mistake in the program and stops it.
FAILURES = (ArithmeticError, ImportError, LookupError, MemoryError, OSError, RuntimeError, ValueError)


class Observer(Protocol):
    """Is told how an experiment goes."""

    def began(self, cell: Cell) -> None:
        """A cell starts."""

    def advanced(self, cell: Cell, share: float, text: str) -> None:
        """A share of a cell is done."""

    def ended(self, cell: Cell, seconds: float) -> None:
        """A cell is finished and kept."""

    def failed(self, cell: Cell, why: str) -> None:
        """A cell has failed; the others go on."""


class Store:
    """A folder of results.

    cells/KEY.json      one finished cell
    runs/KEY/           what an unfinished cell has saved
    NAME-SCALE.json     all results of an experiment, beside its figure as .png and .svg

    Args:
        folder: The folder; made when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, cell: Cell) -> dict[str, Any] | None:
        """The result of a cell, or None if it is not finished."""
        path = self.folder / "cells" / f"{key(cell)}.json"
        if not path.exists():
            return None
        result: dict[str, Any] = _read(path)["result"]
        return result

    def save(self, cell: Cell, result: dict[str, Any], seconds: float) -> None:
        """Keep the result of a cell and forget what it had saved on its way."""
        path = self.folder / "cells" / f"{key(cell)}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        entry = {"kind": type(cell).__name__, "version": cell.version, "settings": settings(cell)}
        write_text(path, json.dumps({**entry, "seconds": round(seconds, 1), "result": result}, allow_nan=False) + "\n")
        shutil.rmtree(self.run_folder(cell), ignore_errors=True)

    def run_folder(self, cell: Cell) -> Path:
        """Where a cell saves what it needs to go on."""
        return self.folder / "runs" / key(cell)

    def data_file(self, experiment: Experiment, scale: str) -> Path:
        """The file with all results of an experiment."""
        return self.folder / f"{experiment.name}-{scale}.json"

    def published(self, experiment: Experiment, scale: str) -> Results:
        """What the experiment's own file holds."""
        wanted = experiment.cells(scale)
        path = self.data_file(experiment, scale)
        together: dict[str, Any] = _read(path)["cells"] if path.exists() else {}
        return Results(wanted, [(cell, together[key(cell)]["result"]) for cell in wanted if key(cell) in together])

    def results(self, experiment: Experiment, scale: str) -> Results:
        """What is finished, from the experiment's file and from those of its cells."""
        published = self.published(experiment, scale)
        known = {key(cell): result for cell, result in published.finished}
        found = [(cell, known.get(key(cell)) or self.load(cell)) for cell in published.wanted]
        return Results(published.wanted, [(cell, result) for cell, result in found if result is not None])

    def write(self, experiment: Experiment, scale: str) -> list[Path]:
        """Draw what is finished and put all results beside the figure; nothing if nothing is."""
        results = self.results(experiment, scale)
        if not results.finished:
            return []
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.data_file(experiment, scale)
        together = {key(c): {"label": c.label, "settings": settings(c), "result": r} for c, r in results.finished}
        head = {"experiment": experiment.name, "scale": scale, "about": experiment.settings(scale)}
        lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in together.items())
        # One line for each cell: small files, and differences that can be read.
        write_text(path, json.dumps(head)[:-1] + f', "cells": {{\n{lines}\n}}}}\n')
        figure = experiment.draw(results)
        pictures = [path.with_suffix(ending) for ending in (".png", ".svg")]
        for picture in pictures:
            plots.save(figure, picture)
        return [*pictures, path]


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
    """Run cells one after another; those that failed.

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


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON ({error}); delete it to compute it again") from None
    if not isinstance(value, dict) or not any(isinstance(value.get(part), dict) for part in ("result", "cells")):
        raise ValueError(f"{path} holds no result; delete it to compute it again")
    return value
