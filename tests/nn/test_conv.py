"""Convolutional layers as modules: shapes, leaves, stacks, saving."""

from typing import Any

import pytest
import torch
from torch import nn

from gatelight import models, ops
from gatelight.nn import GroupSum, LogicConv2d, LogicConvStack, LogicDense, LogicNetwork, OrPool2d, Thermometer, rounded
from gatelight.parametrize import IWP, OP, Parametrization, inits
from gatelight.wiring import Leaves


def small_stack() -> LogicConvStack:
    layers: list[LogicConv2d | OrPool2d] = [
        LogicConv2d(2, 6, 3, padding=1, init="gaussian", seed=0),
        OrPool2d(2),
        LogicConv2d(6, 4, 3, padding=1, tree_depth=2, parametrization=IWP(arity=3), init="gaussian", seed=1),
        LogicConv2d(4, 5, 2, tree_depth=1, parametrization="op", init="gaussian", seed=2),
    ]
    return LogicConvStack(layers)


def test_stack_equals_its_layers() -> None:
    stack, x = small_stack(), torch.rand(19, 2, 8, 7)
    one_by_one = nn.Sequential(*stack)
    assert torch.allclose(stack(x), one_by_one(x), atol=1e-6)
    results = [torch.autograd.grad(model(x).square().sum(), list(model.parameters())) for model in (stack, one_by_one)]
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    with rounded(stack):
        assert set(stack(x.round()).unique().tolist()) <= {0.0, 1.0}
        assert torch.equal(stack(x.round()), one_by_one(x.round()))


def test_hooks_see_every_layer() -> None:
    stack, seen = small_stack(), []
    for layer in stack:
        layer.register_forward_hook(lambda _module, _inputs, output: seen.append(tuple(output.shape)))
    stack(torch.rand(3, 2, 8, 8))
    assert seen == [(3, 6, 8, 8), (3, 6, 4, 4), (3, 4, 4, 4), (3, 5, 3, 3)]


def test_double_precision_and_the_reference_backend() -> None:
    stack, x = small_stack(), torch.rand(5, 2, 8, 8)
    expected = stack(x)
    ops.set_backend("reference")
    try:
        assert torch.allclose(stack(x), expected, atol=1e-6)
    finally:
        ops.set_backend("auto")
    assert torch.allclose(stack.double()(x.double()).float(), expected, atol=1e-6)


@pytest.mark.parametrize("init", inits.names(2)[:8])
@pytest.mark.parametrize(
    "parametrization", [OP(), IWP(estimator="sigmoid-st"), IWP(estimator="sin")], ids=lambda p: p.native_map
)
def test_every_init_starts_where_dense_layers_do(init: str, parametrization: Parametrization) -> None:
    options: dict[str, Any] = {"parametrization": parametrization}
    conv = LogicConv2d(2, 40, 3, init=init, seed=0, **options)
    dense = LogicDense(50, 280, init=init, seed=0, **options)
    assert conv.theta.shape == dense.theta.shape
    torch.testing.assert_close(conv.table().mean(0), dense.table().mean(0), atol=0.15, rtol=0)
    assert conv(torch.rand(2, 2, 4, 4)).shape == (2, 40, 2, 2)


def test_residual_init_passes_the_first_leaf_on() -> None:
    layer = LogicConv2d(3, 8, 3, padding=1, seed=0)
    x = torch.rand(4, 3, 6, 6).round()
    with rounded(layer):
        out = layer(x)
    padded = nn.functional.pad(x, (1, 1, 1, 1))
    for tree, leaf in enumerate(layer.fanin[:, 0].tolist()):
        channel, place = divmod(leaf, 9)
        top, left = divmod(place, 3)
        assert torch.equal(out[:, tree], padded[:, channel, top : top + 6, left : left + 6])


def test_leaves_are_distinct_and_balanced() -> None:
    layer = LogicConv2d(4, 72, 3, seed=0)
    assert all(len(set(row)) == 8 for row in layer.fanin.tolist())
    counts = layer.fanin.flatten().bincount(minlength=36)
    assert counts.max() - counts.min() <= 1


def test_groups_of_channels() -> None:
    layer = LogicConv2d(16, 64, 3, wiring=Leaves(channels_per_tree=2), seed=0)
    channels = layer.fanin // 9
    assert int((channels.max(1).values - channels.min(1).values).max()) == 1
    assert set(channels.flatten().tolist()) == set(range(16))


def test_affected_is_what_changes() -> None:
    stack = LogicConvStack(
        [LogicConv2d(1, 6, 3, padding=1, init="xor", seed=0), OrPool2d(2), LogicConv2d(6, 5, 2, init="xor", seed=1)]
    )
    x = torch.rand(50, 1, 8, 8)
    marked = torch.zeros(1, 8, 8, dtype=torch.bool)
    marked[0, 3, 2] = True
    changed = (stack(x) != stack(torch.where(marked, 1 - x, x))).any(0)
    affected = stack.affected(marked)
    assert not (changed & ~affected).any()
    assert 0 < int(affected.sum()) < affected.numel()


def test_regularizers_reach_convolutional_layers() -> None:
    net = models.build("digits", model="cdlgn", width=4, intervention=0.2, seed=0)
    x = torch.rand(8, 1, 8, 8)
    net.train()
    assert not torch.equal(net(x), net(x))
    net.eval()
    assert torch.equal(net(x), net(x))
    assert [tuple(a.shape) for a in net.activations(x)[:2]] == [(8, 4 * 64), (8, 16 * 16)]


def test_dropout_follows_paths_through_the_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    net = models.build("digits", model="cdlgn", width=4, tree_depth=1, init="xor", dropout=0.5, seed=0)
    dropped = torch.zeros(192, dtype=torch.bool)
    dropped[70] = True
    assert net.dropout is not None
    monkeypatch.setattr(net.dropout, "draw", lambda inputs, device: dropped)
    bits = torch.rand(60, 192)
    monkeypatch.setattr(net.head, "forward", lambda value: value)
    net.train()
    masked = net.scores(bits)
    same = net.scores(torch.where(dropped, 1 - bits, bits))
    net.eval()
    full = net.scores(bits)
    assert torch.equal(masked, same)  # no output that is left depends on the dropped bit
    gone = (masked == 0).all(0)
    assert 0 < int(gone.sum()) < gone.numel()
    assert torch.equal(masked[:, ~gone], full[:, ~gone])


def test_saved_and_loaded() -> None:
    one, other = models.build("digits", model="cdlgn", seed=0), models.build("digits", model="cdlgn", seed=1)
    x = torch.rand(4, 1, 8, 8)
    assert not torch.equal(one(x), other(x))
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(x), other(x))
    state = one.state_dict()
    state["conv.0.fanin"] = state["conv.0.fanin"].clone()
    state["conv.0.fanin"][0, 0] = 27
    with pytest.raises(ValueError, match=r"fanin\[0, 0\] must be from 0 to 26"):
        other.load_state_dict(state)


def layer(**options: Any) -> LogicConv2d:
    return LogicConv2d(**({"in_channels": 2, "out_channels": 3, "kernel_size": 3, "seed": 0} | options))


def network(**options: Any) -> LogicNetwork:
    parts: dict[str, Any] = {"conv": LogicConvStack([layer(in_channels=1)]), "input_shape": (1, 4, 4)} | options
    return LogicNetwork(parts.pop("encoder", None), [LogicDense(12, 4, seed=0)], GroupSum(2), **parts)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layer(out_channels=0), "out_channels must be a whole number of at least 1"),
        (lambda: layer(tree_depth=0), "depth must be a whole number of at least 1"),
        (lambda: layer(wiring=Leaves(3)), "channels_per_tree must be from 1 to 2"),
        (lambda: layer()(torch.rand(1, 3, 8, 8)), r"takes \[batch, 2, h, w\], got shape \(1, 3, 8, 8\)"),
        (lambda: layer()(torch.rand(1, 2, 2, 8)), "too small for a window"),
        (lambda: OrPool2d(0), "at least 1"),
        (lambda: OrPool2d(3)(torch.rand(1, 1, 2, 5)), "at least 3 pixels"),
        (lambda: LogicConvStack([]).steps, "at least one LogicConv2d"),
        (lambda: LogicConvStack([OrPool2d(2)]).steps, "starts with a LogicConv2d"),
        (lambda: LogicConvStack([layer(), layer()]), "3 channels feeds one of 2"),
        (lambda: network(input_shape=None), "need an input_shape"),
        (lambda: network(encoder=Thermometer.even(3)), "makes 3 channels, the first layer reads 1"),
        (lambda: network(input_shape=(1, 5, 5)), "27 outputs feed a dense one of 12 inputs"),
    ],
)
def test_bad_arguments_are_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
