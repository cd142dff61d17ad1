import contextlib

import pytest
import torch
from torch import nn

from gatelight.nn import GroupSum, LogicDense, LogicNetwork, Thermometer, rounded
from gatelight.nn.linking import list_linked
from gatelight.ops import lut
from gatelight.parametrize import Init
from gatelight.wiring import Clustered, Placed


def test_dense_is_the_op_on_its_table() -> None:
    layer = LogicDense(7, 5, arity=3, init="uniform", seed=3)
    x = torch.rand(4, 7)
    assert torch.equal(layer(x), lut(x, layer.fanin, layer.table()))
    assert layer.table().shape == (5, 8)


def test_dense_rounded_equals_boolean_evaluation() -> None:
    layer = LogicDense(6, 50, arity=3, init="gaussian", seed=0)
    x = torch.randint(0, 2, (40, 6)).float()
    with rounded(layer):
        out = layer(x)
    tables = layer.rounded_table().numpy().astype(int)
    for sample in range(40):
        for gate in range(50):
            entry = 0
            for source in layer.fanin[gate].tolist():
                entry = 2 * entry + int(x[sample, source])
            assert out[sample, gate].item() == tables[gate, entry]


def test_rounded_restores_the_model() -> None:
    net = LogicNetwork(None, [LogicDense(4, 4, seed=0)], GroupSum(2))
    net.train()
    x = torch.rand(3, 4)
    soft = net(x)
    with contextlib.suppress(ZeroDivisionError), rounded(net):
        assert not net.training
        assert not net(x).requires_grad
        raise ZeroDivisionError
    assert net.training
    assert torch.equal(net(x), soft)


def test_seed_draws_everything_and_is_saved() -> None:
    one, same, other = (LogicDense(9, 6, seed=s) for s in (1, 1, 2))
    assert torch.equal(one.fanin, same.fanin)
    assert torch.equal(one.theta, same.theta)
    assert not torch.equal(one.theta, other.theta)
    other.load_state_dict(one.state_dict())
    assert torch.equal(one.fanin, other.fanin)
    torch.manual_seed(5)
    global_one = LogicDense(9, 6)
    torch.manual_seed(5)
    assert torch.equal(global_one.theta, LogicDense(9, 6).theta)


def test_loading_bad_connections_is_refused() -> None:
    layer = LogicDense(9, 6, seed=0)
    state = layer.state_dict()
    state["fanin"] = torch.full((6, 2), 9, dtype=torch.int32)
    with pytest.raises(ValueError, match=r"fanin\[0, 0\] must be from 0 to 8"):
        layer.load_state_dict(state)


def test_linking_only_renames_gates() -> None:
    plain, linked = (LogicDense(9, 30, seed=4) for _ in range(2))
    list_linked(linked)
    assert sorted(plain.fanin.sort(1).values.tolist()) == sorted(linked.fanin.sort(1).values.tolist())
    assert plain.fanin.tolist() != linked.fanin.tolist()


@pytest.mark.parametrize("kind", ["iwp", "op"])
@pytest.mark.parametrize("arity", [2, 3])
def test_linked_gates_pass_on_what_they_would_otherwise(kind: str, arity: int) -> None:
    # The residual init passes a gate's first input, and an input that changes places takes this with it. Were every
    # input the first one of one gate, and so passed on once, networks would round worse (docs/log.md).
    def passed(*, linked: bool, fixed: torch.Tensor | None = None) -> tuple[LogicDense, list[int]]:
        init = Init("residual", std=0.1)
        layer = LogicDense(300, 300, arity=arity, parametrization=kind, init=init, seed=4, fixed=fixed)
        if linked:
            list_linked(layer)
        with rounded(layer):
            passes = layer(torch.eye(300)).int()  # x[i] alone turns on exactly the gates that pass input i
        assert passes.sum(0).tolist() == [1] * 300
        return layer, passes.argmax(0).tolist()

    _, listed = passed(linked=True)
    assert sorted(listed) == sorted(passed(linked=False)[1])
    assert len(set(listed)) < 250
    fixed = torch.arange(300) % 7 == 0
    layer, listed = passed(linked=True, fixed=fixed)
    assert torch.tensor(listed)[fixed].tolist() == layer.fanin[fixed, 0].tolist()


def test_clustered_gates_read_inside_clusters() -> None:
    layer = LogicDense(2048, 100, seed=0, wiring=Placed(Clustered(), groups=2))
    assert torch.equal(layer.fanin[:, 0] // 1024, layer.fanin[:, 1] // 1024)
    assert (layer.fanin[:, 0] // 1024).tolist() == ([0] * 25 + [1] * 25) * 2


def test_given_wiring_and_fixed_gates() -> None:
    wiring = torch.tensor([[0, 1], [2, 3], [3, 0]])
    fixed = torch.tensor([False, True, False])
    layer = LogicDense(4, 3, wiring=wiring, fixed=fixed, seed=0)
    assert layer.theta.shape == (2, 4)
    assert layer.table()[1].tolist() == [0.0, 0.0, 1.0, 1.0]
    x = torch.rand(5, 4)
    assert torch.equal(layer(x)[:, 1], x[:, 2])
    layer(x).sum().backward()
    assert layer.theta.grad is not None
    assert torch.equal(layer.table()[[0, 2]], layer.parametrization.table(layer.theta))


def test_repr_has_the_formula() -> None:
    text = repr(LogicDense(8, 4, parametrization="op", init="gaussian", wiring="unique", seed=0))
    assert text == (
        "LogicDense(8 -> 4, arity=2, op: table = softmax(theta) @ T[16, 4], "
        "init=gaussian, wiring=unique, 64 parameters)"
    )
    assert "score = group sum / 10" in repr(GroupSum(10, 10.0))
    assert "x > 0.25, 0.5, 0.75" in repr(Thermometer.even(3))


def test_trains_inside_plain_torch_modules() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(LogicDense(8, 64, seed=0), LogicDense(64, 64, seed=1), GroupSum(2, 4.0))
    x = torch.randint(0, 2, (256, 8)).float()
    y = ((x[:, 0] + x[:, 1] + x[:, 2]) >= 2).long()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(150):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with rounded(net):
        assert (net(x).argmax(1) == y).float().mean() > 0.95


def test_group_sum() -> None:
    x = torch.arange(12.0).view(2, 6)
    assert GroupSum(3, 2.0)(x).tolist() == [[0.5, 2.5, 4.5], [6.5, 8.5, 10.5]]
    assert GroupSum(2)(torch.ones(1, 600, dtype=torch.bfloat16)).tolist() == [[300.0, 300.0]]
    with pytest.raises(ValueError, match="4 classes do not divide the 6 gates"):
        GroupSum(4)(x)
    with pytest.raises(ValueError, match="temperature must be a positive"):
        GroupSum(2, 0.0)
    with pytest.raises(ValueError, match="at least 1"):
        GroupSum(0)


def test_thermometer_bits_and_layout() -> None:
    encode = Thermometer.even(3)
    assert encode.thresholds.tolist() == [0.25, 0.5, 0.75]
    assert encode(torch.tensor([[0.25, 0.2500001, 1.0]])).tolist() == [[0, 0, 0, 1, 0, 0, 1, 1, 1]]
    image = torch.rand(2, 3, 4, 5)
    bits = encode(image)
    assert bits.shape == (2, 9, 4, 5)
    for channel in range(3):
        for t in range(3):
            expected = (image[:, channel] > encode.thresholds[t]).float()
            assert torch.equal(bits[:, channel * 3 + t], expected)
    assert Thermometer.even(1)(torch.tensor([[127, 128]], dtype=torch.uint8)).tolist() == [[0.0, 1.0]]


def test_thermometer_fitted_to_quantiles() -> None:
    x = torch.stack([torch.linspace(0, 1, 101), torch.linspace(0, 1, 101) ** 4], 1)
    encode = Thermometer.fit(x, 3)
    assert torch.allclose(encode(x).mean(0), torch.tensor([0.75, 0.5, 0.25] * 2), atol=0.02)
    skewed = torch.zeros(100, 1)
    skewed[0] = 1.0
    assert Thermometer.fit(skewed, 2)(skewed).sum().item() == 2.0
    mostly_one = 1 - skewed
    assert Thermometer.fit(mostly_one, 2)(mostly_one).sum().item() == 198.0
    images = torch.rand(50, 3, 4, 4)
    assert Thermometer.fit(images, 2).thresholds.shape == (3, 2)
    with pytest.raises(ValueError, match="thresholds are for 3 features, got 2"):
        Thermometer.fit(images, 2)(torch.rand(1, 2, 4, 4))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -0.1, 1.5])
def test_inputs_must_be_in_the_unit_interval(bad: float) -> None:
    x = torch.rand(3, 4)
    x[1, 2] = bad
    for net in (
        Thermometer.even(1),
        LogicNetwork(None, [LogicDense(4, 4, seed=0)], GroupSum(2)),
        LogicNetwork(Thermometer.even(1), [LogicDense(4, 4, seed=0)], GroupSum(2)),
    ):
        with pytest.raises(ValueError, match=r"inputs must be in \[0, 1\]"):
            net(x)


def test_bad_networks() -> None:
    with pytest.raises(ValueError, match=r"takes \[batch, 4\], got shape \(3, 5\)"):
        LogicDense(4, 4, seed=0)(torch.rand(3, 5))
    with pytest.raises(ValueError, match="3 classes do not divide the 4 gates"):
        LogicNetwork(None, [LogicDense(4, 4, seed=0)], GroupSum(3))
    with pytest.raises(ValueError, match="layer of 4 gates feeds one of 5 inputs"):
        LogicNetwork(None, [LogicDense(4, 4, seed=0), LogicDense(5, 4, seed=0)], GroupSum(2))
    with pytest.raises(ValueError, match="at least one logic layer"):
        LogicNetwork(None, [], GroupSum(2))
    with pytest.raises(ValueError, match=r"wiring must be \[4, 2\]"):
        LogicDense(4, 4, wiring=torch.zeros(3, 2, dtype=torch.int32))
    with pytest.raises(ValueError, match="fixed must be bool"):
        LogicDense(4, 4, fixed=torch.zeros(3, dtype=torch.bool))
    with pytest.raises(ValueError, match="number of thresholds"):
        Thermometer.even(0)
    with pytest.raises(ValueError, match="must be finite"):
        Thermometer(torch.tensor([torch.nan]))


def test_activations_are_what_forward_computes() -> None:
    net = LogicNetwork(Thermometer.even(1), [LogicDense(6, 8, seed=0), LogicDense(8, 4, seed=1)], GroupSum(2))
    x = torch.rand(5, 6)
    outputs = net.activations(x)
    assert [o.shape for o in outputs] == [(5, 8), (5, 4)]
    assert torch.allclose(net.head(outputs[-1]), net(x), atol=1e-6)
