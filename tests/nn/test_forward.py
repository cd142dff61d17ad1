"""How tables are made is one value, for layers and stacks of both kinds."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from gatelight import discretize
from gatelight.nn import Forward, GroupSum, LogicConv2d, LogicDense, OrPool2d, forward, fuse, rounded, using
from gatelight.parametrize import Parametrization


class StraightThrough(Forward):
    """Rounded tables with the gradient of soft ones."""

    def table(self, parametrization: Parametrization, theta: Tensor, generator: torch.Generator | None) -> Tensor:
        soft = parametrization.table(theta)
        return parametrization.rounded(theta) + (soft - soft.detach())


def net() -> nn.Sequential:
    return nn.Sequential(
        LogicConv2d(2, 8, 3, padding=1, tree_depth=2, init="gaussian", seed=0),
        OrPool2d(2),
        nn.Flatten(),
        LogicDense(8 * 16, 60, init="gaussian", seed=1),
        LogicDense(60, 20, init="gaussian", seed=2, fixed=torch.arange(20) % 5 == 0),
        GroupSum(2),
    )


@pytest.mark.parametrize("make", [lambda m: m, fuse], ids=["layers", "stacks"])
def test_rounded_forward_trains(make: Callable[[nn.Module], nn.Module]) -> None:
    model = make(net())
    x = torch.rand(50, 2, 8, 8).round()
    with rounded(model):
        expected = model(x)
    with using(model, StraightThrough()):
        out = model(x)
    assert torch.equal(out, expected)
    assert not torch.equal(model(x), expected)
    out.square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in model.parameters())


def test_blocks_nest_and_leave_no_trace() -> None:
    model = net()
    first, second = StraightThrough(), StraightThrough()
    with using(model, first):
        with using(model[3], second):
            assert forward.of(model[3]) is second
            assert forward.of(model[0]) is first
        assert forward.of(model[3]) is first
        with rounded(model):
            assert forward.of(model[3]) is forward.ROUNDED
    assert forward.of(model[3]) is forward.SOFT
    with pytest.raises(KeyError), using(model, first):
        raise KeyError
    assert not forward._in_use


def test_circuits_do_not_depend_on_it() -> None:
    model = net()
    plain = discretize(model, input_shape=(2, 8, 8))
    with using(model, StraightThrough()):
        again = discretize(model, input_shape=(2, 8, 8))
    assert (plain.table == again.table).all()
