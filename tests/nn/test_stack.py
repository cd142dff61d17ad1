from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gatelight import native, ops
from gatelight.nn import GroupSum, LogicDense, LogicNetwork, LogicStack, rounded
from gatelight.ops import memory
from gatelight.ops.backends import cpu
from gatelight.parametrize import ESTIMATORS

needs_kernels = pytest.mark.skipif(native.load() is None, reason=f"no native kernels: {native.why_not()}")


def make_layers(seed: int = 0, **options: Any) -> list[LogicDense]:
    return [
        LogicDense(20, 33, seed=seed, **options),
        LogicDense(33, 40, arity=3, init="gaussian", seed=seed + 1),
        LogicDense(40, 7, arity=1, init="uniform", seed=seed + 2),
        LogicDense(7, 12, parametrization="op", init="gaussian", wiring="unique", seed=seed + 3),
    ]


def results(net: nn.Module, x: Tensor) -> list[Tensor]:
    x = x.clone().requires_grad_()
    net.zero_grad()
    out = net(x)
    (out * torch.linspace(-1, 1, out.numel()).view_as(out)).sum().backward()
    gradients = [p.grad for p in net.parameters()]
    assert x.grad is not None
    assert all(g is not None for g in gradients)
    return [out.detach(), x.grad, *(g.clone() for g in gradients if g is not None)]


def assert_close(one: list[Tensor], other: list[Tensor]) -> None:
    for a, b in zip(one, other, strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-5)


@needs_kernels
@pytest.mark.parametrize("batch", [1, 15, 16, 17, 100])
@pytest.mark.parametrize("memory", ["auto", "keep", "recompute"])
def test_equals_its_layers_on_the_reference(batch: int, memory: str) -> None:
    layers = make_layers()
    x = torch.rand(batch, 20)
    fused = results(LogicStack(layers, memory), x)
    ops.set_backend("reference")
    try:
        plain = results(nn.Sequential(*layers), x)
    finally:
        ops.set_backend("auto")
    assert_close(fused, plain)


@needs_kernels
@pytest.mark.parametrize("estimator", list(ESTIMATORS))
def test_every_estimator(estimator: str) -> None:
    layers = make_layers(estimator=estimator)
    x = torch.rand(9, 20)
    fused = results(LogicStack(layers), x)
    ops.set_backend("reference")
    try:
        assert_close(fused, results(nn.Sequential(*layers), x))
    finally:
        ops.set_backend("auto")


@needs_kernels
def test_auto_keeps_activations_unless_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []

    def record(*arguments: Any, **options: Any) -> tuple[Tensor, list[Tensor]]:
        modes.append(arguments[4])
        return stack_fwd(*arguments, **options)

    stack_fwd = cpu.dense_chain_fwd
    monkeypatch.setattr(cpu, "dense_chain_fwd", record)
    model = LogicStack([LogicDense(8, 40, seed=0), LogicDense(40, 60, seed=1)])
    for limit in (4 * 7 * 100, 4 * 7 * 100 - 1):
        monkeypatch.setattr(memory, "KEEP_LIMIT", limit)
        model(torch.rand(7, 8))
    assert modes == ["keep", "recompute"]


def test_saves_like_its_layers() -> None:
    layers = make_layers()
    assert LogicStack(layers).state_dict().keys() == nn.Sequential(*layers).state_dict().keys()
    other = LogicStack(make_layers(seed=9))
    other.load_state_dict(nn.Sequential(*layers).state_dict())
    x = torch.rand(5, 20)
    assert torch.equal(other(x), LogicStack(layers)(x))


def test_fixed_gates_and_rounding() -> None:
    fixed = torch.arange(30) % 3 == 0
    layers = [LogicDense(30, 30, seed=0), LogicDense(30, 30, seed=1, fixed=fixed, wiring="unique")]
    stack = LogicStack(layers)
    x = torch.randint(0, 2, (21, 30)).float()
    assert_close(results(stack, x), results(nn.Sequential(*layers), x))
    with rounded(stack):
        out = stack(x)
        assert torch.equal(out, layers[1](layers[0](x)))
    assert set(out.unique().tolist()) <= {0.0, 1.0}


def test_hooks_see_every_layer() -> None:
    stack = LogicStack(make_layers())
    seen: list[tuple[int, ...]] = []
    for layer in stack:
        layer.register_forward_hook(lambda _m, _i, out: seen.append(tuple(out.shape)))
    stack(torch.rand(3, 20))
    assert seen == [(3, 33), (3, 40), (3, 7), (3, 12)]


def test_bfloat16_storage_is_close() -> None:
    layers = make_layers()
    x = torch.rand(50, 20)
    exact, rough = results(LogicStack(layers, "keep"), x), results(LogicStack(layers, "keep-bf16"), x)
    for a, b in zip(exact, rough, strict=True):
        assert torch.allclose(a, b, rtol=0.05, atol=0.05 * float(a.abs().max()))


def test_other_dtypes_and_compilation_agree() -> None:
    stack = LogicStack(make_layers())
    x = torch.rand(4, 20)
    assert torch.allclose(stack.double()(x.double()).float(), stack.float()(x), atol=1e-5)
    compiled = torch.compile(stack, fullgraph=True, backend="eager")
    assert torch.allclose(compiled(x), stack(x), atol=1e-5)


def test_wrong_width_and_mode() -> None:
    with pytest.raises(ValueError, match=r"takes \[batch, 20\], got shape \(3, 19\)"):
        LogicStack(make_layers())(torch.rand(3, 19))
    with pytest.raises(ValueError, match="did you mean 'keep'"):
        LogicStack(make_layers(), "kept")


def test_network_with_a_frozen_layer_trains_the_others() -> None:
    layers = make_layers()[:1]
    net = LogicNetwork(None, [*layers, LogicDense(33, 4, seed=5)], GroupSum(2))
    layers[0].theta.requires_grad_(False)
    net(torch.rand(6, 20)).sum().backward()
    assert layers[0].theta.grad is None
    assert net.logic_layers[1].theta.grad is not None
