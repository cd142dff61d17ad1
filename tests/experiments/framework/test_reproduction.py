"""Whole experiments: what is left of each, and when it is drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from matplotlib.figure import Figure

from gatelight import plots
from gatelight.experiments.framework import ray_runner
from gatelight.experiments.framework.cell import Cell, Context, StoppedError
from gatelight.experiments.framework.experiment import Experiment, Results
from gatelight.experiments.framework.reproduction import plan, reproduce
from gatelight.experiments.framework.runner import Machine
from gatelight.experiments.framework.store import Store


@dataclass(frozen=True)
class Number:
    """A cell that fails if it is negative."""

    version: ClassVar[int] = 1
    timed: ClassVar[bool] = False
    value: int

    @property
    def label(self) -> str:
        return str(self.value)

    @property
    def seconds(self) -> float:
        return 1.0

    def run(self, context: Context) -> dict[str, Any]:
        if self.value < 0:
            raise ValueError("negative")
        return {"value": self.value}


@dataclass(frozen=True)
class Timed(Number):
    """A cell that must have the machine to itself."""

    timed: ClassVar[bool] = True


class Events:
    """Notes in order what is told."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def began(self, cell: Cell) -> None:
        pass

    def advanced(self, cell: Cell, share: float, text: str) -> None:
        pass

    def ended(self, cell: Cell, seconds: float) -> None:
        self.seen.append(cell.label)

    def failed(self, cell: Cell, why: str) -> None:
        self.seen.append(f"{cell.label} failed")

    def concluded(self, experiment: Experiment, paths: list[Path]) -> None:
        assert all(path.exists() for path in paths)
        self.seen.append(f"{experiment.name}: {len(paths)} files")


def _draw(results: Results) -> Figure:
    figure, (axes,) = plots.new_figure()
    axes.plot([r["value"] for _, r in results.found(Number)])
    return figure


def experiment(name: str, *cells: Number) -> Experiment:
    return Experiment(name, name, "none", lambda scale: scale, lambda scale: list(cells), (), _draw)


def test_each_experiment_is_written_with_its_last_cell(folder: Path) -> None:
    store, events = Store(folder), Events()
    made = [experiment("a", Number(1), Number(2)), experiment("b", Number(2), Number(-3)), experiment("c", Number(1))]
    parts = plan(made, "smoke", store)
    assert [(p.known, len(p.cells), p.shared) for p in parts] == [(0, 2, 0), (0, 1, 1), (0, 0, 1)]
    assert reproduce(parts, "smoke", store, Machine(), events, lambda: False) == [Number(-3)]
    assert events.seen == ["1", "c: 3 files", "2", "a: 3 files", "-3 failed", "b: 3 files"]
    again = Events()
    parts = plan(made, "smoke", store)
    assert [(p.known, len(p.cells)) for p in parts] == [(2, 0), (1, 1), (1, 0)]
    reproduce(parts[:1], "smoke", store, Machine(), again, lambda: False)
    assert again.seen == ["a: 3 files"]


def test_stopping_leaves_the_rest_for_later(folder: Path, stop_after: Callable[[int], Callable[[], bool]]) -> None:
    store, events = Store(folder), Events()
    made = [experiment("a", Number(1)), experiment("b", Number(2))]
    with pytest.raises(StoppedError):
        reproduce(plan(made, "smoke", store), "smoke", store, Machine(), events, stop_after(2))
    assert events.seen == ["1", "a: 3 files"]
    assert [len(part.cells) for part in plan(made, "smoke", store)] == [0, 1]


def test_what_measures_time_runs_here_and_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []

    def send(cells: list[Cell], *_: Any, address: str, threads: int) -> list[Cell]:
        sent.append(([cell.label for cell in cells], address, threads))
        return []

    monkeypatch.setattr(ray_runner, "run", send)
    store, events = Store(folder), Events()
    parts = plan([experiment("a", Number(1), Timed(2), Number(3))], "smoke", store)
    reproduce(parts, "smoke", store, Machine(), events, lambda: False, ray="local", threads=2)
    assert events.seen == ["2"]
    assert sent == [(["1", "3"], "local", 2)]
