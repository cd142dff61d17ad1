"""Chains of layers where torch captures a graph: one op, which does what the eager call does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gatelight import native, ops
from gatelight.nn import LogicConv2d, LogicConvStack, LogicDense, LogicStack, OrPool2d
from gatelight.ops import ConvShape
from gatelight.ops.backends import cpu
from gatelight.ops.schemas import pack

needs_kernels = pytest.mark.skipif(native.load() is None, reason=f"no native kernels: {native.why_not()}")
Make = Callable[[], tuple[nn.Module, Tensor]]


def dense() -> tuple[nn.Module, Tensor]:
    layers = [
        LogicDense(6, 8, init="uniform", seed=0),
        LogicDense(8, 7, arity=3, estimator="sigmoid", init="uniform", seed=1),
        LogicDense(7, 9, estimator="sin-sign", init="uniform", seed=2),
        LogicDense(9, 5, parametrization="op", init="uniform", seed=3),
    ]
    return LogicStack(layers), torch.rand(21, 6)


def conv() -> tuple[nn.Module, Tensor]:
    first = LogicConv2d(1, 3, 3, padding=1, tree_depth=2, init="uniform", seed=0)
    layers = [first, OrPool2d(2), LogicConv2d(3, 2, 2, tree_depth=1, init="uniform", seed=1)]
    return LogicConvStack(layers), torch.rand(21, 1, 6, 6)


CASES = pytest.mark.parametrize(("make", "op"), [(dense, "dense_chain_fwd"), (conv, "conv_chain_fwd")])
BACKENDS = pytest.mark.parametrize("backend", ["auto", "reference"])


@pytest.fixture(autouse=True)
def settled() -> Any:
    yield
    ops.set_backend("auto")
    torch.compiler.reset()


def step(model: Callable[[Tensor], Tensor], parameters: list[nn.Parameter], x: Tensor) -> list[Tensor]:
    x = x.clone().requires_grad_()
    out = model(x)
    return [out.detach(), *torch.autograd.grad(out.square().sum(), [x, *parameters])]


@CASES
@BACKENDS
def test_a_stack_is_one_op(make: Make, op: str, backend: str) -> None:
    ops.set_backend(backend)
    model, x = make()
    seen: list[str] = []

    def capture(graph: torch.fx.GraphModule, _: Any) -> Any:
        seen.extend(str(node.target) for node in graph.graph.nodes if "gatelight" in str(node.target))
        return graph

    compiled = torch.compile(model, fullgraph=True, backend=capture)
    torch.testing.assert_close(compiled(x), model(x))
    assert seen == [f"gatelight.{op}"]


@CASES
@BACKENDS
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_training_equals_eager(make: Make, op: str, backend: str, dynamic: bool) -> None:
    ops.set_backend(backend)
    model, x = make()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for batch in (21, 5):
        got = step(compiled, list(model.parameters()), x[:batch])
        for a, b in zip(got, step(model, list(model.parameters()), x[:batch]), strict=True):
            torch.testing.assert_close(a, b)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))


@CASES
def test_export(make: Make, op: str) -> None:
    model, x = make()
    exported = torch.export.export(model, (x,))
    assert [str(node.target) for node in exported.graph.nodes if "gatelight" in str(node.target)] == [
        f"gatelight.{op}.default"
    ]
    torch.testing.assert_close(exported.module()(x), model(x))


@needs_kernels
@CASES
def test_kernels_give_the_same_bits(make: Make, op: str) -> None:
    model, x = make()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    got = step(compiled, list(model.parameters()), x)
    for a, b in zip(got, step(model, list(model.parameters()), x), strict=True):
        assert torch.equal(a, b)


def operands(model: Any, x: Tensor) -> tuple[list[Tensor], list[Tensor], str]:
    pairs = [layer.kernel_operands() for layer in model.layers]
    thetas = [theta.detach().requires_grad_() for theta, _ in pairs]
    return [layer.fanin for layer in model.layers], thetas, ",".join(map for _, map in pairs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("memory", ["auto", "keep", "keep-bf16", "recompute"])
def test_opcheck_of_a_dense_chain(memory: str, dtype: torch.dtype) -> None:
    model, x = dense()
    fanins, thetas, maps = operands(model.to(dtype), x)
    rows = x.to(dtype).t().contiguous().requires_grad_()
    torch.library.opcheck(torch.ops.gatelight.dense_chain_fwd, (rows, fanins, thetas, maps, memory, True))
    if not ops.supports("cpu", rows):
        # The reference differentiates with torch.func, which opcheck's modes cannot look into: what it gives is checked
        # with forward above.
        return
    plain = [theta.detach() for theta in thetas]
    out, saved = torch.ops.gatelight.dense_chain_fwd(rows.detach(), fanins, plain, maps, memory, True)
    for needs in ([True] * 5, [False, True, False, True, True]):
        arguments = torch.rand_like(out), rows.detach(), saved, fanins, plain, maps, memory, needs
        torch.library.opcheck(torch.ops.gatelight.dense_chain_bwd, arguments)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_opcheck_of_a_convolutional_chain(dtype: torch.dtype) -> None:
    model, x = conv()
    assert isinstance(model, LogicConvStack)
    fanins, thetas, maps = operands(model.to(dtype), x)
    geometry = pack(model.shapes(6, 6))
    rows = x.to(dtype).flatten(1).t().contiguous().requires_grad_()
    torch.library.opcheck(torch.ops.gatelight.conv_chain_fwd, (rows, geometry, fanins, thetas, maps, True))
    if not ops.supports("cpu", rows):  # as above
        return
    plain = [theta.detach() for theta in thetas]
    out, saved = torch.ops.gatelight.conv_chain_fwd(rows.detach(), geometry, fanins, plain, maps, True)
    for needs in ([True] * 3, [False, True, False]):
        arguments = torch.rand_like(out), rows.detach(), saved, geometry, fanins, plain, maps, needs
        torch.library.opcheck(torch.ops.gatelight.conv_chain_bwd, arguments)


@CASES
def test_backward_of_an_op_that_saved_nothing(make: Make, op: str) -> None:
    model, x = make()
    fanins, thetas, maps = operands(model, x)
    rows = x.flatten(1).t()
    if op == "dense_chain_fwd":
        out = torch.ops.gatelight.dense_chain_fwd(rows, fanins, thetas, maps, "keep", False)[0]
    else:
        assert isinstance(model, LogicConvStack)
        out = torch.ops.gatelight.conv_chain_fwd(rows, pack(model.shapes(6, 6)), fanins, thetas, maps, False)[0]
    want = model(x)
    torch.testing.assert_close(out.t(), want.flatten(1))
    # The layer whose map no kernel knows hands on a table in place of its theta.
    known = [i for i, map in enumerate(maps.split(",")) if map != "table"]
    parameters = [[layer.theta for layer in model.layers][i] for i in known]  # type: ignore[union-attr]
    found = torch.autograd.grad(out.square().sum(), [thetas[i] for i in known])
    for a, b in zip(found, torch.autograd.grad(want.square().sum(), parameters), strict=True):
        torch.testing.assert_close(a, b)


@CASES
@BACKENDS
def test_second_derivatives_of_the_op(make: Make, op: str, backend: str) -> None:
    ops.set_backend(backend)
    model, x = make()
    results = []
    for net, at in ((model, x), (copy.deepcopy(model).double(), x.double())):
        fanins, thetas, maps = operands(net, at)
        rows = at.flatten(1).t().detach().requires_grad_()
        if op == "dense_chain_fwd":
            out = torch.ops.gatelight.dense_chain_fwd(rows, fanins, thetas, maps, "keep", True)[0]
        else:
            out = torch.ops.gatelight.conv_chain_fwd(rows, pack(model.shapes(6, 6)), fanins, thetas, maps, True)[0]  # type: ignore[operator]
        (gradient,) = torch.autograd.grad(out.square().sum(), rows, create_graph=True)
        results.append(torch.autograd.grad(gradient.square().sum(), [rows, *thetas]))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-3, atol=1e-4)


def test_a_bad_operand_of_the_op_is_named() -> None:
    model, x = dense()
    fanins, thetas, maps = operands(model, x)
    bad = [fanins[0] + 6, *fanins[1:]]
    with pytest.raises(ValueError, match="must be from 0 to 5"):
        torch.ops.gatelight.dense_chain_fwd(x.t(), bad, thetas, maps, "keep", True)
    with pytest.raises(ValueError, match="unknown map 'walsh'"):
        torch.ops.gatelight.dense_chain_fwd(x.t(), fanins, thetas, "walsh" + maps[7:], "keep", True)
    model, x = conv()
    assert isinstance(model, LogicConvStack)
    fanins, thetas, maps = operands(model, x)
    with pytest.raises(ValueError, match=r"x must be \[36, batch\] for images of \(1, 6, 6\)"):
        torch.ops.gatelight.conv_chain_fwd(torch.rand(35, 2), pack(model.shapes(6, 6)), fanins, thetas, maps, True)


@needs_kernels
@pytest.mark.parametrize("memory", list(cpu.MODES))
@pytest.mark.parametrize("batch", [1, 2, 16, 33])
@pytest.mark.parametrize("layers", [1, 2, 9, 30])
def test_shapes_bound_what_kernels_save(memory: str, batch: int, layers: int) -> None:
    for arity, width in ((1, 3), (2, 40), (4, 7)):
        fanins = [torch.randint(0, width, (width, arity), dtype=torch.int32) for _ in range(layers)]
        thetas = [torch.rand(width, 1 << arity) for _ in range(layers)]
        x = torch.rand(width, batch)
        _, [saved] = cpu.dense_chain_fwd(x, fanins, thetas, ["table"] * layers, memory)
        _, [larger] = cpu.dense_chain_fwd(x, fanins, thetas, ["table"] * layers, memory, by_shape=True)
        assert larger.numel() == cpu.saved_bytes(x, fanins, thetas, memory) >= saved.numel()


@needs_kernels
@pytest.mark.parametrize("batch", [1, 16, 33])
@pytest.mark.parametrize("pool", [1, 2])
@pytest.mark.parametrize("trees", [1, 5])
def test_shapes_bound_what_convolutions_save(batch: int, pool: int, trees: int) -> None:
    shapes = [
        ConvShape(2, 9, 7, kernel=3, padding=1, pool=pool),
        ConvShape(trees, 9 // pool, 7 // pool, kernel=2, padding=1, depth=1, arity=3, pool=pool),
    ]
    fanins = [torch.zeros(trees, shape.leaves, dtype=torch.int32) for shape in shapes]
    thetas = [torch.rand(trees * shape.tree_gates, 1 << shape.arity) for shape in shapes]
    x = torch.rand(2 * 9 * 7, batch)
    _, [saved] = cpu.conv_chain_fwd(x, shapes, fanins, thetas, ["table"] * 2)
    _, [larger] = cpu.conv_chain_fwd(x, shapes, fanins, thetas, ["table"] * 2, by_shape=True)
    assert larger.numel() == cpu.conv_saved_bytes(x, shapes, fanins, thetas) >= saved.numel()


def test_wrong_operands_are_named_without_memory() -> None:
    fanin, theta = torch.zeros(3, 2, dtype=torch.int32, device="meta"), torch.rand(3, 4, device="meta")
    with pytest.raises(ValueError, match=r"x must have two dimensions, got shape \(4,\)"):
        torch.ops.gatelight.dense_chain_fwd(torch.rand(4, device="meta"), [fanin], [theta], "table", "auto", False)
    with pytest.raises(ValueError, match="fanins, thetas and maps must have one entry"):
        torch.ops.gatelight.dense_chain_fwd(torch.rand(4, 5, device="meta"), [], [], "table", "auto", False)
    geometry = pack([ConvShape(1, 2, 2, kernel=1, depth=1)])
    images = torch.rand(4, 5, device="meta")
    with pytest.raises(ValueError, match="fanin must have two dimensions"):
        torch.ops.gatelight.conv_chain_fwd(images, geometry, [fanin[0]], [theta], "table", False)
    with pytest.raises(ValueError, match="shapes, fanins, thetas and maps must have one entry"):
        torch.ops.gatelight.conv_chain_fwd(images, [], [fanin], [theta], "table", False)
