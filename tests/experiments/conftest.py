from collections.abc import Callable
from pathlib import Path

import pytest

from gatelight.experiments.framework import runner
from gatelight.experiments.framework.catalog import EXPERIMENTS
from gatelight.experiments.framework.cell import Cell
from gatelight.experiments.framework.experiment import Results
from gatelight.experiments.framework.runner import Machine
from gatelight.experiments.framework.store import Store


class Recorder:
    """Notes what a runner tells."""

    def __init__(self) -> None:
        self.ended_cells: list[str] = []
        self.failures: dict[str, str] = {}
        self.shares: list[float] = []

    def began(self, cell: Cell) -> None:
        pass

    def advanced(self, cell: Cell, share: float, text: str) -> None:
        self.shares.append(share)

    def ended(self, cell: Cell, seconds: float) -> None:
        self.ended_cells.append(cell.label)

    def failed(self, cell: Cell, why: str) -> None:
        self.failures[cell.label] = why


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for all smoke runs, so that experiments share cells as they do for a user."""
    return Store(tmp_path_factory.mktemp("reproduction"))


@pytest.fixture(scope="session")
def smoke(store: Store) -> Callable[[str], Results]:
    """Runs what is not finished of an experiment at scale smoke, and gives all results."""

    def run(name: str) -> Results:
        todo = store.results(EXPERIMENTS[name], "smoke").unfinished
        observer = Recorder()
        assert runner.run(todo, store, Machine(), observer, lambda: False) == [], observer.failures
        return store.results(EXPERIMENTS[name], "smoke")

    return run


@pytest.fixture
def stop_after() -> Callable[[int], Callable[[], bool]]:
    """A ``stop`` that says yes from its n-th call on."""

    def make(calls: int) -> Callable[[], bool]:
        count = iter(range(1, 1_000_000))
        return lambda: next(count) >= calls

    return make


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"
