import dataclasses
import math
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from gatelight import models
from gatelight.nn import LogicDense, LogicNetwork
from gatelight.sizes import ConvSize
from gatelight.wiring.clustered import CLUSTER, WIDE

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


def clusters(layer: LogicDense) -> torch.Tensor:
    """The cluster of each input of each gate; the last one takes what is left over."""
    return (layer.fanin // CLUSTER).clamp(max=max(1, layer.in_features // CLUSTER) - 1)


def in_clusters(layer: LogicDense) -> bool:
    return torch.equal(clusters(layer).amin(1), clusters(layer).amax(1))


def test_wide_layers_read_inside_clusters() -> None:
    net = models.build("mnist", width=WIDE + 2, layers=5, seed=0)
    assert [in_clusters(layer) for layer in net.layers.layers[1:]] == [True, False, True, False]
    net = models.build("mnist", width=WIDE + 2, layers=2, seed=0)
    last = net.layers.layers[-1]
    assert in_clusters(last)
    # Every class has gates of every cluster.
    for group in clusters(last)[:, 0].chunk(10):
        assert len(group.unique()) == WIDE // CLUSTER
    size: dict[str, Any] = {"width": WIDE + 2, "layers": 2, "seed": 0}
    for changes in ({"wiring": "random"}, {"wiring": "unique"}, {"width": 30_000}, {"residual_fraction": 0.1}):
        net = models.build("mnist", **(size | changes))
        assert not in_clusters(net.layers.layers[-1])
    with pytest.raises(ValueError, match="did you mean 'clustered'"):
        models.build("mnist", wiring="cluster")


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


def test_settled_values_build_the_same_network() -> None:
    for dataset, task in (("mine", models.Task((2, 8, 8), 7)), ("mnist", models.TASKS["mnist"])):
        for model in models.MODELS:
            width = 3 if model == "cdlgn" else 210 if dataset == "mnist" else None
            settled = models.settle(dataset, model, task=task, width=width)
            values = {f.name: getattr(settled, f.name) for f in dataclasses.fields(settled)}
            one = models.build(dataset, model, task=task, width=width, seed=0)
            two = models.build(dataset, model, task=task, seed=0, **values)
            assert one.head.temperature == two.head.temperature
            for name, tensor in one.state_dict().items():
                assert torch.equal(tensor, two.state_dict()[name])
    settled = models.settle("cifar100", task=models.TASKS["cifar100"], wide_head=True)
    assert settled.temperature == pytest.approx(1 / 0.03)


@pytest.mark.parametrize("model", models.MODELS)
def test_images_of_bits_need_no_encoder(model: str) -> None:
    task = models.Task((1, 8, 8), 2, binary=True)
    net = models.build("mine", model, task=task, width=4, seed=0)
    assert net.encoder is None
    x = torch.rand(5, 1, 8, 8).round()
    assert torch.equal(net.encode(x), x.flatten(1))
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
        (
            {"dataset": "mnist", "width": 8001},
            "10 classes do not divide the 8001 gates.*nearest width that works is 8000",
        ),
        ({"dataset": "mnist", "width": 4}, "nearest width that works is 10$"),
        ({"dataset": "cifar100", "width": 57, "wide_head": True}, "do not divide the 570 gates.*works is 60"),
        ({"dataset": "mnist", "depth_scale": 0}, "depth scale must be at least 1"),
        ({"dataset": "mnist", "arity": 4, "parametrization": "op"}, "at most 3"),
        ({"dataset": "digits", "encoding": "evne"}, "did you mean 'even'"),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        models.build(**arguments)


# k, channels, window of the first layer, head, temperature, batch, thresholds of Petersen et al. 2024.
CONV_ROWS = {
    ("cifar10", "S"): (32, [32, 128, 512, 1024], 3, [40960, 20480, 10240], 20.0, 128, 3),
    ("cifar10", "M"): (256, [256, 1024, 4096, 8192], 3, [327680, 163840, 81920], 40.0, 128, 3),
    ("cifar10", "B"): (512, [512, 2048, 8192, 16384], 3, [1310720, 655360, 327680], 280.0, 128, 31),
    ("cifar10", "L"): (1024, [1024, 4096, 16384, 32768], 3, [2621440, 1310720, 655360], 340.0, 128, 31),
    ("cifar10", "G"): (2560, [2560, 10240, 40960, 81920], 3, [3276800, 1638400, 819200], 450.0, 128, 31),
    ("mnist", "S"): (16, [16, 48, 144], 5, [40960, 20480, 10240], 6.5, 512, 1),
    ("mnist", "M"): (64, [64, 192, 576], 5, [163840, 81920, 40960], 28.0, 256, 1),
    ("mnist", "L"): (256, [256, 768, 2304], 5, [327680, 163840, 81920], 35.0, 128, 1),
}


@pytest.mark.parametrize(("dataset", "size"), CONV_ROWS)
def test_conv_rows_of_the_paper(dataset: str, size: str) -> None:
    k, channels, window, head, temperature, batch, thresholds = CONV_ROWS[dataset, size]
    row = models.size_of(dataset, size, "cdlgn")
    assert isinstance(row, ConvSize)
    assert (row.k, row.channels(), row.first_window) == (k, channels, window)
    assert [row.k * units * row.head_factor for units in row.head] == head
    assert (row.temperature, row.batch, row.thresholds) == (temperature, batch, thresholds)


@pytest.mark.parametrize("dataset", ["digits", "mnist", "mnist20", "fashion-mnist", "cifar10", "cifar100"])
def test_small_conv_networks_learn_a_step(dataset: str) -> None:
    net = models.build(dataset, model="cdlgn", width=2, seed=0)
    one_step(net, models.TASKS[dataset])


@pytest.mark.parametrize(("dataset", "gates"), [("cifar10", 960_512), ("mnist", 236_848)])
def test_conv_gates_by_the_formula(dataset: str, gates: int) -> None:
    net = models.build(dataset, model="cdlgn", seed=0)
    assert net.conv is not None
    pixels, total = (32, 0) if dataset == "cifar10" else (24, 0)
    for layer in net.conv.layers:
        trees = layer.out_channels * pixels**2
        total += 7 * trees + 3 * trees // 4  # gates of the trees, ORs of the pooling
        pixels //= 2
    assert net.gates == gates == total + sum(layer.out_features for layer in net.layers.layers)


def test_conv_depth_scale() -> None:
    net = models.build("mnist", model="cdlgn", width=2, depth_scale=3, seed=0)
    assert net.conv is not None
    windows = [(layer.in_channels, layer.out_channels, layer.kernel_size) for layer in net.conv.layers]
    assert windows[:4] == [(1, 2, 5), (2, 2, 3), (2, 2, 3), (2, 6, 3)]
    assert [step.pool for step in net.conv.steps] == [1, 1, 2] * 3
    assert [layer.out_features for layer in net.layers.layers] == [5120] * 3 + [2560] * 3 + [1280] * 3
    one_step(net, models.TASKS["mnist"])


def test_conv_on_own_images() -> None:
    task = models.Task((2, 9, 13), 7)
    net = models.build("mine", model="cdlgn", task=task, width=3, seed=0)
    assert net.conv is not None
    assert len(net.conv.layers) == 3  # 9 x 13, 4 x 6, 2 x 3, 1 x 1
    assert net.layers.layers[-1].out_features % 7 == 0
    one_step(net, task)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset": "adult"}, "needs images of at least 4 x 4"),
        ({"dataset": "digits", "layers": 3}, "for the model dlgn"),
        ({"dataset": "digits", "residual_fraction": 0.5}, "for the model dlgn"),
        ({"dataset": "digits", "size": "XL"}, "size of the digits network"),
        ({"dataset": "digits", "tree_depth": 0}, "depth must be a whole number of at least 1"),
        ({"dataset": "digits", "channels_per_tree": 0}, "channels_per_tree must be from 1"),
    ],
)
def test_bad_conv_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        models.build(model="cdlgn", **arguments)
