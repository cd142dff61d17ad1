"""What layers and stacks take and refuse."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

import gatelight.nn
from gatelight import models
from gatelight.nn import (
    GateIntervention,
    GroupSum,
    LogicConv2d,
    LogicConvStack,
    LogicDense,
    LogicNetwork,
    LogicStack,
    OrPool2d,
    Thermometer,
    forward,
    rounded,
)
from gatelight.parametrize import IWP, OP, Init
from gatelight.wiring import Random


def two_layers() -> list[LogicDense]:
    return [LogicDense(16, 40, seed=0), LogicDense(40, 30, seed=1)]


def sequential(stack: nn.Sequential) -> nn.Sequential:
    return nn.Sequential(*copy.deepcopy(list(stack)))


def test_widths_are_checked_when_a_stack_is_built_and_changed() -> None:
    first, second = two_layers()
    wrong = LogicDense(60, 30, seed=1)
    with pytest.raises(ValueError, match="a layer of 40 gates feeds one of 60 inputs"):
        LogicStack([first, wrong])
    stack = LogicStack([first, second])
    for change in (
        lambda: stack.append(wrong),
        lambda: stack.insert(1, wrong),
        lambda: stack.extend([wrong]),
        lambda: stack.__setitem__(1, wrong),
        lambda: stack.__setitem__(-1, wrong),
        lambda: stack.add_module("2", wrong),
    ):
        with pytest.raises(ValueError, match="gates feeds one of"):
            change()
        assert list(stack) == [first, second]
    stack.append(LogicDense(30, 5, seed=2))
    assert stack(torch.rand(3, 16)).shape == (3, 5)


def test_widths_that_changed_behind_its_back_are_seen_before_the_kernels_run() -> None:
    stack = LogicStack(two_layers())
    stack._modules["1"] = LogicDense(6_000_000, 30, seed=1)
    with pytest.raises(ValueError, match="a layer of 40 gates feeds one of 6000000 inputs"):
        stack(torch.rand(9, 16))
    stack = LogicStack(two_layers())
    del stack[0]
    with pytest.raises(ValueError, match=r"takes \[batch, 40\]"):
        stack(torch.rand(9, 16))


def test_conv_stacks_check_channels_when_changed() -> None:
    stack = LogicConvStack([LogicConv2d(1, 4, 3, seed=0), OrPool2d(2)])
    with pytest.raises(ValueError, match="a layer of 4 channels feeds one of 3"):
        stack.append(LogicConv2d(3, 4, 3, seed=0))
    assert len(stack) == 2


class Doubled(LogicDense):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) / 2


@pytest.mark.parametrize(
    "between",
    [nn.Sigmoid(), Doubled(40, 40, seed=3), nn.Sequential(LogicDense(40, 40, seed=4)), nn.Identity()],
    ids=lambda module: type(module).__name__,
)
def test_a_stack_runs_what_it_cannot_fuse(between: nn.Module) -> None:
    first, second = two_layers()
    stack = LogicStack([first, between, second])
    x = torch.rand(9, 16)
    torch.testing.assert_close(stack(x), sequential(stack)(x))
    assert stack.layers == [m for m in stack if isinstance(m, LogicDense)]


def test_interventions_inside_a_stack_intervene() -> None:
    first, second = two_layers()
    stack = LogicStack([first, GateIntervention(0.999, "one"), second])
    assert not torch.allclose(stack(torch.rand(9, 16)), LogicStack(first, second)(torch.rand(9, 16)))


def test_hooks_and_patches_are_honoured() -> None:
    x = torch.rand(9, 16, requires_grad=True)
    calls: list[str] = []
    stack = LogicStack(two_layers())
    plain = stack(x)
    with stack[0].register_full_backward_hook(lambda *_: calls.append("backward")):
        stack(x).sum().backward()
    with stack[1].register_full_backward_pre_hook(lambda *_: calls.append("pre")):
        stack(x).sum().backward()
    with torch_module.register_module_forward_hook(lambda m, _x, _y: calls.append(type(m).__name__)):
        stack(x)
    with torch_module.register_module_full_backward_hook(lambda m, _x, _y: calls.append("global")):
        stack(x).sum().backward()
    assert calls == ["backward", "pre", "LogicDense", "LogicDense", "LogicStack", "global", "global", "global"]
    with stack[0].register_forward_hook(lambda _m, _x, out: 1 - out):
        assert not torch.allclose(stack(x), plain)
    original = stack[0].forward
    stack[0].forward = lambda x: 1 - original(x)
    torch.testing.assert_close(stack(x), stack[1](1 - original(x)))


def test_conv_stacks_run_what_they_cannot_fuse() -> None:
    class Negated(OrPool2d):
        def forward(self, x: Tensor) -> Tensor:
            return 1 - super().forward(x)

    stack = LogicConvStack(OrPool2d(2), LogicConv2d(2, 4, 3, seed=0), Negated(2), LogicConv2d(4, 4, 2, seed=1))
    x = torch.rand(3, 2, 12, 12)
    torch.testing.assert_close(stack(x), sequential(stack)(x))
    x = x.double()
    torch.testing.assert_close(stack.double()(x), sequential(stack)(x))


def test_stacks_are_sequences() -> None:
    stack = LogicStack(*two_layers(), memory="recompute")
    x = torch.rand(4, 16)
    torch.testing.assert_close(stack[:1](x), stack[0](x))
    assert stack[:1].memory == "recompute"
    assert torch.equal(LogicStack([])(x), x)
    assert torch.equal(LogicStack()(x), x)
    assert torch.equal(stack[:0](x), x)
    torch.testing.assert_close((stack + nn.Sequential(GroupSum(2)))(x), GroupSum(2)(stack(x)))
    assert LogicStack(two_layers(), "keep").memory == "keep"
    images = torch.rand(2, 1, 8, 8)
    conv = LogicConvStack([LogicConv2d(1, 4, 3, padding="same", seed=0), OrPool2d(2)])
    assert torch.equal(conv[1:](images), OrPool2d(2)(images))
    assert torch.equal(LogicConvStack()(images), images)
    with pytest.raises(ValueError, match="takes layers, or one list of them"):
        LogicStack([1, 2])


@pytest.mark.parametrize(
    ("run", "shape"),
    [
        (LogicDense(6, 4, seed=0), (3, 6)),
        (LogicStack(LogicDense(6, 4, seed=0)), (3, 6)),
        (LogicConv2d(1, 2, 2, seed=0), (3, 1, 5, 5)),
        (LogicConvStack(LogicConv2d(1, 2, 2, seed=0)), (3, 1, 5, 5)),
        (OrPool2d(2), (3, 1, 5, 5)),
    ],
)
def test_all_layers_take_relaxed_bits_and_nothing_else(run: nn.Module, shape: tuple[int, ...]) -> None:
    x = torch.rand(shape)
    run(x)
    for wrong in (x.bool(), (255 * x).to(torch.uint8), x.long(), x.to(torch.complex64), x.to_sparse()):
        with pytest.raises(ValueError, match="float32, float64, bfloat16 or float16"):
            run(wrong)
    for value in (-0.5, 1.5, float("nan"), float("inf")):
        bad = x.clone()
        bad.view(-1)[3] = value
        with pytest.raises(ValueError, match=r"values in \[0, 1\]"):
            run(bad)
    with pytest.raises(ValueError, match="takes a tensor"):
        run(x.numpy())
    assert run(x[:0]).shape[0] == 0


def test_values_that_rounding_pushes_out_are_fine() -> None:
    x = torch.full((2, 6), 1.0 + 3e-7)
    LogicDense(6, 4, seed=0)(x)


@pytest.mark.parametrize("layer", [LogicDense(6, 4, seed=0), LogicConv2d(1, 2, 2, seed=0)])
def test_double_inputs_of_float_layers_are_converted(layer: nn.Module) -> None:
    x = torch.rand((3, 6) if isinstance(layer, LogicDense) else (3, 1, 5, 5), dtype=torch.float64, requires_grad=True)
    out = layer(x)
    assert out.dtype == torch.float32
    assert torch.equal(out, layer(x.float()))
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert gradient.dtype == torch.float64
    assert layer.double()(x).dtype == torch.float64


def test_shapes_as_torch_writes_them() -> None:
    layer = LogicConv2d(1, 2, (3, 3), padding="same", stride=(1, 1), seed=0)
    assert (layer.kernel_size, layer.padding, layer.stride) == (3, 1, 1)
    assert LogicConv2d(1, 2, 3, padding="valid").padding == 0
    assert OrPool2d((2, 2)).size == 2
    x = torch.rand(1, 1, 4, 4)
    assert torch.equal(OrPool2d((2, 2))(x), OrPool2d(2)(x))


#: The layers without their types, to be called with what they do not take.
odd: Any = gatelight.nn


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: odd.LogicConv2d(1, 2, (3, 2)), "kernel_size must be the same in both directions"),
        (lambda: odd.LogicConv2d(1, 2, 2, padding="same"), "odd window and stride 1"),
        (lambda: odd.LogicConv2d(1, 2, 3, padding="full"), "padding must be a whole number"),
        (lambda: odd.LogicConv2d(1, 2, 2.5), "kernel_size must be a whole number"),
        (lambda: odd.LogicConv2d(1, 2, 2, tree_depth=60), "too large"),
        (lambda: odd.OrPool2d((2, 3)), "the same in both directions"),
        (lambda: odd.OrPool2d("2"), "whole number"),
        (lambda: odd.LogicDense(4.0, 2), "in_features must be a whole number"),
        (lambda: odd.LogicDense(4, True), "out_features must be a whole number"),
        (lambda: odd.LogicDense(4, -1), "out_features must be a whole number of at least 1, got -1"),
        (lambda: odd.GroupSum(2.5), "classes must be a whole number"),
        (lambda: odd.GroupSum(2, "hot"), "temperature must be a positive number"),
        (lambda: odd.GroupSum(2)(torch.rand(1, 2, 2)), r"takes? \[batch, gates\]"),
        (lambda: odd.Thermometer([]), "not empty"),
        (lambda: odd.Thermometer(["a"]), "thresholds"),
        (lambda: odd.Thermometer([True]), "real numbers"),
        (lambda: odd.Thermometer.even(1.5), "whole number"),
        (lambda: odd.LogicNetwork(None, [odd.LogicDense(4, 2)], odd.GroupSum(2), input_shape=28), "such as \\(784,\\)"),
        (lambda: odd.LogicDense(4, 2, wiring=torch.tensor([[0.0, 1.7], [2.0, 3.0]])), "whole numbers"),
        (lambda: odd.LogicDense(4, 2, wiring=[[0, 1], [2, 4]]), r"fanin\[1, 1\] must be from 0 to 3, got 4"),
        (lambda: odd.LogicDense(4, 2, wiring=[[0, 1], [2]]), "wiring must be"),
        (lambda: odd.LogicDense(4, 2, wiring=[["a", "b"], ["c", "d"]]), "wiring must be"),
        (lambda: odd.LogicDense(4, 2, wiring=np.array([[0, 1 << 40], [2, 3]])), "from 0 to 3"),
        (lambda: odd.LogicDense(4, 2, fixed=[1, 0]), "fixed must be bool"),
    ],
)
def test_bad_arguments_are_named(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_connections_from_lists_and_arrays() -> None:
    rows = [[0, 1], [2, 3]]
    for wiring in (rows, np.array(rows), np.array(rows, np.uint16), torch.tensor(rows), torch.tensor(rows).byte()):
        layer = LogicDense(4, 2, wiring=wiring)
        assert layer.fanin.dtype == torch.int32
        assert layer.fanin.tolist() == rows
    given = torch.tensor(rows, dtype=torch.int32)
    layer = LogicDense(4, 2, wiring=given)
    given[0, 0] = 99
    assert layer.fanin.tolist() == rows


def test_built_on_another_device() -> None:
    with torch.device("meta"):
        net = LogicNetwork(
            Thermometer.even(2),
            [LogicDense(64, 20), LogicDense(20, 4)],
            GroupSum(2),
            conv=LogicConvStack(LogicConv2d(2, 4, 3, padding=1)),
            input_shape=(1, 4, 4),
        )
        assert {t.device.type for t in net.state_dict().values()} == {"meta"}
        assert net(torch.rand(2, 1, 4, 4)).shape == (2, 2)
    real = net.to_empty(device="cpu")
    with torch.device("cpu"):
        source = LogicNetwork(
            Thermometer.even(2),
            [LogicDense(64, 20), LogicDense(20, 4)],
            GroupSum(2),
            conv=LogicConvStack(LogicConv2d(2, 4, 3, padding=1)),
            input_shape=(1, 4, 4),
        )
    real.load_state_dict(source.state_dict())
    x = torch.rand(2, 1, 4, 4)
    assert torch.equal(real(x), source(x))


def test_thresholds_keep_their_precision() -> None:
    encoder = Thermometer([0.1, 1 / 3])
    exact = encoder.thresholds.clone()
    for convert in (encoder.half, encoder.float, encoder.bfloat16, encoder.double, encoder.cpu):
        convert()
        assert torch.equal(encoder.thresholds, exact)
    assert Thermometer(np.array([[0.5], [0.25]])).count == 1


def test_thresholds_elsewhere_are_not_read() -> None:
    encoder = Thermometer.even(2).to("meta")
    for shape in ((3, 5), (3, 1, 4, 4)):
        with pytest.raises(ValueError, match="the encoder is on meta, its input on cpu"):
            encoder(torch.rand(shape))


def test_whole_numbers_before_an_encoder() -> None:
    encoder = Thermometer.even(3)
    x = torch.tensor([[0, 70, 200]])
    for dtype in (torch.int16, torch.int32, torch.int64):
        assert torch.equal(encoder(x.to(dtype)), encoder(x.byte()))
    assert torch.equal(encoder(x > 100), encoder((x > 100).float()))
    with pytest.raises(ValueError, match="may be bytes or bits"):
        encoder(torch.tensor([[0, 1, 1]]))
    with pytest.raises(ValueError, match=r"in 0\.\.255"):
        encoder(torch.tensor([[0, 256, 1]]))


def test_a_network_without_encoder_takes_bits_of_any_type() -> None:
    net = LogicNetwork(None, [LogicDense(6, 4, seed=0)], GroupSum(2))
    bits = torch.rand(5, 6) < 0.5
    for dtype in (torch.uint8, torch.int64, torch.float32):
        assert torch.equal(net(bits.to(dtype)), net(bits))
    for wrong in (2 * bits.long(), bits.byte() * 255, -bits.float()):
        with pytest.raises(ValueError, match=r"in \[0, 1\]"):
            net(wrong)


def test_nothing_left_to_learn() -> None:
    for parametrization in ("iwp", "op"):
        fixed = torch.ones(6, dtype=torch.bool)
        layer = LogicDense(6, 6, parametrization=parametrization, fixed=fixed, seed=0)
        assert layer.theta.numel() == 0
        x = torch.rand(3, 6)
        assert torch.equal(layer(x), x[:, layer.fanin[:, 0]])
        assert torch.equal(LogicStack(layer)(x), layer(x))
        LogicStack(LogicDense(6, 6, seed=1), layer)(x).sum().backward()


def test_a_refused_state_leaves_the_layer_as_it_was() -> None:
    for layer in (LogicDense(9, 4, seed=0), LogicConv2d(1, 2, 3, seed=0)):
        before = copy.deepcopy(layer.state_dict())
        for bad in (9, -1):
            state = copy.deepcopy(before)
            state["theta"] += 1
            state["fanin"][0, 0] = bad
            with pytest.raises(ValueError, match="must be from 0 to 8"):
                layer.load_state_dict(state)
            assert all(torch.equal(before[name], tensor) for name, tensor in layer.state_dict().items())
        state = copy.deepcopy(before) | {"fanin": before["fanin"] + 0.25}
        with pytest.raises(ValueError, match="whole numbers"):
            layer.load_state_dict(state)
    fixed = LogicDense(4, 4, fixed=torch.tensor([True, False, False, False]), seed=0)
    with pytest.raises(ValueError, match="leave 3 gates"):
        fixed.load_state_dict(fixed.state_dict() | {"fixed": torch.ones(4, dtype=torch.bool)})


def test_edited_connections_do_not_reach_a_kernel() -> None:
    x = torch.rand(2, 6)
    for layer in (LogicDense(6, 4, seed=0), LogicStack(LogicDense(6, 4, seed=0))):
        layer(x)
        fanin = layer.fanin if isinstance(layer, LogicDense) else layer[0].fanin
        fanin[1, 1] = 1_000_000
        with pytest.raises(ValueError, match=r"fanin\[1, 1\] must be from 0 to 5, got 1000000"):
            layer(x)
        fanin[1, 1] = 5
        layer(x)
    conv = LogicConv2d(1, 2, 2, seed=0)
    conv.fanin[0, 0] = -7
    for run in (conv, LogicConvStack(conv)):
        with pytest.raises(ValueError, match="from 0 to 3, got -7"):
            run(torch.rand(1, 1, 4, 4))


def test_rounded_leaves_no_trace() -> None:
    net = nn.Sequential(LogicDense(6, 4, seed=0), nn.Sequential(LogicDense(4, 4, seed=1), nn.Dropout()))
    net[1].eval()
    x = torch.rand(3, 6)
    soft = net[0](x)
    with rounded(net):
        assert not net[0].training
        inside = copy.deepcopy(net)
        with rounded(net[0]):
            assert forward.of(net[0]) is forward.ROUNDED
        assert forward.of(net[0]) is forward.ROUNDED
        assert not torch.equal(net[0](x), soft)
    assert [m.training for m in net.modules()] == [True, True, False, False, False]
    assert forward.of(net[0]) is forward.SOFT
    assert torch.equal(net[0](x), soft)
    assert torch.equal(inside[0](x), soft)
    with pytest.raises(RuntimeError, match="stop"), rounded(net):
        raise RuntimeError("stop")
    assert torch.equal(net[0](x), soft)


@dataclass(frozen=True)
class Odd(IWP):
    """An IWP whose init makes something else."""

    make: Callable[[int], Any] = torch.rand

    def init(self, gates: int, init: Init, generator: torch.Generator) -> Any:
        return self.make(gates)


@pytest.mark.parametrize(
    ("make", "got"),
    [
        (lambda gates: torch.rand(gates), r"torch.float32 \[3\]"),
        (lambda gates: torch.rand(gates, 5), r"torch.float32 \[3, 5\]"),
        (lambda gates: torch.ones(gates, 4, dtype=torch.uint8), r"torch.uint8 \[3, 4\]"),
        (lambda gates: [[0.0] * 4] * gates, "list"),
    ],
)
def test_an_init_of_another_shape_or_type_is_refused(make: Callable[[int], Any], got: str) -> None:
    with pytest.raises(ValueError, match=rf"init of Odd must return floats \[3, 4\], got {got}"):
        LogicDense(4, 3, parametrization=Odd(make=make))
    with pytest.raises(ValueError, match=r"init of Odd must return floats \[3, 4\]"):
        LogicConv2d(1, 3, 2, tree_depth=1, parametrization=Odd(make=make))


def test_a_class_is_no_value() -> None:
    with pytest.raises(ValueError, match=r"a parametrization is a value: IWP\(\), not the class IWP"):
        LogicDense(4, 3, parametrization=IWP)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"a wiring is a value: Random\(\), not the class Random"):
        LogicDense(4, 3, wiring=Random)

    class Draws:
        def draw(self, site: Any, generator: Any) -> Any: ...

    with pytest.raises(ValueError, match="which has no any_order"):
        LogicDense(4, 3, wiring=Draws())
    with pytest.raises(ValueError, match=r"Leaves\(\), not a name, got 'random'"):
        LogicConv2d(1, 3, 2, wiring="random")


def test_options_beside_a_value_must_be_its_own() -> None:
    with pytest.raises(ValueError, match="arity 3 is given, but the parametrization is IWP"):
        models.build("digits", arity=3, parametrization=IWP(2))
    with pytest.raises(ValueError, match="estimator 'sigmoid' is given, but the parametrization is OP"):
        models.build("digits", estimator="sigmoid", parametrization=OP())
    with pytest.raises(ValueError, match="init_std given, but the init is"):
        models.build("digits", init_std=0.3, init=Init("gaussian"))
    assert models.build("digits", width=20, arity=3, parametrization=IWP(3)).layers[0].arity == 3
