"""Runs whole experiments: only unfinished cells, shared cells once, figures as soon as they can be drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gatelight.experiments.framework import ray_runner, runner
from gatelight.experiments.framework.cell import Cell
from gatelight.experiments.framework.experiment import Experiment
from gatelight.experiments.framework.runner import Machine
from gatelight.experiments.framework.store import Store


class Observer(runner.Observer, Protocol):
    """Gets progress reports about experiments."""

    def concluded(self, experiment: Experiment, paths: list[Path]) -> None:
        """All cells of an experiment are done; its figure and its data have been written to ``paths``."""


@dataclass(frozen=True)
class Part:
    """What an experiment adds to a reproduction.

    Attributes:
        experiment: The experiment.
        known: How many of its cells are finished.
        cells: Those to run, without those that an earlier experiment runs.
        shared: How many cells an earlier experiment runs.
    """

    experiment: Experiment
    known: int
    cells: tuple[Cell, ...]
    shared: int


def plan(experiments: Iterable[Experiment], scale: str, store: Store) -> list[Part]:
    """What is left to run of some experiments, each cell once."""
    parts: list[Part] = []
    taken: set[Cell] = set()
    for experiment in experiments:
        results = store.results(experiment, scale)
        new = tuple(cell for cell in results.unfinished if cell not in taken)
        parts.append(Part(experiment, len(results.finished), new, len(results.unfinished) - len(new)))
        taken.update(new)
    return parts


def reproduce(
    parts: Sequence[Part],
    scale: str,
    store: Store,
    machine: Machine,
    observer: Observer,
    stop: Callable[[], bool],
    *,
    ray: str | None = None,
    threads: int = 1,
) -> list[Cell]:
    """Run what is left of some experiments, draw each as soon as its last cell is done; return the cells that failed.

    Args:
        parts: From :func:`plan`.
        scale: The one given to :func:`plan`.
        store: Where results are kept.
        machine: What cells run on.
        observer: Gets progress reports.
        stop: Says whether to stop.
        ray: Address of a Ray cluster that runs the cells, all but those that measure time; None runs them here.
        threads: Cores for each cell on the cluster.

    Raises:
        StoppedError: If ``stop()`` said so; everything finished is kept.
    """
    todo = [cell for part in parts for cell in part.cells]
    writer = _Writer([part.experiment for part in parts], todo, scale, store, observer)
    # A cell that measures time has the machine to itself, before the others are sent to the cluster.
    here = [cell for cell in todo if cell.timed or ray is None]
    failed = runner.run(here, store, machine, writer, stop)
    remote = [cell for cell in todo if cell not in here]
    if ray is not None and remote:
        failed += ray_runner.run(remote, store, machine, writer, stop, address=ray, threads=threads)
    return failed


class _Writer:
    """Stands between a runner and an observer, and writes each experiment when none of its cells is left to run."""

    def __init__(
        self, experiments: Sequence[Experiment], todo: Sequence[Cell], scale: str, store: Store, observer: Observer
    ) -> None:
        self._scale, self._store, self._observer = scale, store, observer
        self._waiting = [(experiment, set(todo).intersection(experiment.cells(scale))) for experiment in experiments]
        self._write_finished()

    def began(self, cell: Cell) -> None:
        self._observer.began(cell)

    def advanced(self, cell: Cell, share: float, text: str) -> None:
        self._observer.advanced(cell, share, text)

    def ended(self, cell: Cell, seconds: float) -> None:
        self._observer.ended(cell, seconds)
        self._write_finished(cell)

    def failed(self, cell: Cell, why: str) -> None:
        self._observer.failed(cell, why)
        self._write_finished(cell)

    def _write_finished(self, *done: Cell) -> None:
        for _, left in self._waiting:
            left.difference_update(done)
        for experiment, left in self._waiting:
            if not left:
                self._observer.concluded(experiment, self._store.write(experiment, self._scale))
        self._waiting = [(experiment, left) for experiment, left in self._waiting if left]
