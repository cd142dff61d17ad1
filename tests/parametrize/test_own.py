"""A parametrization of one's own works everywhere, without a change to the package."""

from __future__ import annotations

import importlib.util
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gatelight as gl
from gatelight import ops
from gatelight.nn import GroupSum, LogicConv2d, LogicConvStack, LogicDense, LogicStack, OrPool2d, rounded
from gatelight.parametrize import IWP, Parametrization

_spec = importlib.util.spec_from_file_location("own_parametrizations", Path(__file__).with_name("own.py"))
assert _spec is not None
assert _spec.loader is not None
own = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = own
_spec.loader.exec_module(own)


@pytest.fixture(params=own.OWN, ids=str)
def parametrization(request: pytest.FixtureRequest) -> Parametrization:
    made: Parametrization = request.param
    return made


def network(parametrization: Parametrization) -> nn.Sequential:
    options: dict[str, Any] = {"parametrization": parametrization, "init": "uniform"}
    return nn.Sequential(
        LogicConvStack(LogicConv2d(1, 6, 3, padding=1, tree_depth=2, seed=0, **options), OrPool2d(2)),
        nn.Flatten(),
        LogicStack(LogicDense(6 * 9, 40, seed=1, **options), LogicDense(40, 12, seed=2, **options)),
        GroupSum(3),
    )


def step(net: nn.Module, x: Tensor) -> list[Tensor]:
    net.zero_grad()
    torch.manual_seed(7)  # as the trainer does for each step
    out = net(x)
    out.square().mean().backward()
    gradients = [p.grad for p in net.parameters() if p.grad is not None]
    assert len(gradients) == len(list(net.parameters()))
    return [out.detach(), *(g.clone() for g in gradients)]


def test_stacks_compute_what_the_reference_computes(parametrization: Parametrization) -> None:
    net, x = network(parametrization), torch.rand(20, 1, 6, 6)
    fast = step(net, x)
    ops.set_backend("reference")
    try:
        slow = step(net, x)
    finally:
        ops.set_backend("auto")
    for a, b in zip(fast, slow, strict=True):
        assert torch.allclose(a, b, atol=1e-5)
    assert all(bool(g.abs().sum() > 0) for g in fast[1:])


def test_noise_comes_from_the_step_in_training_alone(parametrization: Parametrization) -> None:
    net, x = network(parametrization), torch.rand(5, 1, 6, 6)
    assert all(torch.equal(a, b) for a, b in zip(step(net, x), step(net, x), strict=True))
    assert torch.equal(net(x), net(x)) == (not parametrization.stochastic)
    net.eval()
    assert torch.equal(net(x), net(x))


def test_it_learns_and_becomes_a_proven_circuit(parametrization: Parametrization) -> None:
    net = network(parametrization)
    x = torch.rand(300, 1, 6, 6).round()
    y = (x[:, 0, :3, :3].sum((1, 2)) > 4.5).long() + (x[:, 0, 3:, 3:].sum((1, 2)) > 4.5).long()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.05
    circuit, report = gl.compile(net, input_shape=(1, 6, 6))
    assert report.proof is not None
    assert report.proof.proved
    with rounded(net):
        counts = net(x).round().int().numpy()
    assert (circuit.scores(x.numpy()) == counts).all()


def test_it_is_saved_and_loaded(parametrization: Parametrization) -> None:
    net, other = network(parametrization), network(parametrization)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(torch.randn_like(p))
    other.load_state_dict(net.state_dict())
    x = torch.rand(4, 1, 6, 6)
    assert torch.equal(net.eval()(x), other.eval()(x))
    assert repr(net) == repr(deepcopy(net))


def test_training_resumes_with_the_same_bits(parametrization: Parametrization, tmp_path: Path) -> None:
    x = torch.rand(60, 1, 6, 6).round()
    y = (x[:, 0, 0, 0] + x[:, 0, 3, 3]).long()
    once = gl.fit(network(parametrization), x, y, steps=14, batch=20, eval_every=7, lr=0.05)
    folder = tmp_path / "run"
    settings: dict[str, Any] = {"batch": 20, "eval_every": 7, "lr": 0.05, "folder": folder}
    gl.fit(network(parametrization), x, y, steps=7, **settings)
    twice = gl.fit(network(parametrization), x, y, steps=14, resume=True, **settings)
    assert [row["loss"] for row in twice.history] == [row["loss"] for row in once.history]
    wanted, got = once.model.state_dict(), twice.model.state_dict()
    assert all(torch.equal(wanted[name], got[name]) for name in wanted)


def test_it_goes_into_the_models(parametrization: Parametrization) -> None:
    for model in ("dlgn", "cdlgn"):
        net = gl.models.build("digits", model, width=20, parametrization=parametrization, seed=0)
        assert all(layer.parametrization is parametrization for layer in net.logic_layers)


def test_what_is_no_parametrization_is_refused() -> None:
    with pytest.raises(ValueError, match="a parametrization is a name or a gatelight"):
        LogicDense(4, 4, parametrization=torch.sigmoid)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"arity 3 is given, but the parametrization is IWP\(arity=2"):
        LogicDense(4, 4, arity=3, parametrization=IWP(2))


def test_a_subclass_does_not_get_the_native_map() -> None:
    class Flipped(IWP):
        def table(self, theta: Tensor) -> Tensor:
            return 1 - super().table(theta)

    x = torch.rand(6, 8)
    stacks = [LogicStack(LogicDense(8, 5, parametrization=kind(2), seed=0)) for kind in (IWP, Flipped)]
    assert torch.allclose(stacks[0](x), 1 - stacks[1](x), atol=1e-6)
