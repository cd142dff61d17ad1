import math
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from gatelight import models
from gatelight.nn import LogicNetwork

#: data set, size, layers, width, temperature, input bits
ROWS = [
    ("monk1", "S", 6, 24, 1.0, 17),
    ("monk2", "S", 6, 12, 1.0, 17),
    ("monk3", "S", 6, 12, 1.0, 17),
    ("adult", "S", 5, 256, 1 / 0.075, 116),
    ("breast-cancer", "S", 5, 128, 10.0, 51),
    ("mnist", "S", 6, 8_000, 10.0, 784),
    ("mnist", "M", 6, 64_000, 1 / 0.03, 784),
    ("mnist20", "S", 6, 8_000, 10.0, 400),
    ("mnist20", "M", 6, 64_000, 1 / 0.03, 400),
    ("fashion-mnist", "S", 6, 8_000, 10.0, 784),
    ("fashion-mnist", "M", 6, 64_000, 1 / 0.03, 784),
    ("cifar10", "S", 4, 12_000, 1 / 0.03, 9_216),
    ("cifar10", "M", 4, 128_000, 100.0, 9_216),
    ("cifar10", "L", 5, 256_000, 100.0, 95_232),
    ("cifar100", "S", 4, 12_000, 1 / 0.03 / math.sqrt(10), 9_216),
    ("cifar100", "M", 4, 128_000, 100 / math.sqrt(10), 9_216),
    ("cifar100", "L", 5, 256_000, 100 / math.sqrt(10), 95_232),
    ("digits", "S", 4, 2_000, 10.0, 448),
]


def one_step(net: LogicNetwork, task: models.Task, batch: int = 2) -> None:
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    x = torch.rand(batch, *task.shape)
    before = net.layers.layers[0].theta.detach().clone()
    loss = cross_entropy(net(x.round() if task.binary else x), torch.arange(batch) % task.classes)
    loss.backward()
    optimizer.step()
    assert torch.isfinite(loss)
    assert not torch.equal(net.layers.layers[0].theta, before)


@pytest.mark.parametrize(("dataset", "size", "layers", "width", "temperature", "bits"), ROWS)
def test_rows_of_the_papers(dataset: str, size: str, layers: int, width: int, temperature: float, bits: int) -> None:
    net = models.build(dataset, size=size, seed=0)
    task = models.TASKS[dataset]
    assert [layer.out_features for layer in net.layers.layers] == [width] * layers
    assert net.layers.layers[0].in_features == bits
    assert net.head.temperature == pytest.approx(temperature)
    assert net.head.classes == task.classes
    one_step(net, task)


def test_every_row_is_tested() -> None:
    tested = {(row[0], row[1]) for row in ROWS}
    known = {(dataset, size) for dataset, table in models.DLGN.items() for size in table}
    assert tested == known


def test_wide_head_of_cifar100() -> None:
    net = models.build("cifar100", size="S", wide_head=True, seed=0)
    assert [layer.out_features for layer in net.layers.layers] == [12_000] * 3 + [120_000]
    assert net.head.temperature == pytest.approx(1 / 0.03)
    one_step(net, models.TASKS["cifar100"])
    with pytest.raises(ValueError, match="wide_head is for cifar100"):
        models.build("cifar10", wide_head=True)


def test_depth_scale() -> None:
    net = models.build("mnist", width=50, depth_scale=3, seed=0)
    assert [layer.out_features for layer in net.layers.layers] == [50] * 18


def test_same_seed_same_network() -> None:
    one, same, other = (models.build("digits", seed=s) for s in (1, 1, 2))
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, same.state_dict()[name])
    assert not torch.equal(one.logic_layers[1].fanin, other.logic_layers[1].fanin)
    assert not torch.equal(one.logic_layers[1].fanin, one.logic_layers[2].fanin)


def test_own_data() -> None:
    task = models.Task((30,), 7)
    net = models.build("mine", task=task, seed=0)
    assert net.layers.layers[-1].out_features % 7 == 0
    one_step(net, task)


def test_quantile_encoding() -> None:
    samples = torch.rand(100, 1, 8, 8) ** 3
    net = models.build("digits", encoding="quantile", samples=samples, thresholds=2, seed=0)
    assert net.encode(samples).mean().item() == pytest.approx(0.5, abs=0.02)
    with pytest.raises(ValueError, match="pass samples"):
        models.build("digits", encoding="quantile")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset": "mnits"}, "did you mean 'mnist'"),
        ({"dataset": "mnist", "size": "XL"}, r"unknown size of the mnist network 'XL'.*known: S, M"),
        ({"dataset": "mnist", "model": "cnn"}, "unknown model"),
        ({"dataset": "mnist", "width": 8001}, "10 classes do not divide the 8001 gates"),
        ({"dataset": "mnist", "depth_scale": 0}, "depth scale must be at least 1"),
        ({"dataset": "mnist", "arity": 4, "parametrization": "op"}, "at most 3"),
        ({"dataset": "digits", "encoding": "evne"}, "did you mean 'even'"),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        models.build(**arguments)
