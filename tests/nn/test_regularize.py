import itertools
from collections.abc import Callable

import pytest
import torch

from gatelight import models
from gatelight.nn import GateIntervention, GroupSum, LogicDense, LogicNetwork, PathDropout, residual_masks


@pytest.mark.parametrize(
    ("value", "mean"), [("zero", 0.0), ("one", 1.0), ("half", 0.5), ("uniform", 0.5), ("bernoulli", 0.5)]
)
def test_interventions(value: str, mean: float) -> None:
    torch.manual_seed(0)
    intervene = GateIntervention(0.25, value)
    x = torch.full((300, 200), 0.3)
    out = intervene(x)
    changed = out != 0.3
    assert changed.float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert out[changed].mean().item() == pytest.approx(mean, abs=0.02)
    if value == "bernoulli":
        assert set(out[changed].unique().tolist()) == {0.0, 1.0}
    if value == "uniform":
        assert out[changed].std().item() == pytest.approx(12**-0.5, abs=0.02)
    intervene.eval()
    assert intervene(x) is x


def test_interventions_reach_every_layer_and_only_in_training() -> None:
    net = LogicNetwork(
        None,
        [LogicDense(8, 400, seed=0), LogicDense(400, 400, seed=1)],
        GroupSum(2),
        intervention=GateIntervention(0.5, "half"),
    )
    x = torch.rand(50, 8)
    torch.manual_seed(0)
    for out in net.activations(x):
        assert (out == 0.5).float().mean().item() == pytest.approx(0.5, abs=0.05)
    net.eval()
    for out in net.activations(x):
        assert (out == 0.5).float().mean() < 0.01


def test_dropout_masks_exactly_the_path_connected_gates() -> None:
    layers = [LogicDense(40, 60, seed=0), LogicDense(60, 40, seed=1)]
    net = LogicNetwork(None, layers, GroupSum(2), dropout=PathDropout(0.1))
    torch.manual_seed(3)
    dropped = torch.rand(40) < 0.1
    assert dropped.any()
    first = [any(dropped[i] for i in row) for row in layers[0].fanin.tolist()]
    second = [any(first[i] for i in row) for row in layers[1].fanin.tolist()]
    torch.manual_seed(3)
    assert net.dropout is not None
    kept = net.dropout.kept(layers)
    assert kept.tolist() == [not s for s in second]
    assert 0 < kept.sum() < 40

    x = torch.rand(6, 40)
    torch.manual_seed(3)
    net(x).sum().backward()
    for layer, masked in zip(layers, (first, second), strict=True):
        assert layer.theta.grad is not None
        assert not layer.theta.grad[torch.tensor(masked)].any()
    last = layers[1].theta.grad
    assert last is not None
    assert last[kept].any(1).all()


def test_dropout_rates_of_the_paper() -> None:
    layers = [LogicDense(9216, 12_000, seed=0)] + [LogicDense(12_000, 12_000, seed=s) for s in (1, 2, 3)]
    torch.manual_seed(0)
    for probability, masked in ((0.02, 30 / 120), (0.05, 70 / 120), (0.1, 100 / 120)):
        kept = PathDropout(probability).kept(layers).float().mean().item()
        assert 1 - kept == pytest.approx(masked, abs=0.05)


def test_evaluation_drops_nothing() -> None:
    net = LogicNetwork(None, [LogicDense(8, 8, seed=0)], GroupSum(2), dropout=PathDropout(0.9))
    x = torch.rand(4, 8)
    net.eval()
    assert torch.equal(net(x), net(x))
    plain = LogicNetwork(None, net.layers.layers, GroupSum(2))
    assert torch.equal(net(x), plain(x))


def test_residual_streams_grow_linearly_and_never_end() -> None:
    masks = residual_masks([40] * 5, 1.0, seed=0)
    assert [int(m.sum()) for m in masks] == [0, 10, 20, 30, 40]
    for before, after in itertools.pairwise(masks):
        assert not (before & ~after).any()


def test_residual_connections_in_a_model() -> None:
    net = models.build("digits", width=100, layers=5, residual_fraction=0.8, init="gaussian", seed=0)
    x = torch.rand(6, 1, 8, 8)
    outputs = net.activations(x)
    for index in range(1, 5):
        layer = net.layers.layers[index]
        assert layer.fixed is not None
        assert int(layer.fixed.sum()) == 20 * index
        assert torch.equal(outputs[index][:, layer.fixed], outputs[index - 1][:, layer.fixed])
        assert len(layer.theta) == 100 - 20 * index


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GateIntervention(1.0), r"must be in \[0, 1\)"),
        (lambda: GateIntervention(0.1, "halve"), "did you mean 'half'"),
        (lambda: PathDropout(-0.1), r"must be in \[0, 1\)"),
        (lambda: residual_masks([4, 4], 1.5, 0), r"must be in \[0, 1\]"),
    ],
)
def test_bad_input(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
