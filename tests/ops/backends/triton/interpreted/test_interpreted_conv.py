"""The Triton kernels of convolutional layers against the reference in double precision."""

from __future__ import annotations

import math
from unittest import mock

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor

from gatelight import ops, parametrize
from gatelight.nn import LogicConv2d, LogicConvStack, OrPool2d
from gatelight.ops import NATIVE_MAPS, ConvShape
from gatelight.ops.backends import reference
from gatelight.ops.backends.triton import chains, conv
from gatelight.ops.backends.triton.index import readers_of

#: Without shrinking: the interpreter would take minutes.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


@st.composite
def shapes(draw: st.DrawFn) -> ConvShape:
    kernel, pool, stride, padding = (draw(st.integers(1, 3)) for _ in range(4))
    side = st.integers(kernel + (pool - 1) * stride, kernel + (pool - 1) * stride + 3)
    arity, depth = draw(st.sampled_from([(2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (1, 2), (4, 1)]))
    height, width = draw(side), draw(side)
    return ConvShape(draw(st.integers(1, 3)), height, width, kernel, padding - 1, stride, depth, arity, pool)


def operands(shape: ConvShape, trees: int, batch: int, map: str, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Images, leaves and theta."""
    random = torch.Generator().manual_seed(seed)
    x = torch.rand(batch, shape.channels, shape.height, shape.width, generator=random)
    fanin = torch.randint(0, shape.window_inputs, (trees, shape.leaves), dtype=torch.int32, generator=random)
    parameters = NATIVE_MAPS[map].parameters(shape.arity)
    draw = torch.rand if map == "table" else torch.randn
    return x, fanin, draw(trees * shape.tree_gates, parameters, generator=random)


def grad_like(out: Tensor) -> Tensor:
    return torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out.dtype)


def expected(x: Tensor, fanin: Tensor, theta: Tensor, shape: ConvShape, map: str) -> list[Tensor]:
    wide_x, wide = x.double().requires_grad_(), theta.double().requires_grad_()
    name, _, estimator = map.partition("-")
    table = (
        wide if map == "table" else parametrize.make(name, arity=shape.arity, estimator=estimator or None).table(wide)
    )
    out = reference.conv(wide_x, fanin, table, shape)
    return [out.detach(), *torch.autograd.grad(out, (wide_x, wide), grad_like(out))]


def run(x: Tensor, fanin: Tensor, theta: Tensor, shape: ConvShape, map: str) -> list[Tensor]:
    x, theta = x.clone().requires_grad_(), theta.clone().requires_grad_()
    out = ops.conv_chain(x, [shape], [fanin], [theta], [map])
    return [out.detach(), *torch.autograd.grad(out, (x, theta), grad_like(out))]


def assert_close(got: list[Tensor], want: list[Tensor]) -> None:
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a.double(), b.double(), rtol=0, atol=1e-5 * float(b.abs().max()) + 1e-6)


@given(
    shape=shapes(),
    trees=st.integers(1, 3),
    batch=st.integers(1, 5),
    map=st.sampled_from(["table", "iwp-sin", "iwp-linear-st", "op"]),
    seed=st.integers(0, 1 << 30),
)
@settings(max_examples=12, deadline=None, phases=PHASES)
def test_values_and_gradients(shape: ConvShape, trees: int, batch: int, map: str, seed: int) -> None:
    map = "iwp-sigmoid" if map == "op" and shape.arity > 2 else map
    tensors = operands(shape, trees, batch, map, seed)
    assert_close(run(*tensors, shape, map), expected(*tensors, shape, map))


def test_many_tiles_and_parts() -> None:
    shape = ConvShape(2, 6, 6, kernel=3, padding=1, depth=2, pool=2)
    tensors = operands(shape, 2, 21, "iwp-sin")
    with mock.patch.object(conv, "PARTS_PROGRAMS", 4), mock.patch.object(conv, "blocks", return_value=(2, 16)):
        assert_close(run(*tensors, shape, "iwp-sin"), expected(*tensors, shape, "iwp-sin"))


def test_a_batch_of_more_than_a_tile() -> None:
    shape = ConvShape(1, 4, 4, kernel=3, padding=1, depth=1, pool=2)
    tensors = operands(shape, 1, 66, "table")
    assert_close(run(*tensors, shape, "table"), expected(*tensors, shape, "table"))


def test_equal_values_give_the_gradient_to_the_first() -> None:
    shape = ConvShape(1, 4, 4, kernel=1, depth=1, arity=1, pool=2)
    x = torch.full((1, 1, 4, 4), 0.5)
    fanin, table = torch.zeros(1, 1, dtype=torch.int32), torch.tensor([[0.0, 1.0]])
    _, grad_x, _ = run(x, fanin, table, shape, "table")
    assert grad_x.ne(0).squeeze().tolist() == [[True, False, True, False], [False] * 4] * 2


def test_nan_is_not_hidden() -> None:
    shape = ConvShape(1, 4, 4, kernel=1, depth=1, arity=1, pool=2)
    x = torch.rand(2, 1, 4, 4)
    x[1, 0, 2, 1] = math.nan
    out, _ = conv.layer_fwd(x.flatten(1).t(), shape, torch.zeros(1, 1, dtype=torch.int32), torch.rand(1, 2), "table")
    assert out.isnan().nonzero().tolist() == [[2, 1]]


def test_a_chain_of_two_layers_without_the_gradient_of_the_images() -> None:
    first = ConvShape(1, 6, 6, kernel=3, padding=1, depth=2, pool=2)
    second = ConvShape(3, 3, 3, kernel=2, depth=2)
    x, fanin1, theta1 = operands(first, 3, 2, "iwp-sin")
    _, fanin2, theta2 = operands(second, 2, 2, "table", seed=1)
    shapes, fanins = [first, second], [fanin1, fanin2]
    thetas = [theta1.requires_grad_(), theta2.requires_grad_()]
    with mock.patch.object(conv, "readers_of", wraps=readers_of) as gathered:
        images = ops.conv_chain(x, shapes, fanins, thetas, ["iwp-sin", "table"])
        rows = images.permute(1, 2, 3, 0).flatten(0, 2)
        got = [rows.detach(), *torch.autograd.grad(rows, thetas, grad_like(rows))]
    assert gathered.call_count == 1
    hidden = reference.conv(x, fanin1, 0.5 + 0.5 * thetas[0].sin(), first)
    out = reference.conv(hidden, fanin2, thetas[1], second).permute(1, 2, 3, 0).reshape(rows.shape)
    assert_close(got, [out.detach(), *torch.autograd.grad(out, thetas, grad_like(rows))])
    with torch.no_grad():
        assert torch.equal(ops.conv_chain(x, shapes, fanins, thetas, ["iwp-sin", "table"]), images)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_storage(dtype: torch.dtype) -> None:
    shape = ConvShape(1, 4, 4, kernel=2, depth=2, pool=3)
    x, fanin, theta = operands(shape, 2, 3, "table")
    got = run(x.to(dtype), fanin, theta, shape, "table")
    assert [t.dtype for t in got] == [dtype, dtype, torch.float32]
    want = expected(x.to(dtype), fanin, theta, shape, "table")
    assert (got[0].double() - want[0]).abs().le((2.0**-7 if dtype == torch.bfloat16 else 2.0**-11) * want[0]).all()


def test_an_empty_batch() -> None:
    shape = ConvShape(1, 4, 4, kernel=2, depth=1, pool=3)
    x, fanin, theta = operands(shape, 2, 0, "table")
    out, grad_x, grad_theta = run(x, fanin, theta, shape, "table")
    assert out.shape == (0, 2, 1, 1)
    assert grad_x.shape == x.shape
    assert grad_theta.eq(0).all()


def test_the_public_op_and_layers_use_it() -> None:
    images = torch.rand(2, 1, 6, 6, generator=torch.Generator().manual_seed(0))

    def step(backend: str) -> list[Tensor]:
        ops.set_backend(backend)
        try:
            first = LogicConv2d(1, 3, 3, padding=1, tree_depth=2, seed=0)
            stack = LogicConvStack([first, OrPool2d(2), LogicConv2d(3, 2, 2, tree_depth=2, seed=1)])
            x = images.clone().requires_grad_()
            out = stack(x)
            return [out.detach(), *torch.autograd.grad(out, (x, *stack.parameters()), grad_like(out))]
        finally:
            ops.set_backend("triton")

    with mock.patch.object(chains, "conv_chain_fwd", wraps=chains.conv_chain_fwd) as used:
        got = step("triton")
        assert used.call_count == 1
        deep = ConvShape(1, 6, 6, kernel=3, depth=5)
        _, fanin, table = operands(deep, 1, 2, "table")
        assert_close([ops.conv(images, fanin, table, deep)], [reference.conv(images, fanin, table, deep)])
        assert used.call_count == 1
    assert_close(got, step("reference"))


def test_trees_that_are_too_large_have_no_kernel() -> None:
    assert conv.supports_shape(ConvShape(1, 4, 4, kernel=2, depth=4))
    assert not conv.supports_shape(ConvShape(1, 4, 4, kernel=2, depth=5))
    assert not conv.supports_shape(ConvShape(1, 9, 9, kernel=1, depth=1, pool=5))
