import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from gatelight import models
from gatelight.data import Split
from gatelight.nn import LogicNetwork, rounded
from gatelight.training import metrics


@pytest.fixture
def net() -> LogicNetwork:
    return models.build("digits", width=100, layers=3, seed=0)


def some_split(samples: int = 70) -> Split:
    rng = np.random.default_rng(0)
    return Split(rng.integers(0, 256, (samples, 1, 8, 8), np.uint8), rng.integers(0, 10, samples))


def test_accuracy_counts_soft_and_rounded_answers(net: LogicNetwork) -> None:
    split = some_split()
    x, y = torch.from_numpy(split.x), torch.from_numpy(split.y)
    measured = metrics.accuracy(net, split)
    scores = net.eval()(x)
    assert measured.soft == pytest.approx((scores.argmax(1) == y).float().mean().item())
    assert measured.soft_loss == pytest.approx(cross_entropy(scores, y).item(), rel=1e-5)
    with rounded(net):
        assert measured.rounded == pytest.approx((net(x).argmax(1) == y).float().mean().item())
    assert measured.gap == measured.soft - measured.rounded
    with pytest.raises(ValueError, match="no samples"):
        metrics.accuracy(net, Split(split.x[:0], split.y[:0]))


def test_accuracy_does_not_depend_on_the_batches(net: LogicNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = metrics.evaluate(net, some_split())
    monkeypatch.setattr(metrics, "_EVAL_BATCH", 16)
    parts = metrics.evaluate(net, some_split())
    assert (whole.soft_hits, whole.rounded_hits) == (parts.soft_hits, parts.rounded_hits)
    assert net.training


def test_gradient_norm_is_the_mean_absolute_gradient(net: LogicNetwork) -> None:
    split = some_split()
    x, y = torch.from_numpy(split.x), torch.from_numpy(split.y)
    norms = metrics.gradient_norms(net, x, y)
    cross_entropy(net(x), y).backward()
    for norm, layer in zip(norms, net.logic_layers, strict=True):
        assert layer.theta.grad is not None
        assert norm == pytest.approx(layer.theta.grad.abs().mean().item(), rel=1e-5)


def test_activation_histograms(net: LogicNetwork) -> None:
    x = torch.from_numpy(some_split().x)
    histograms = metrics.activation_histograms(net, x, bins=4)
    assert histograms.shape == (3, 4)
    assert torch.allclose(histograms.sum(1), torch.ones(3))
    first = net.activations(x)[0]
    assert histograms[0, 3].item() == pytest.approx((first >= 0.75).float().mean().item(), abs=1e-3)


def test_function_shares_and_distances() -> None:
    net = models.build("digits", width=100, layers=2, init="xor", init_spread=0.0, seed=0)
    assert metrics.function_shares(net) == [{"xor": 1.0}] * 2
    expected = 0.5 - 0.5 * np.sin(1.2)
    assert metrics.table_distances(net) == pytest.approx([expected] * 2, rel=1e-5)
    mixed = models.build("digits", width=1000, layers=1, arity=3, init="uniform", seed=0)
    shares = metrics.function_shares(mixed)[0]
    assert sum(shares.values()) == pytest.approx(1.0)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
