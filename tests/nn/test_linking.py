"""Stacks list the gates of new hidden layers anew, which changes nothing that they compute."""

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gatelight.nn import GroupSum, LogicDense, LogicNetwork, LogicStack, fuse
from gatelight.parametrize import IWP, OP
from gatelight.wiring import Clustered, Given, Random
from gatelight.wiring.linking import is_linked


def layers(**options: Any) -> list[LogicDense]:
    sizes = [(30, 60), (60, 50), (50, 20)]
    return [LogicDense(*size, seed=seed, **options) for seed, size in enumerate(sizes)]


def links(layer: nn.Module) -> int:
    assert isinstance(layer, LogicDense)
    if layer.arity == 1:
        return int((layer.fanin[1:] >= layer.fanin[:-1]).sum()) - layer.gates // 2
    return int((layer.fanin[1:, 0] == layer.fanin[:-1, -1]).sum())


def is_as(layer: LogicDense, other: LogicDense) -> bool:
    return torch.equal(layer.fanin, other.fanin) and torch.equal(layer.theta, other.theta)


@pytest.mark.parametrize("parametrization", [IWP(2), IWP(3, "sigmoid"), OP(2), IWP(1)], ids=str)
def test_a_stack_links_hidden_layers_and_computes_the_same(parametrization: Any) -> None:
    x = torch.rand(40, 30)
    before = nn.Sequential(*layers(parametrization=parametrization, init="gaussian"))
    stack = LogicStack(layers(parametrization=parametrization, init="gaussian"))
    assert all(links(new) > links(old) for new, old in zip(stack.layers[:2], before, strict=False))
    assert links(stack[2]) < 10
    assert torch.allclose(stack(x), before(x), atol=1e-5)


def test_what_was_trained_loaded_or_changed_stays() -> None:
    def is_left_alone(made: list[LogicDense]) -> bool:
        copies = deepcopy(made)
        LogicStack(made)
        return all(is_as(a, b) for a, b in zip(made, copies, strict=True))

    trained = layers()
    optimizer = torch.optim.SGD([layer.theta for layer in trained], lr=0.1)
    nn.Sequential(*trained)(torch.rand(2, 30)).sum().backward()
    optimizer.step()
    assert is_left_alone(trained)
    loaded = layers()
    for layer in loaded:
        layer.load_state_dict(layer.state_dict())
    assert is_left_alone(loaded)
    assert is_left_alone(deepcopy(layers()))
    assert not is_left_alone(layers())
    once_more = layers()
    LogicStack(once_more)
    assert is_left_alone(once_more)


def test_layers_used_twice_given_or_fixed_stay() -> None:
    twice = LogicDense(30, 30, seed=0)
    kept = deepcopy(twice)
    LogicStack(twice, twice, LogicDense(30, 10, seed=1))
    assert is_as(twice, kept)
    for options in (
        {"wiring": Given(LogicDense(30, 30, seed=5).fanin)},
        {"fixed": torch.arange(30) < 3},
    ):
        first = LogicDense(30, 30, seed=0, **options)
        kept = deepcopy(first)
        LogicStack(first, LogicDense(30, 10, seed=1))
        assert is_as(first, kept)
    first, clustered = LogicDense(30, 2048, seed=0), LogicDense(2048, 10, seed=1, wiring=Clustered())
    kept = deepcopy(clustered)
    LogicStack(first, clustered)
    assert is_as(clustered, kept)


def test_a_parametrization_that_cannot_swap_inputs_is_not_linked() -> None:
    class Fixed(IWP):
        def swap_inputs(self, theta: Tensor) -> None:  # type: ignore[override]
            del theta

    stack = LogicStack(layers(parametrization=Fixed()))
    assert not is_linked(stack[0].fanin)


def test_a_network_by_hand_is_linked() -> None:
    made = layers(wiring=Random())
    net = LogicNetwork(None, made, GroupSum(2))
    assert is_linked(net.layers[0].fanin)
    stack = next(fuse(nn.Sequential(*layers(), GroupSum(2))).children())
    assert isinstance(stack, LogicStack)
    assert is_linked(stack[0].fanin)
