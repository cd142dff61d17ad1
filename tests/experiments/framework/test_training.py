import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest

from gatelight.experiments.framework import runner
from gatelight.experiments.framework.cell import Context, StoppedError, key
from gatelight.experiments.framework.gradients import network
from gatelight.experiments.framework.networks import convolutional, recipe
from gatelight.experiments.framework.neural_network import NeuralNetwork
from gatelight.experiments.framework.runner import Machine
from gatelight.experiments.framework.store import Store
from gatelight.experiments.framework.training import RunConfig, Training, build, gates_of
from gatelight.experiments.paper.gate_outputs import GateOutputs

TINY = Training(recipe("smoke", width=40, steps=20, eval_every=5))
LOOK = GateOutputs(network("smoke", width=60, layers=3), (0, 3, 6))
CNN = NeuralNetwork("digits", 3, 4, 12, 20, 0.01, False, 5, 0)


@pytest.mark.parametrize(("cell", "calls"), [(TINY, 13), (LOOK, 5), (CNN, 8)])
def test_an_interrupted_cell_goes_on_to_the_same_result(
    cell: Any, calls: int, tmp_path: Path, recorder: Any, stop_after: Any
) -> None:
    whole = cell.run(Context(_made(tmp_path / "whole")))
    store = Store(tmp_path / "store")
    with pytest.raises(StoppedError):
        runner.run([cell], store, Machine(), recorder, stop_after(calls))
    assert store.load(cell) is None
    saved = {p.name for p in store.run_folder(cell).rglob("*") if p.is_file()}
    assert saved & {"last.safetensors", "snapshots.json", "cnn.safetensors"}
    assert runner.run([cell], store, Machine(), recorder, lambda: False) == []
    assert store.load(cell) == whole
    assert not store.run_folder(cell).exists()


@pytest.mark.parametrize(
    ("cell", "calls", "shares"), [(TINY, 13, [5, 10, 15, 20]), (LOOK, 5, [1, 2, 3]), (CNN, 8, [5, 8, 10])]
)
def test_a_resumed_cell_does_not_begin_again(
    cell: Any, calls: int, shares: list[int], tmp_path: Path, stop_after: Any
) -> None:
    told: list[float] = []
    context = Context(_made(tmp_path / "run"), stop=stop_after(calls), advanced=lambda share, _: told.append(share))
    with pytest.raises(StoppedError):
        cell.run(context)
    cell.run(dataclasses.replace(context, stop=lambda: False))
    whole = {TINY: 20, LOOK: 3, CNN: 12}[cell]
    assert told == [share / whole for share in shares]


def test_a_training_tells_its_curve_and_accuracies(tmp_path: Path) -> None:
    result = TINY.run(Context(_made(tmp_path / "run")))
    assert result["curve"]["step"] == [5, 10, 15, 20]
    assert {len(values) for values in result["curve"].values()} == {4}
    assert result["gates"] == gates_of(TINY.config) == 80
    for part in ("train", "best", "last"):
        assert 0 <= result[part]["discrete_accuracy"] <= 1
    assert "seconds" not in str(result)


def test_a_network_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown model 'clgn'; did you mean 'cdlgn'"):
        Training(convolutional("smoke", model="clgn")).run(Context(tmp_path))


@pytest.mark.parametrize("config", [recipe("smoke", depth_scale=3), convolutional("smoke", width=8, depth_scale=2)])
def test_gates_are_counted_without_building_the_network(config: RunConfig) -> None:
    assert gates_of(config) == pytest.approx(build(config).gates, rel=0.02)


def test_the_papers_setting() -> None:
    config = recipe("paper", depth_scale=20, parametrization="op")
    model, how = config.model, config.optimization
    assert (config.dataset, how.steps, how.batch, how.lr) == ("cifar100", 250_000, 100, 0.01)
    assert (how.augment, how.augment_scale, how.validation) == ("crop-flip", 0.5, 0.1)
    assert (model.layers, model.width, model.thresholds) == (4, 128_000, 3)
    assert model.temperature == pytest.approx(100 / math.sqrt(10), abs=0.01)
    assert gates_of(config) == 80 * 128_000


def test_cells_of_different_experiments_are_the_same() -> None:
    one, two = Training(recipe("cpu", depth_scale=20, seed=1)), Training(recipe("cpu", seed=1, depth_scale=20))
    assert key(one) == key(two)
    assert key(one) != key(Training(recipe("cpu", depth_scale=20, seed=2)))


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
