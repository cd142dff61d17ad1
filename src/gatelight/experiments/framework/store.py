"""Results on disk: one file for each finished cell, and one for each experiment, next to its figure."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from gatelight import plots
from gatelight.experiments.framework.cell import Cell, key, settings
from gatelight.experiments.framework.experiment import Experiment, Results
from gatelight.files import write_text


class Store:
    """A folder of results.

    cells/KEY.json      one finished cell
    runs/KEY/           what an unfinished cell has saved
    NAME-SCALE.json     all results of an experiment, next to its figure as .png and .svg

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
        """Keep the result of a cell and delete what it saved on the way."""
        path = self.folder / "cells" / f"{key(cell)}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        entry = {"kind": type(cell).__name__, "version": cell.version, "settings": settings(cell)}
        write_text(path, json.dumps({**entry, "seconds": round(seconds, 1), "result": result}, allow_nan=False) + "\n")
        shutil.rmtree(self.run_folder(cell), ignore_errors=True)

    def run_folder(self, cell: Cell) -> Path:
        """Where a cell saves what it needs to continue."""
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
        """Draw what is finished and put all results next to the figure; do nothing if nothing is finished."""
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


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON ({error}); delete it to recompute it") from None
    if not isinstance(value, dict) or not any(isinstance(value.get(part), dict) for part in ("result", "cells")):
        raise ValueError(f"{path} holds no result; delete it to recompute it")
    return value
