import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from matplotlib.figure import Figure

from gatelight import plots
from gatelight.config import Optimization, RunConfig
from gatelight.experiments.framework import runner
from gatelight.experiments.framework.cell import Context, StoppedError, key, settings
from gatelight.experiments.framework.experiment import (
    FAILS,
    HOLDS,
    IN_PART,
    NOT_RUN,
    Claim,
    Experiment,
    Judgement,
    MissingResultError,
    Results,
    verdict,
)
from gatelight.experiments.framework.runner import Machine
from gatelight.experiments.framework.store import Store

RUNS: list[int] = []


@dataclass(frozen=True)
class Square:
    """A cell that notes that it ran, and fails for negative numbers."""

    version: ClassVar[int] = 1
    timed: ClassVar[bool] = False
    number: int
    extra: str = "none"

    @property
    def label(self) -> str:
        return f"square of {self.number}"

    @property
    def seconds(self) -> float:
        return 1.0

    def run(self, context: Context) -> dict[str, Any]:
        assert context.folder.is_dir()
        RUNS.append(self.number)
        context.advanced(0.5, "half")
        if self.number < 0:
            raise ValueError(f"{self.number} is\nnegative")
        return {"square": self.number**2}


def _sum_is(expected: int) -> Claim:
    def judge(results: Results) -> Judgement:
        total = sum(r["square"] for _, r in results.all(Square))
        return Judgement(str(total), verdict(total == expected))

    return Claim("the sum", str(expected), judge)


def _draw(results: Results) -> Figure:
    figure, (axes,) = plots.new_figure()
    axes.plot([r["square"] for _, r in results.found(Square)])
    return figure


def experiment(*numbers: int, claim: int = 5) -> Experiment:
    return Experiment(
        "squares", "Squares", "fig", lambda s: s, lambda s: [Square(n) for n in numbers], (_sum_is(claim),), _draw
    )


@pytest.fixture(autouse=True)
def _forget() -> None:
    RUNS.clear()


def _run(made: Experiment, store: Store, observer: Any, stop: Any = lambda: False) -> list[Any]:
    return list(runner.run(store.results(made, "smoke").unfinished, store, Machine(), observer, stop))


def test_finished_cells_are_not_run_again(folder: Path, recorder: Any) -> None:
    store = Store(folder)
    assert _run(experiment(1, 2), store, recorder) == []
    assert _run(experiment(1, 2, 3), store, recorder) == []
    assert RUNS == [1, 2, 3]
    assert recorder.ended_cells == ["square of 1", "square of 2", "square of 3"]
    assert [r for _, r in store.results(experiment(3, 1), "smoke").finished] == [{"square": 9}, {"square": 1}]
    assert not list((folder / "runs").iterdir())


def test_a_failed_cell_is_reported_and_leaves_the_others_alone(folder: Path, recorder: Any) -> None:
    store = Store(folder)
    failed = _run(experiment(1, -2, 3), store, recorder)
    assert [cell.number for cell in failed] == [-2]
    assert recorder.failures == {"square of -2": "ValueError: -2 is negative"}
    assert recorder.ended_cells == ["square of 1", "square of 3"]
    RUNS.clear()
    _run(experiment(1, -2, 3), store, recorder)
    assert RUNS == [-2]


def test_stopping_keeps_what_is_finished(folder: Path, recorder: Any, stop_after: Any) -> None:
    store = Store(folder)
    with pytest.raises(StoppedError):
        _run(experiment(1, 2, 3), store, recorder, stop_after(3))
    assert RUNS == [1, 2]
    _run(experiment(1, 2, 3), store, recorder)
    assert RUNS == [1, 2, 3]


def test_the_data_file_alone_holds_the_results(folder: Path, recorder: Any) -> None:
    store, made = Store(folder), experiment(1, 2)
    assert store.write(made, "smoke") == []
    _run(made, store, recorder)
    paths = store.write(made, "smoke")
    assert [p.name for p in paths] == ["squares-smoke.png", "squares-smoke.svg", "squares-smoke.json"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert paths[1].read_text().startswith("<?xml")
    together = json.loads(paths[2].read_text())
    assert together["scale"] == "smoke"
    assert [entry["settings"] for entry in together["cells"].values()] == [{"number": 1}, {"number": 2}]
    for file in (folder / "cells").iterdir():
        file.unlink()
    assert store.results(made, "smoke").unfinished == []
    assert store.results(experiment(1, 2, 7), "smoke").unfinished == [Square(7)]


def test_figures_repeat_bit_for_bit(folder: Path, recorder: Any) -> None:
    store, made = Store(folder), experiment(1, 2)
    _run(made, store, recorder)
    first = [p.read_bytes() for p in store.write(made, "smoke")]
    assert [p.read_bytes() for p in store.write(made, "smoke")] == first


@pytest.mark.parametrize("text", ["{", "[]", '{"no": 1}', "\x00"])
def test_a_damaged_result_is_named(folder: Path, recorder: Any, text: str) -> None:
    store = Store(folder)
    _run(experiment(1), store, recorder)
    (file,) = (folder / "cells").iterdir()
    file.write_text(text)
    with pytest.raises(ValueError, match=f"{file.name}.*delete it"):
        store.results(experiment(1), "smoke")


def test_results_must_be_numbers_that_json_knows(folder: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        Store(folder).save(Square(1), {"square": float("nan")}, 0.0)
    assert Store(folder).load(Square(1)) is None


def test_keys_depend_on_settings_and_version_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert key(Square(1)) == key(Square(1, "none")) != key(Square(2))
    assert key(Square(1)) != key(Square(1, "more"))
    before = key(Square(1))
    monkeypatch.setattr(Square, "version", 2)
    assert key(Square(1)) != before
    assert settings(RunConfig(optimization=Optimization(lr=0.5), seed=0)) == {"lr": 0.5}


def test_a_claim_without_results_is_not_run_yet() -> None:
    made = experiment(1, 2)
    claim = made.claims[0]
    cells = [Square(1), Square(2)]
    assert claim.judged(Results(cells, [])).verdict == NOT_RUN
    part = claim.judged(Results(cells, [(cells[0], {"square": 1})]))
    assert (part.verdict, part.reason) == (NOT_RUN, "1 of 2 cells are finished")
    whole = [(cell, {"square": cell.number**2}) for cell in cells]
    assert claim.judged(Results(cells, whole)) == Judgement("5", HOLDS)
    assert dataclasses.replace(_sum_is(4)).judged(Results(cells, whole)).verdict == FAILS
    assert verdict(True, False) == IN_PART
    with pytest.raises(MissingResultError):
        Results(cells, whole).all(Square, lambda c: c.number == 9)


@dataclass(frozen=True)
class Undefined(Square):
    """A cell whose result cannot be kept."""

    def run(self, context: Context) -> dict[str, Any]:
        return {"square": float("nan")}


def test_a_result_that_cannot_be_kept_fails_its_cell_alone(tmp_path: Path, recorder: Any) -> None:
    cells = [Undefined(1), Square(2)]
    assert runner.run(cells, Store(tmp_path), Machine(), recorder, lambda: False) == [Undefined(1)]
    assert recorder.ended_cells == ["square of 2"]
    assert Store(tmp_path).load(Square(2)) == {"square": 4}


def test_a_file_with_other_things_in_its_place_is_named(tmp_path: Path) -> None:
    made = experiment(1)
    (tmp_path / "squares-cpu.json").write_text('{"result": 3, "cells": 4}')
    with pytest.raises(ValueError, match=r"squares-cpu\.json holds no result"):
        Store(tmp_path).results(made, "cpu")
