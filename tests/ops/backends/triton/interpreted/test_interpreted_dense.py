"""The Triton kernels of dense layers against a fold in double precision, in values and gradients."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from unittest import mock

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor

from gatelight import ops, parametrize
from gatelight.nn import LogicDense, LogicStack
from gatelight.ops import NATIVE_MAPS
from gatelight.ops.backends import reference
from gatelight.ops.backends.triton import chains, launch

MAPS = list(NATIVE_MAPS)
#: Without shrinking: the interpreter would take minutes.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


def operands(
    map: str, arity: int, batch: int, features: int = 5, gates: int = 7, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x [features, batch], fanin, theta and an out-gradient."""
    random = torch.Generator().manual_seed(seed)
    x = torch.rand(features, batch, generator=random)
    fanin = torch.randint(0, features, (gates, arity), dtype=torch.int32, generator=random)
    draw = torch.rand if map == "table" else torch.randn
    theta = draw(gates, NATIVE_MAPS[map].parameters(arity), generator=random)
    return x, fanin, theta, torch.randn(gates, batch, generator=random)


def table_of(theta: Tensor, map: str, arity: int) -> Tensor:
    if map == "table":
        return theta
    name, _, estimator = map.partition("-")
    return parametrize.make(name, arity=arity, estimator=estimator or None).table(theta)


def expected(x: Tensor, fanin: Tensor, theta: Tensor, grad_out: Tensor, map: str) -> list[Tensor]:
    """Outputs and gradients for x and theta in float64, by the reference."""
    wide = theta.detach().double().requires_grad_()
    table = table_of(wide, map, fanin.shape[1])
    out = reference.lut_fwd(x.double(), fanin, table.detach())
    grad_x, grad_table = reference.lut_bwd(grad_out.double(), x.double(), fanin, table.detach())
    return [out, grad_x, *torch.autograd.grad(table, wide, grad_table)]


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """Memory that a kernel should write starts as NaN."""
    new_empty, empty_like = Tensor.new_empty, torch.empty_like

    def poison(t: Tensor) -> Tensor:
        return t.fill_(math.nan) if t.is_floating_point() else t

    with (
        mock.patch.object(Tensor, "new_empty", lambda t, *a, **k: poison(new_empty(t, *a, **k))),
        mock.patch.object(torch, "empty_like", lambda t, **k: poison(empty_like(t, **k))),
    ):
        yield


def run(x: Tensor, fanin: Tensor, theta: Tensor, grad_out: Tensor, map: str) -> list[Tensor]:
    with poisoned():
        out = launch.layer_fwd(x, fanin, theta, map)
        grad_x, grad_theta = launch.layer_bwd(grad_out, x, fanin, theta, map)
    assert grad_x is not None
    assert grad_theta is not None
    return [out, grad_x, grad_theta]


def assert_close(got: list[Tensor], want: list[Tensor]) -> None:
    for a, b in zip(got, want, strict=True):
        scale = float(b.abs().max()) if b.numel() else 0.0
        torch.testing.assert_close(a.double(), b.double(), rtol=0, atol=1e-5 * scale + 1e-6)


@given(
    case=st.one_of(
        *[st.tuples(st.just(name), st.integers(1, native_map.max_arity)) for name, native_map in NATIVE_MAPS.items()]
    ),
    batch=st.one_of(st.integers(1, 40), st.sampled_from([64, 65])),
    features=st.integers(1, 9),
    gates=st.integers(1, 9),
    seed=st.integers(0, 1 << 30),
)
@settings(max_examples=25, deadline=None, phases=PHASES)
def test_values_and_gradients(case: tuple[str, int], batch: int, features: int, gates: int, seed: int) -> None:
    map, arity = case
    tensors = operands(map, arity, batch, features, gates, seed)
    assert_close(run(*tensors, map), expected(*tensors, map))


@pytest.mark.parametrize("batch", [1, launch.FUSED_BATCH - 1, launch.FUSED_BATCH, 2 * launch.MAX_SAMPLES + 1])
@pytest.mark.parametrize("map", MAPS)
def test_two_inputs_at_every_path(map: str, batch: int) -> None:
    tensors = operands(map, 2, batch)
    assert_close(run(*tensors, map), expected(*tensors, map))


@pytest.mark.parametrize("arity", [1, 3, 4, 5, 6])
def test_other_arities_over_several_tiles(arity: int) -> None:
    tensors = operands("table", arity, launch.MAX_SAMPLES + 3, gates=9)
    assert_close(run(*tensors, "table"), expected(*tensors, "table"))


def test_several_blocks_of_gates_and_rows() -> None:
    with mock.patch.object(launch, "blocks", return_value=(4, 8)):
        for arity in (2, 3):
            tensors = operands("iwp-sin", arity, 21, features=11, gates=13)
            assert_close(run(*tensors, "iwp-sin"), expected(*tensors, "iwp-sin"))


def test_rows_that_nobody_or_everybody_reads() -> None:
    for arity in (2, 3):
        x, fanin, theta, grad_out = operands("table", arity, 5, features=4, gates=40)
        fanin = torch.full_like(fanin, 2)
        got = run(x, fanin, theta, grad_out, "table")
        assert_close(got, expected(x, fanin, theta, grad_out, "table"))
        assert got[1][[0, 1, 3]].eq(0).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("arity", [2, 3])
def test_narrow_storage(arity: int, dtype: torch.dtype) -> None:
    x, fanin, theta, grad_out = operands("table", arity, 33)
    x, grad_out = x.to(dtype), grad_out.to(dtype)
    got = run(x, fanin, theta, grad_out, "table")
    assert [t.dtype for t in got] == [dtype, dtype, torch.float32]
    # The arithmetic is float32: only what is stored in the narrow type is rounded, once. (A GPU rounds bfloat16 to
    # the nearest; the interpreter cuts it off.)
    step = 2.0**-7 if dtype == torch.bfloat16 else 2.0**-11
    for a, b in zip(got, expected(x, fanin, theta, grad_out, "table"), strict=True):
        tolerance = step * b.abs() if a.dtype == dtype else 1e-5 * b.abs().max()
        assert (a.double() - b).abs().le(tolerance + 1e-6).all()


@pytest.mark.parametrize("arity", [2, 3])
def test_any_layout(arity: int) -> None:
    x, fanin, theta, grad_out = operands("iwp-sin", arity, 9)
    want = run(x, fanin, theta, grad_out, "iwp-sin")

    def spread(t: Tensor) -> Tensor:
        return torch.full((len(t), t.shape[1] + 3), math.nan)[:, 1:-2].copy_(t)

    def sample_major(t: Tensor) -> Tensor:
        return t.t().contiguous().t()

    for arrange in (spread, sample_major):
        got = run(arrange(x), sample_major(fanin), sample_major(theta), arrange(grad_out), "iwp-sin")
        for a, b in zip(got, want, strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize("arity", [2, 3])
def test_only_what_is_needed(arity: int) -> None:
    x, fanin, theta, grad_out = operands("iwp-sin", arity, 6)
    _, want_x, want_theta = run(x, fanin, theta, grad_out, "iwp-sin")
    with poisoned():
        grad_x, nothing = launch.layer_bwd(grad_out, x, fanin, theta, "iwp-sin", need_theta=False)
        assert nothing is None
        nothing, grad_theta = launch.layer_bwd(grad_out, x, fanin, theta, "iwp-sin", need_x=False)
        assert nothing is None
    assert grad_x is not None
    assert torch.equal(grad_x, want_x)
    assert grad_theta is not None
    assert torch.equal(grad_theta, want_theta)


@pytest.mark.parametrize(("batch", "gates"), [(0, 4), (3, 0)])
def test_nothing_to_do(batch: int, gates: int) -> None:
    for arity in (2, 3):
        x, fanin, theta, grad_out = operands("iwp-sin", arity, batch, gates=gates)
        out, grad_x, grad_theta = run(x, fanin, theta, grad_out, "iwp-sin")
        assert out.shape == (gates, batch)
        assert grad_x.eq(0).all()
        assert grad_theta.eq(0).all()


@pytest.mark.parametrize("map", ["iwp-sin", "iwp-sin-st", "iwp-linear-st"])
def test_nan_is_not_hidden(map: str) -> None:
    x, fanin, theta, _ = operands(map, 2, 4)
    x[:, 1] = math.nan
    assert launch.layer_fwd(x, fanin, theta, map).isnan().any(0).tolist() == [False, True, False, False]
    x[:, 1] = 0.5
    theta[3] = math.nan
    assert launch.layer_fwd(x, fanin, theta, map).isnan().any(1).nonzero().flatten().tolist() == [3]


def test_sine_and_cosine() -> None:
    theta = torch.cat([torch.linspace(-8, 8, 1501), torch.linspace(-8192, 8192, 1501)]).view(-1, 2)
    table = launch.table_fwd(theta, "iwp-sin", 1).double()
    assert (table - (0.5 + 0.5 * theta.double().sin())).abs().max() < 3e-7
    x, fanin = torch.full((1, 1), 0.5), torch.zeros(len(theta), 1, dtype=torch.int32)
    _, grad = launch.layer_bwd(torch.full((len(theta), 1), 2.0), x, fanin, theta, "iwp-sin", need_x=False)
    assert grad is not None
    assert (grad.double() - 0.5 * theta.double().cos()).abs().max() < 3e-7


def layers() -> list[LogicDense]:
    # With this seed no activation lies so near the middle of two bfloat16 that another order of additions decides.
    first = LogicDense(9, 12, seed=6)
    fixed = torch.arange(8) < 3
    middle = [LogicDense(12, 10, arity=3, seed=1), LogicDense(10, 8, parametrization="op", seed=2)]
    return [first, *middle, LogicDense(8, 8, arity=1, seed=3, fixed=fixed), LogicDense(8, 6, seed=4)]


def step(backend: str, memory: str, batch: int) -> list[Tensor]:
    stack = LogicStack(layers(), memory)
    x = torch.rand(batch, 9, generator=torch.Generator().manual_seed(0)).requires_grad_()
    ops.set_backend(backend)
    try:
        out = stack(x)
        out.square().sum().backward()
    finally:
        ops.set_backend("triton")
    gradients = [p.grad for p in (x, *stack.parameters()) if p.grad is not None]
    assert len(gradients) == 6
    return [out.detach(), *gradients]


def by_hand_with_rounded_inputs(batch: int) -> list[Tensor]:
    """The step layer by layer, where backward sees the inputs of all layers but the first in bfloat16."""
    # A stack links the gates of hidden layers, so the layers are those of one.
    chain_of = [layer for layer in LogicStack(layers()) if isinstance(layer, LogicDense)]
    rows = [torch.rand(batch, 9, generator=torch.Generator().manual_seed(0)).t()]
    for layer in chain_of:
        rows.append(reference.lut_fwd(rows[-1], layer.fanin, layer.table().detach()))
    out = rows.pop()
    grad = 2 * out
    for number in reversed(range(len(chain_of))):
        table = chain_of[number].table()
        x = rows[number].bfloat16().float() if number else rows[number]
        grad, grad_table = reference.lut_bwd(grad, x, chain_of[number].fanin, table.detach())
        table.backward(grad_table)
    return [out.t(), grad.t(), *[layer.theta.grad for layer in chain_of if layer.theta.grad is not None]]


@pytest.mark.parametrize("batch", [3, 35])
def test_a_stack_of_layers(batch: int) -> None:
    want = step("reference", "auto", batch)
    with mock.patch.object(chains, "dense_chain_fwd", wraps=chains.dense_chain_fwd) as used:
        kept = step("triton", "auto", batch)
        assert used.call_count == 1
    assert_close(kept, want)
    for a, b in zip(step("triton", "recompute", batch), kept, strict=True):
        assert torch.equal(a, b)
    assert_close(step("triton", "keep-bf16", batch), by_hand_with_rounded_inputs(batch))


def test_inference_keeps_nothing_and_agrees() -> None:
    stack = LogicStack(layers())
    x = torch.rand(4, 9)
    with torch.no_grad():
        assert torch.equal(stack(x), stack(x.clone().requires_grad_()).detach())


@pytest.mark.parametrize("arity", [2, 3])
def test_the_registered_op(arity: int) -> None:
    x, fanin, table, _ = operands("table", arity, 3)
    with mock.patch.object(chains, "lut_bwd", wraps=chains.lut_bwd) as used:
        torch.library.opcheck(torch.ops.gatelight.lut_fwd, (x.requires_grad_(), fanin, table.requires_grad_()))
        assert used.called
    wide = ops.lut(x.detach().t().double(), fanin, table.detach().double())
    torch.testing.assert_close(ops.lut(x.t(), fanin, table).double(), wide, rtol=0, atol=1e-6)
