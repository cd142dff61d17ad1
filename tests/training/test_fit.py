"""``gatelight.fit``: any model, arrays, no folder unless one is asked for."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import gatelight as gl
from gatelight.config import Optimization, from_flat
from gatelight.nn import GroupSum, LogicDense, LogicNetwork, Thermometer, rounded
from gatelight.training import checkpoint
from gatelight.training.run import TrainingRun
from gatelight.training.run_folder import RunFolder, load_model


def samples(count: int = 240, shape: tuple[int, ...] = (6,), seed: int = 0) -> tuple[Tensor, Tensor]:
    """Bytes, and whether the first of a sample is large."""
    x = torch.randint(0, 256, (count, *shape), generator=torch.Generator().manual_seed(seed), dtype=torch.uint8)
    return x, (x.flatten(1)[:, 0] > 127).long()


def sequential(seed: int = 0, gate_inputs: int = 18) -> nn.Sequential:
    layers = [LogicDense(gate_inputs, 40, seed=seed), LogicDense(40, 20, seed=seed + 1)]
    return nn.Sequential(Thermometer.even(3), nn.Flatten(), *layers, GroupSum(2, 3.0))


def network(seed: int = 0) -> LogicNetwork:
    layers = [LogicDense(18, 40, seed=seed), LogicDense(40, 20, seed=seed + 1)]
    return LogicNetwork(Thermometer.even(3), layers, GroupSum(2, 3.0), input_shape=(6,))


def neural() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 30), nn.ReLU(), nn.Dropout(0.2), nn.Linear(30, 2))


def same(one: nn.Module, two: nn.Module) -> bool:
    first, second = one.state_dict(), two.state_dict()
    return first.keys() == second.keys() and all(torch.equal(t, second[n]) for n, t in first.items())


def without_times(rows: Any) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


MODELS: dict[str, Callable[[], nn.Module]] = {"sequential": sequential, "network": network, "neural": neural}


def test_learns_and_gives_the_best_weights_back() -> None:
    x, y = samples()
    net = sequential()
    test = samples(seed=1)
    done = gl.fit(net, x, y, steps=80, lr=0.05, batch=50, eval_every=10, test=test)
    assert done.model is net
    assert not net.training
    assert done.steps == 80
    assert [row["step"] for row in done.history] == list(range(10, 81, 10))
    assert done.accuracy == max(row["discrete_accuracy"] for row in done.history) > 0.8
    with rounded(net):
        right = float((net(test[0]).argmax(1) == test[1]).float().mean())
    assert done.test is not None
    assert done.test.rounded == pytest.approx(right)
    assert done.plot("mine").axes
    with pytest.raises(dataclasses.FrozenInstanceError):
        done.steps = 3  # type: ignore[misc]


def test_the_command_and_fit_are_one_loop(tmp_path: Path) -> None:
    digits = gl.data.load("digits")
    config = from_flat({"width": 60, "layers": 2, "steps": 30, "eval_every": 10, "batch": 20, "seed": 3})
    run = TrainingRun(config, digits, tmp_path / "run")
    run.start()
    assert run.run()
    net = gl.models.build("digits", width=60, layers=2, seed=3)
    how = Optimization(**dataclasses.asdict(run.recipe))
    done = gl.fit(net, digits.train.x, digits.train.y, optimization=how, seed=3)
    assert without_times(done.history) == without_times(RunFolder(tmp_path / "run").metrics())
    best, _ = load_model(tmp_path / "run", "best")
    assert same(net, best)


@pytest.mark.parametrize("kind", MODELS)
def test_same_seed_same_bits(kind: str) -> None:
    x, y = samples()
    first, second, other = (MODELS[kind]() for _ in range(3))
    torch.manual_seed(5)
    one = gl.fit(first, x, y, steps=25, batch=20, seed=7)
    drawn = torch.rand(1)
    torch.manual_seed(6)
    two = gl.fit(second, x.numpy(), y.numpy(), steps=25, batch=20, seed=7)
    assert same(first, second)
    assert without_times(one.history) == without_times(two.history)
    gl.fit(other, x, y, steps=25, batch=20, seed=8)
    assert not same(first, other)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(1), drawn), "the caller's random numbers were touched"


def test_whatever_carries_the_same_numbers_gives_the_same_bits() -> None:
    x, y = samples()
    nets = []
    for inputs in (x, x.numpy(), x.int(), x.float() / 255, x.double().numpy() / 255):
        nets.append(sequential())
        gl.fit(nets[-1], inputs, y.numpy().astype(np.uint8), steps=10, batch=20)
    assert all(same(nets[0], net) for net in nets[1:])
    flattened, scaled = (nn.Sequential(nn.Flatten(), *sequential()) for _ in range(2))
    gl.fit(flattened, x, y, steps=10, batch=20)
    gl.fit(scaled, x.float() / 255, y, steps=10, batch=20)
    assert same(flattened, scaled)


@pytest.mark.parametrize("kind", MODELS)
def test_a_folder_can_be_resumed_and_extended(kind: str, tmp_path: Path) -> None:
    x, y = samples()
    whole = MODELS[kind]()
    expected = gl.fit(whole, x, y, steps=40, eval_every=10, batch=20)
    parts = MODELS[kind]()
    gl.fit(parts, x, y, steps=20, eval_every=10, batch=20, folder=tmp_path / "fit")
    with pytest.raises(ValueError, match="already holds a run; pass resume=True"):
        gl.fit(parts, x, y, steps=20, batch=20, folder=tmp_path / "fit")
    fresh = MODELS[kind]()
    done = gl.fit(fresh, x, y, steps=40, eval_every=10, batch=20, folder=tmp_path / "fit", resume=True)
    assert same(whole, fresh)
    assert without_times(done.history) == without_times(expected.history)
    assert done.accuracy == expected.accuracy
    saved = checkpoint.load(tmp_path / "fit/best.safetensors").tensors
    assert {name.removeprefix("model.") for name in saved} == set(whole.state_dict())
    for changes, message in (
        ({"lr": 0.5}, "the fit began with lr None, not 0.5"),
        ({"seed": 4}, "began with seed 0, not 4"),
    ):
        with pytest.raises(ValueError, match=message):
            gl.fit(fresh, x, y, steps=40, eval_every=10, batch=20, folder=tmp_path / "fit", resume=True, **changes)
    with pytest.raises(ValueError, match="the samples are not those"):
        gl.fit(fresh, x, 1 - y, steps=40, eval_every=10, batch=20, folder=tmp_path / "fit", resume=True)


PROGRAM = """
import sys, torch
from torch import nn
import gatelight as gl
from gatelight.nn import GroupSum, LogicDense
torch.manual_seed(0)
x = torch.rand(200, 8)
layers = [LogicDense(12, 60, seed=0), LogicDense(60, 20, seed=1)]
net = nn.Sequential(nn.Linear(8, 12), nn.BatchNorm1d(12), nn.Dropout(0.2), nn.Sigmoid(), *layers, GroupSum(2))
gl.fit(net, x, (x[:, 0] > x[:, 1]).long(), steps=120, eval_every=5, batch=16, folder=sys.argv[1], resume=True)
"""


def test_killed_and_resumed_ends_with_the_same_bits(tmp_path: Path) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def start(name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path / name)], env=environment)

    whole, killed = start("whole"), start("killed")
    while not (tmp_path / "killed/last.safetensors").exists():
        assert killed.poll() is None
        time.sleep(0.005)
    time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait(60) == -signal.SIGKILL
    stood = checkpoint.load(tmp_path / "killed/last.safetensors").header["step"]
    assert stood < 120
    assert start("killed").wait(200) == 0
    assert whole.wait(200) == 0
    one, two = (RunFolder(tmp_path / name) for name in ("whole", "killed"))
    assert without_times(one.metrics()) == without_times(two.metrics())
    for name in ("best", "last"):
        a, b = (checkpoint.load(f.file(f"{name}.safetensors")).tensors for f in (one, two))
        assert a.keys() == b.keys()
        assert all(torch.equal(tensor, b[key]) for key, tensor in a.items())


class Branches(nn.Module):
    """Has a frozen, a shared, a never used and a late used parameter, and a buffer that is not finite."""

    mask: Tensor

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.calls = 0
        self.first = nn.Parameter(torch.randn(6, 2, generator=generator))
        self.again = self.first
        self.late = nn.Parameter(torch.randn(2, generator=generator))
        self.unused = nn.Parameter(torch.zeros(3))
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
        self.register_buffer("mask", torch.tensor([-torch.inf, 0.0]))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += self.training
        scores: Tensor = x @ self.first + x @ self.again * self.frozen
        return scores * self.late if self.calls > 12 else scores


def test_parameters_that_are_frozen_shared_late_or_unused(tmp_path: Path) -> None:
    x, y = samples()
    settings: dict[str, Any] = {"eval_every": 5, "batch": 20}
    whole, parts, fresh = (Branches() for _ in range(3))
    gl.fit(whole, x, y, steps=20, folder=tmp_path / "whole", **settings)
    gl.fit(parts, x, y, steps=10, folder=tmp_path / "parts", **settings)
    fresh.calls = 10
    gl.fit(fresh, x, y, steps=20, folder=tmp_path / "parts", resume=True, **settings)
    assert same(whole, fresh)
    one, two = (checkpoint.load(tmp_path / name / "last.safetensors").tensors for name in ("whole", "parts"))
    assert one.keys() == two.keys()
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())
    assert float(one["adam.step.late"]) == 8.0
    assert not torch.equal(one["model.late"], Branches().late)
    assert torch.equal(one["model.frozen"], torch.ones(2))


def test_validation_is_a_share_or_samples() -> None:
    x, y = samples()
    on_all = gl.fit(sequential(), x, y, steps=5, batch=20, validation=0)
    assert {row["on"] for row in on_all.history} == {"train"}
    given = gl.fit(sequential(), x, y, steps=5, batch=20, validation=samples(30, seed=2))
    assert {row["on"] for row in given.history} == {"validation"}
    share = gl.fit(sequential(), x, y, optimization=Optimization(validation=0.5, steps=5, batch=20))
    assert share.accuracy * 120 == pytest.approx(round(share.accuracy * 120))


def test_an_observer_is_told() -> None:
    told: list[Any] = []

    class Observer:
        def started(self, step: int, steps: int, model: nn.Module) -> None:
            told.append((step, steps))

        def stepped(self, step: int, loss: float) -> None:
            told.append(step)

        def evaluated(self, row: dict[str, Any]) -> None:
            told.append(row["step"] * 100)

    gl.fit(sequential(), *samples(), steps=2, eval_every=2, batch=20, observer=Observer())
    assert told == [(0, 2), 1, 2, 200]


def test_a_folder_says_what_it_is_and_a_run_is_not_taken_for_a_fit(tmp_path: Path) -> None:
    x, y = samples()
    gl.fit(sequential(), x, y, steps=5, batch=20, folder=str(tmp_path / "fit"))
    assert json.loads((tmp_path / "fit/fit.json").read_text())["optimization"]["steps"] == 5
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.json").write_text("{}")
    with pytest.raises(ValueError, match="holds a run of the command"):
        gl.fit(sequential(), x, y, steps=5, folder=tmp_path / "run", resume=True)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="is a file"):
        gl.fit(sequential(), x, y, steps=5, folder=tmp_path / "file")


X, Y = samples()
NAN = torch.rand(240, 6).index_fill(0, torch.tensor([7]), torch.nan)


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ((X, Y), {"stesp": 3}, "unknown setting of fit 'stesp'; did you mean 'steps'"),
        ((X, Y), {"steps": 0}, "steps must be at least 1"),
        ((X, Y), {"steps": 2.5}, "steps must be int or null"),
        ((X, Y), {"seed": -1}, "seed must be a whole number from 0"),
        ((X, Y), {"seed": "a"}, "seed must be a whole number"),
        ((X, Y), {"validation": 1.5}, r"validation must be in \[0, 1\)"),
        ((X, Y), {"validation": "some"}, "validation must be a share of the samples or a pair"),
        ((X, Y), {"validation": (X,)}, r"validation must be a pair \(x, y\)"),
        ((X, Y), {"validation": (X[:, :5], Y)}, "training and validation inputs must agree in shape"),
        ((X, Y), {"test": (X, Y + 2)}, r"test labels must lie in 0\.\.1.*got 2\.\.3"),
        ((X, Y), {"resume": True}, "resume needs a folder"),
        ((X, Y), {"augment": "crop"}, "augment is for images"),
        ((X, Y[:-1]), {}, r"240 training inputs need labels of shape \[240\], got \[239\]"),
        ((X, Y.float()), {}, "training labels must be whole numbers, got dtype float32"),
        ((X, Y - 1), {}, r"training labels must lie in 0\.\.1"),
        ((X, Y + 1), {}, r"training labels must lie in 0\.\.1"),
        ((X[:0], Y[:0]), {}, "training inputs are empty"),
        ((X[:1], Y[:1]), {}, "one sample cannot be divided"),
        ((X[0], Y), {}, r"training inputs must be \[samples, ...\], got \[6\]; a single sample is"),
        ((NAN, Y), {}, "training inputs must be finite, row 7 holds nan"),
        ((X.float(), Y), {}, r"training inputs must lie in \[0, 1\], got 0\.0\.\.255\.0"),
        ((X.int() * 2, Y), {}, r"must lie in 0\.\.255, got 0\.\.510"),
        (((X > 9).int(), Y), {}, "may be bytes or bits"),
        ((X[:, :5], Y), {}, r"the model does not take a batch of shape \[2, 5\]"),
        ((X[:, None], Y), {"validation": 0}, "the model does not take a batch of shape"),
        ((np.array(["a"] * 240)[:, None], Y), {}, "training inputs must be numbers"),
        ((X // 10, Y), {}, "all input bits of x are the same"),
    ],
)
def test_bad_input_is_refused_in_words(arguments: tuple[Any, Any], settings: dict[str, Any], message: str) -> None:
    net = sequential() if arguments[0].ndim != 3 else nn.Sequential(nn.Linear(5, 2))
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        gl.fit(net, *arguments, **{"steps": 3, "batch": 20, **settings})
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


def test_models_that_cannot_be_trained_are_refused() -> None:
    x, y = samples()
    with pytest.raises(ValueError, match="no parameters that can be trained"):
        gl.fit(nn.Flatten(), x, y, steps=3)
    with pytest.raises(ValueError, match=r"must give class scores \[batch, classes\].*got torch.float32 \[2, 1, 6\]"):
        gl.fit(nn.Sequential(nn.Linear(6, 6), nn.Unflatten(1, (1, 6))), x, y, steps=3)
    with pytest.raises(ValueError, match="uint8 0 and 1 may be bytes or bits"):
        gl.fit(nn.Sequential(nn.Linear(6, 2)), (x > 100).to(torch.uint8), y, steps=3)


def test_bits_are_taken_as_bits() -> None:
    x, y = samples()
    bits = x > 127
    nets = []
    for inputs in (bits, bits.to(torch.uint8), bits.float()):
        nets.append(LogicNetwork(None, [LogicDense(6, 20, seed=0)], GroupSum(2)))
        gl.fit(nets[-1], inputs, y, steps=5, batch=20)
    assert same(nets[0], nets[1])
    assert same(nets[0], nets[2])
    with pytest.raises(ValueError, match="the model takes bits, but the training inputs are not only 0 and 1"):
        gl.fit(LogicNetwork(None, [LogicDense(6, 20, seed=0)], GroupSum(2)), x // 128 * 2, y, steps=5)
