"""A model in two halves computes what it computes whole."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gatelight.nn import (
    Forward,
    GateIntervention,
    GroupSum,
    LogicDense,
    LogicNetwork,
    LogicStack,
    PathDropout,
    Thermometer,
    using,
)
from gatelight.parametrize import IWP
from gatelight.training.halves import as_floats, draws, halves


def layers() -> list[LogicDense]:
    return [LogicDense(12, 20, seed=0), LogicDense(20, 10, seed=1)]


def network(**regularizers: Any) -> LogicNetwork:
    return LogicNetwork(Thermometer.even(3), layers(), GroupSum(2), **regularizers)


class Doubled(LogicNetwork):
    """Does something of its own around the network."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


def hooked() -> nn.Module:
    net = network()
    net.register_forward_hook(lambda module, inputs, output: output + 1)
    return net


AHEAD: dict[str, Callable[[], nn.Module]] = {
    "network": network,
    "sequential": lambda: nn.Sequential(Thermometer.even(3), *layers(), GroupSum(2)),
}
WHOLE: dict[str, Callable[[], nn.Module]] = {
    "subclass": lambda: Doubled(Thermometer.even(3), layers(), GroupSum(2)),
    "hook": hooked,
    "later encoder": lambda: nn.Sequential(nn.Flatten(), Thermometer.even(3), *layers(), GroupSum(2)),
    "neural": lambda: nn.Sequential(nn.Linear(4, 2)),
}


@pytest.mark.parametrize("name", [*AHEAD, *WHOLE])
def test_halves_are_the_model(name: str) -> None:
    model = (AHEAD | WHOLE)[name]()
    x = torch.randint(0, 256, (7, 4), dtype=torch.uint8)
    parts = halves(model)
    assert (parts.scores is model) == (name in WHOLE)
    assert torch.equal(parts.scores(parts.encode(x)), model(x.float() / 255))


def test_inputs_without_an_encoder() -> None:
    assert torch.equal(as_floats(torch.tensor([0, 51, 255], dtype=torch.uint8)), torch.tensor([0.0, 0.2, 1.0]))
    assert torch.equal(as_floats(torch.tensor([True, False])), torch.tensor([1.0, 0.0]))
    values = torch.rand(3, dtype=torch.float64)
    assert as_floats(values) is values


class Noisy(IWP):
    """Says that it draws."""

    stochastic = True


class Own(Forward):
    """Tables of one's own, which may draw."""

    def table(self, parametrization: Any, theta: Tensor, generator: torch.Generator | None) -> Tensor:
        return torch.rand_like(parametrization.table(theta))


def test_what_may_draw_is_seeded() -> None:
    assert not draws(network())
    assert not draws(nn.Sequential(nn.Flatten(), Thermometer.even(3), LogicStack(*layers()), GroupSum(2)))
    assert draws(network(intervention=GateIntervention(0.1)))
    assert draws(network(dropout=PathDropout(0.1)))
    assert draws(nn.Sequential(nn.Linear(4, 2)))
    assert draws(Doubled(Thermometer.even(3), layers(), GroupSum(2)))
    assert draws(nn.Sequential(LogicDense(4, 2, parametrization=Noisy(arity=2), seed=0)))
    net = network()
    with using(net, Own()):
        assert draws(net)
    assert not draws(net)
