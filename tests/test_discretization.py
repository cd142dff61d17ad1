import importlib.util
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn

import gatelight
from gatelight import discretization, models
from gatelight.discretization import discretize
from gatelight.nn import (
    GroupSum,
    LogicConv2d,
    LogicConvStack,
    LogicDense,
    LogicNetwork,
    LogicStack,
    OrPool2d,
    Thermometer,
    rounded,
)
from gatelight.parametrize import IWP


def assert_same(model: nn.Module, circuit: gatelight.Circuit, x: torch.Tensor) -> None:
    with rounded(model):
        expected = model(x)
    counts = torch.from_numpy(circuit.scores(x.numpy()))
    assert torch.equal((counts / circuit.temperature).float(), expected)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"parametrization": "op", "init": "gaussian"},
        {"arity": 3, "init": "uniform"},
        {"arity": 6, "init": "gaussian"},
        {"arity": 1, "init": "uniform", "wiring": "unique"},
        {"residual_fraction": 0.7, "init": "gaussian"},
        {"intervention": 0.3, "dropout": 0.3, "init": "uniform"},
        {"thresholds": 1, "layers": 1, "init": "xor"},
        {"init": "false"},
    ],
)
def test_circuit_equals_rounded_model(options: dict[str, Any]) -> None:
    net = models.build("digits", **({"width": 60, "layers": 3, "seed": 1} | options))
    x = torch.randint(0, 256, (65, 1, 8, 8), dtype=torch.uint8)
    circuit = discretize(net, class_names=[str(i) for i in range(10)])
    assert circuit.feature_shape == (1, 8, 8)
    assert circuit.class_names[3] == "3"
    assert_same(net, circuit, x)
    assert_same(net, circuit, x.float() / 255)


def test_colour_images_and_fitted_thresholds() -> None:
    task = models.Task((3, 4, 5), 4)
    samples = torch.rand(50, 3, 4, 5) ** 2
    net = models.build("mine", task=task, width=80, encoding="quantile", samples=samples, thresholds=2, init="uniform")
    assert_same(net, discretize(net), torch.rand(30, 3, 4, 5))


def test_bits() -> None:
    net = models.build("monk1", init="uniform", seed=0)
    assert_same(net, discretize(net), torch.randint(0, 2, (100, 17)).float())


@pytest.mark.parametrize("flatten_first", [False, True])
def test_flattening_before_or_after_the_encoder(flatten_first: bool) -> None:
    front = [nn.Flatten(), Thermometer.even(3)] if flatten_first else [Thermometer.even(3), nn.Flatten()]
    net = nn.Sequential(*front, LogicDense(3 * 48, 60, init="uniform", seed=0), GroupSum(3))
    circuit = discretize(net, input_shape=(3, 4, 4))
    assert circuit.feature_shape == (3, 4, 4)
    assert_same(net, circuit, torch.rand(40, 3, 4, 4))


def test_sequential_with_mixed_arities() -> None:
    net = nn.Sequential(
        Thermometer.even(3),
        nn.Flatten(),
        LogicDense(48, 50, arity=5, init="uniform", seed=0),
        LogicStack(
            [
                LogicDense(50, 40, arity=1, init="uniform", seed=1),
                LogicDense(40, 30, arity=2, init="uniform", seed=2),
            ]
        ),
        GroupSum(3, 2.0),
    )
    assert_same(net, discretize(net, input_shape=(1, 4, 4)), torch.rand(40, 1, 4, 4))


def test_a_wrong_table_bit_is_noticed() -> None:
    net = models.build("digits", width=60, layers=1, init="uniform", seed=1)
    circuit = discretize(net)
    table = np.array(circuit.table)
    table[5] ^= np.uint64(2)
    fields = {name: getattr(circuit, name) for name in circuit.__dataclass_fields__}
    wrong = gatelight.Circuit(**(fields | {"table": table}))
    x = torch.randint(0, 256, (500, 1, 8, 8), dtype=torch.uint8)
    with pytest.raises(AssertionError):
        assert_same(net, wrong, x)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Linear(3, 4), "cannot make a circuit of a Linear"),
        (nn.Sequential(LogicDense(4, 4), nn.ReLU(), GroupSum(2)), "layer '1', a ReLU"),
        (nn.Sequential(LogicDense(4, 4)), "does not end in"),
        (nn.Sequential(LogicDense(4, 4), Thermometer.even(1), GroupSum(2)), "layer '1', a Thermometer"),
        (nn.Sequential(LogicDense(4, 4), GroupSum(3)), "3 classes do not divide"),
    ],
)
def test_refusals_name_the_layer(model: nn.Module, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        discretize(model)


def test_wrong_shape() -> None:
    with pytest.raises(ValueError, match=r"reads \[16\], but gets \[1, 5, 5\]"):
        discretize(nn.Sequential(LogicDense(16, 4), GroupSum(2)), input_shape=(1, 5, 5))
    with pytest.raises(ValueError, match=r"takes \[batch, 1, 8, 8\], got \(3, 1, 8, 9\)"):
        models.build("digits", seed=0)(torch.rand(3, 1, 8, 9))


def test_public_names() -> None:
    assert gatelight.discretize is discretize
    with pytest.raises(AttributeError, match="no attribute 'circuits'"):
        gatelight.circuits  # noqa: B018


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"parametrization": "op", "arity": 2, "depth_scale": 2},
        {"arity": 3, "tree_depth": 2, "channels_per_tree": 2},
        {"arity": 1, "tree_depth": 2},
        {"intervention": 0.3, "dropout": 0.01},
    ],
)
def test_conv_circuit_equals_rounded_model(options: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"model": "cdlgn", "width": 6, "init": "uniform", "seed": 1} | options
    net = models.build("digits", **arguments)
    circuit = discretize(net)
    assert circuit.gates == net.gates
    assert_same(net, circuit, torch.randint(0, 256, (65, 1, 8, 8), dtype=torch.uint8))
    assert_same(net, circuit.simplify(), torch.rand(33, 1, 8, 8))


def test_sequence_of_conv_layers() -> None:
    net = nn.Sequential(
        Thermometer.even(2),
        LogicConv2d(4, 5, 3, stride=2, padding=2, init="uniform", seed=0),
        OrPool2d(3),
        LogicConvStack(
            [
                LogicConv2d(5, 6, 2, tree_depth=1, parametrization=IWP(arity=6), padding=1, init="uniform", seed=1),
                OrPool2d(2),
            ]
        ),
        nn.Flatten(),
        LogicDense(6, 12, init="uniform", seed=2),
        GroupSum(3),
    )
    x = torch.rand(20, 2, 8, 7)
    circuit = discretize(net, input_shape=(2, 8, 7))
    assert_same(net, circuit, x)
    with pytest.raises(ValueError, match="need an input_shape"):
        discretize(net)
    with pytest.raises(ValueError, match=r"reads \[6\], but gets \[24\]"):
        discretize(net, input_shape=(2, 20, 20))
    without_dense = nn.Sequential(*list(net)[:4], nn.Flatten(), GroupSum(3))
    assert_same(without_dense, discretize(without_dense, input_shape=(2, 8, 7)), x)


def test_conv_layers_after_flattening_are_refused() -> None:
    net = nn.Sequential(nn.Flatten(), LogicConv2d(1, 5, 3, seed=0), GroupSum(5))
    with pytest.raises(ValueError, match="layer '1', a LogicConv2d"):
        discretize(net, input_shape=(1, 3, 3))


def test_images_behind_an_encoder_need_their_shape() -> None:
    net = nn.Sequential(Thermometer.even(3), nn.Flatten(), LogicDense(48, 20, seed=0), GroupSum(2))
    with pytest.raises(ValueError, match="give the input_shape"):
        discretize(net)
    x = torch.rand(50, 1, 4, 4)
    circuit = discretize(net.bfloat16().float(), input_shape=(1, 4, 4))
    with rounded(net):
        assert np.array_equal(circuit.scores(x.numpy()), net(x).detach().round().numpy())
    flat = nn.Sequential(Thermometer.even(3), LogicDense(48, 20, seed=0), GroupSum(2))
    assert discretize(flat).features == 16


def test_thresholds_for_other_channels_are_refused() -> None:
    net = nn.Sequential(Thermometer(torch.rand(3, 2)), nn.Flatten(), LogicDense(32, 20, seed=0), GroupSum(2))
    with pytest.raises(ValueError, match="it is for 3 features or channels"):
        discretize(net, input_shape=(1, 4, 4))


def test_modules_used_twice_are_there_twice() -> None:
    layer, pool = LogicDense(16, 16, init="uniform", seed=0), OrPool2d(2)
    net = nn.Sequential(layer, layer, GroupSum(4))
    assert discretize(net).gates == 32
    assert_same(net, discretize(net), torch.rand(50, 16).round())
    net = nn.Sequential(
        LogicConv2d(1, 4, 3, padding=1, init="uniform", seed=0), pool,
        LogicConv2d(4, 4, 3, padding=1, init="uniform", seed=1), pool, nn.Flatten(), GroupSum(4),
    )  # fmt: skip
    assert_same(net, discretize(net, input_shape=(1, 8, 8)), torch.rand(50, 1, 8, 8).round())


def test_sequences_in_sequences() -> None:
    inner = nn.Sequential(LogicDense(8, 12, init="uniform", seed=0), nn.Sequential(nn.Dropout(), nn.Identity()))
    net = nn.Sequential(nn.Sequential(Thermometer.even(2)), LogicStack(inner, LogicDense(12, 6, seed=1)), GroupSum(3))
    assert_same(net, discretize(net), torch.rand(50, 4))
    network = LogicNetwork(None, [LogicDense(4, 6, seed=0)], GroupSum(2))
    assert_same(nn.Sequential(network), discretize(nn.Sequential(network)), torch.rand(9, 4).round())


def test_pooling_of_the_input() -> None:
    net = nn.Sequential(Thermometer.even(2), OrPool2d(2), nn.Flatten(), LogicDense(8, 6, seed=0), GroupSum(2))
    assert_same(net, discretize(net, input_shape=(1, 4, 5)), torch.rand(50, 1, 4, 5))


class Turned(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for module in reversed(list(self)):
            x = module(x)
        return x


class Negated(LogicDense):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 1 - super().forward(x)


def test_what_a_circuit_cannot_follow_is_refused() -> None:
    def layers() -> tuple[LogicDense, LogicDense, GroupSum]:
        return LogicDense(4, 4, seed=0), LogicDense(4, 4, seed=1), GroupSum(2)

    hooked = nn.Sequential(*layers())
    hooked[1].register_forward_hook(lambda _m, _x, out: 1 - out)
    with pytest.raises(ValueError, match="layer '1', a LogicDense: it has forward hooks"):
        discretize(hooked)
    pre = nn.Sequential(*layers())
    pre.register_forward_pre_hook(lambda _m, x: (1 - x[0],))
    with pytest.raises(ValueError, match="a Sequential: it has forward hooks"):
        discretize(pre)
    first, second, head = layers()
    with pytest.raises(ValueError, match="layer '0', a Turned"):
        discretize(nn.Sequential(Turned(first, second), head))
    with pytest.raises(ValueError, match="layer '0', a Negated"):
        discretize(nn.Sequential(Negated(4, 4, seed=0), head))
    patched = nn.Sequential(*layers())
    original = patched[0].forward
    patched[0].forward = lambda x: 1 - original(x)
    with pytest.raises(ValueError, match="layer '0', a LogicDense"):
        discretize(patched)
    with torch.no_grad():
        second.theta[1, 2] = float("nan")
    with pytest.raises(ValueError, match="layer '1', a LogicDense: its parameters are not all finite"):
        discretize(nn.Sequential(first, second, head))
    with pytest.raises(ValueError, match="after the group sums"):
        discretize(nn.Sequential(*layers(), LogicDense(2, 2)))


def test_shapes_that_would_permute_bits() -> None:
    flat = nn.Sequential(Thermometer.even(2), LogicDense(32, 8, seed=0), GroupSum(2))
    assert_same(flat, discretize(flat), torch.rand(50, 16))
    with pytest.raises(ValueError, match=r"reads \[32\], but gets \[2, 4, 4\]"):
        discretize(flat, input_shape=(1, 4, 4))
    known = LogicNetwork(Thermometer.even(2), [LogicDense(32, 8, seed=0)], GroupSum(2), input_shape=(1, 4, 4))
    assert_same(known, discretize(known, input_shape=(1, 4, 4)), torch.rand(50, 1, 4, 4))
    with pytest.raises(ValueError, match=r"takes inputs of shape \(1, 4, 4\), not of \(16,\)"):
        discretize(known, input_shape=(16,))
    rows = nn.Sequential(nn.Flatten(1, 2), Thermometer.even(2), nn.Flatten(), LogicDense(32, 8, seed=0), GroupSum(2))
    with pytest.raises(ValueError, match="give the input_shape"):
        discretize(rows)
    for shape in ((1, 4, 4), (4, 2, 2)):
        assert_same(rows, discretize(rows, input_shape=shape), torch.rand(50, *shape))
    with pytest.raises(ValueError, match="such as"):
        discretize(flat, input_shape=cast(Any, 16))


def test_a_circuit_that_differs_from_its_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    net = nn.Sequential(Thermometer.even(3), LogicDense(12, 8, init="uniform", seed=0), GroupSum(2))
    emit = discretization._emit

    def wrong(state: Any, part: Any) -> None:
        emit(state, part)
        if isinstance(part, Thermometer):
            state._threshold[5] += 1e-6

    discretize(net)
    monkeypatch.setattr(discretization, "_emit", wrong)
    with pytest.raises(ValueError, match="differs from the rounded model"):
        discretize(net)


def test_random_models() -> None:
    spec = importlib.util.spec_from_file_location("fuzz_models", Path(__file__).parent / "fuzz" / "models.py")
    assert spec is not None
    assert spec.loader is not None
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    counted = fuzz.run(150, seed=100_000)
    assert counted["circuit"] > 30
    assert counted["ran"] > 80
