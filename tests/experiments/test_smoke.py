"""Every experiment at scale smoke: it runs, is judged, drawn, and nothing is computed twice."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gatelight.cli import main
from gatelight.data.sets.digits import load_digits
from gatelight.experiments.framework import ray_runner
from gatelight.experiments.framework.accuracy import running_best
from gatelight.experiments.framework.catalog import EXPERIMENTS
from gatelight.experiments.framework.cell import Context
from gatelight.experiments.framework.comparison import ratio_of_steps
from gatelight.experiments.framework.experiment import NOT_RUN, SCALES, Results
from gatelight.experiments.framework.neural_network import NeuralNetwork
from gatelight.experiments.framework.store import Store
from gatelight.experiments.framework.training import Training
from gatelight.experiments.paper.and_or import INITS
from gatelight.experiments.paper.gate_outputs import GateOutputs, at_half, at_one, at_zero
from gatelight.experiments.paper.regularizers import PLAIN, name_of
from gatelight.experiments.paper.training_cost import Cost
from gatelight.nn import Thermometer

Smoke = Callable[[str], Results]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_smoke(name: str, smoke: Smoke, store: Store) -> None:
    experiment = EXPERIMENTS[name]
    results = smoke(name)
    assert results.unfinished == []
    judged = {claim.text: claim.judged(results) for claim in experiment.claims}
    not_run = [text for text, judgement in judged.items() if judgement.verdict == NOT_RUN]
    assert not_run == (["a ten times wider last layer improves on a lower temperature"] if "class-head" in name else [])
    paths = store.write(experiment, "smoke")
    assert [p.suffix for p in paths] == [".png", ".svg", ".json"]
    assert all(p.stat().st_size > 1_000 for p in paths)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_scale_has_cells_and_words(name: str) -> None:
    experiment = EXPERIMENTS[name]
    for scale in SCALES:
        assert experiment.cells(scale)
        assert experiment.settings(scale)
        assert experiment.seconds(scale) > 0
    assert experiment.seconds("smoke") < 60
    assert experiment.seconds("cpu") <= 3_600
    empty = Results(experiment.cells("cpu"), [])
    assert {claim.judged(empty).verdict for claim in experiment.claims} == {NOT_RUN}


def test_training_cost_counts_parameters(smoke: Smoke) -> None:
    for cell, result in smoke("training-cost").all(Cost, lambda c: "op" in c.networks):
        gates = cell.layers * cell.width
        assert result["bytes"] == {"op": 64 * gates, "iwp": 16 * gates}
        for times in result["times"].values():
            assert len(times["forward"]) == len(times["backward"]) == cell.repeats
            assert min(times["forward"] + times["backward"]) > 0


def test_gate_outputs_go_where_the_paper_says(smoke: Smoke) -> None:
    found = smoke("gate-outputs").all(GateOutputs)
    rows = {cell.config.model.gates.init: result["histograms"] for cell, result in found}
    np.testing.assert_allclose(np.sum(rows["residual"], axis=-1), 1.0, atol=1e-3)
    images = torch.from_numpy(load_digits().test.x[:20])
    ones = float(Thermometer.even(7)(images).mean())
    assert at_one(rows["residual"][0][0]) == pytest.approx(ones, abs=0.06)
    last = {init: histograms[0][-1] for init, histograms in rows.items()}
    assert at_zero(last["and"]) > 0.9
    assert at_one(last["or"]) > 0.9
    assert at_half(last["xor"]) > 0.9
    assert at_half(last["residual"]) > 0.8
    assert at_half(rows["residual"][0][0]) < 0.1
    assert at_zero(last["and-or"]) + at_one(last["and-or"]) > 0.3


def test_trained_networks_have_learnt(smoke: Smoke) -> None:
    for cell, result in smoke("depth").all(Training):
        assert result["best"]["discrete_accuracy"] > 0.4, cell.label
        assert result["best"]["soft_accuracy"] > 0.5, cell.label
    assert {c.config.model.gates.init for c, _ in smoke("and-or").all(Training)} == set(INITS)


def test_convergence_shares_its_runs_with_depth(smoke: Smoke) -> None:
    depth = smoke("depth")
    shared = [r for c, r in depth.all(Training) if c.config.model.depth_scale == 5]
    assert [r for _, r in smoke("convergence").all(Training)] == shared


def test_ratio_of_steps() -> None:
    op = {"step": [100, 200, 300, 400], "discrete_accuracy": [0.1, 0.3, 0.3, 0.2]}
    iwp = {"step": [100, 200, 300, 400], "discrete_accuracy": [0.29, 0.31, 0.1, 0.1]}
    assert ratio_of_steps(op, iwp) == 1.0
    assert ratio_of_steps({**op, "discrete_accuracy": [0.1, 0.2, 0.2, 0.25]}, iwp) == 4.0
    assert running_best([0.1, 0.3, 0.2]) == [0.1, 0.3, 0.3]


def test_regularizers_are_in_the_runs(smoke: Smoke) -> None:
    results = smoke("regularizers")
    names = {name_of(c.config) for c, _ in results.all(Training)}
    assert {PLAIN, "dropout 0.02", "dropout 0.05", "dropout 0.1", "intervention bernoulli"} < names
    plain = [r for c, r in results.all(Training) if name_of(c.config) == PLAIN]
    dropped = [r for c, r in results.all(Training) if c.config.model.dropout == 0.1]
    assert plain[0]["curve"] != dropped[0]["curve"]


def test_resolution_has_both_kinds(smoke: Smoke) -> None:
    results = smoke("resolution")
    assert {c.thresholds for c, _ in results.all(NeuralNetwork)} == {3, 15}
    assert {c.config.model.thresholds for c, _ in results.all(Training)} == {3, 15}


def test_the_command_runs_shows_and_goes_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["reproduce", "coefficients", "--scale", "smoke", "--out", str(folder)]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "5 cells to run" in out
    assert "[5/5]" in out
    assert "left" in out
    assert "holds: sin with mu" in out
    assert main([*command, "--page", str(folder / "page.md")]) == 0
    assert "0 cells to run, 5 known" in capsys.readouterr().out
    page = (folder / "page.md").read_text()
    assert "**holds**" in page
    assert "**not run yet**" in page
    assert len(json.loads((folder / "coefficients-smoke.json").read_text())["cells"]) == 5


def test_the_command_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in EXPERIMENTS)


def test_the_command_refuses_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "gradient-nrom"]) == 2
    assert "did you mean 'gradient-norm'" in capsys.readouterr().err


def test_what_measures_time_is_never_spread(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_runner, "run", None)
    assert main(["reproduce", "training-cost", "--scale", "smoke", "--ray", "local", "--out", str(folder)]) == 0


def test_experiments_share_cells_and_are_written_as_they_finish(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["reproduce", "and-or", "convergence", "rounding", "--scale", "smoke", "--out", str(folder)]
    assert main(command) == 0
    out = " ".join(capsys.readouterr().out.split())
    shared = len(set(EXPERIMENTS["and-or"].cells("smoke")) & set(EXPERIMENTS["convergence"].cells("smoke")))
    total = len({cell for name in ("and-or", "convergence", "rounding") for cell in EXPERIMENTS[name].cells("smoke")})
    assert shared > 0
    assert f"{shared} shared with the above" in out
    assert f"[{total}/{total}]" in out
    assert out.index("and-or-smoke.png") < out.index(f"[{total}/{total}]") < out.index("rounding-smoke.png")
    assert (folder / "convergence-smoke.png").exists()
    assert main(command) == 0
    assert "[1/" not in capsys.readouterr().out


def test_failed_cells_make_the_command_fail(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(cell: Training, context: Context) -> dict[str, Any]:
        raise ValueError(f"no {cell.config.model.model} today")

    monkeypatch.setattr(Training, "run", refuse)
    assert main(["reproduce", "resolution-convolutional", "--scale", "smoke", "--out", str(folder)]) == 1
    out = capsys.readouterr().out
    assert "FAILED: ValueError: no cdlgn today" in out
    assert "[1/6] digits CNN" in out
    assert "4 of 6 cells failed" in out
