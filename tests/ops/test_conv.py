"""Trees of gates over images: the reference against plain loops, the kernels against the reference."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gatelight import native, ops
from gatelight.ops import NATIVE_MAPS, ConvShape
from gatelight.ops.backends import cpu, reference
from gatelight.ops.schemas import pack

needs_kernels = pytest.mark.skipif(native.load() is None, reason=f"no native kernels: {native.why_not()}")
TREES = [(2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1), (6, 1)]
PATHS = cpu.available_simd() if native.load() is not None else []


def random_layer(shape: ConvShape, trees: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    fanin = torch.randint(0, shape.window_inputs, (trees, shape.leaves), generator=generator, dtype=torch.int32)
    return fanin, torch.rand(trees * shape.tree_gates, 1 << shape.arity, generator=generator)


def by_loops(x: Tensor, fanin: Tensor, table: Tensor, shape: ConvShape) -> Tensor:
    """One sample, tree, position and gate after the other, in double precision."""
    x, table = x.double(), table.double().view(len(fanin), shape.tree_gates, -1)
    out = torch.zeros(len(x), len(fanin), shape.out_height, shape.out_width, dtype=torch.float64)

    def leaf(sample: int, tree: int, index: int, top: int, left: int) -> float:
        channel, place = divmod(int(fanin[tree, index]), shape.kernel**2)
        row, column = top + place // shape.kernel, left + place % shape.kernel
        inside = 0 <= row < shape.height and 0 <= column < shape.width
        return float(x[sample, channel, row, column]) if inside else 0.0

    def node(sample: int, tree: int, index: int, top: int, left: int) -> float:
        if index >= shape.tree_gates:
            return leaf(sample, tree, index - shape.tree_gates, top, left)
        inputs = [node(sample, tree, shape.arity * index + 1 + k, top, left) for k in range(shape.arity)]
        value = 0.0
        for entry, bits in enumerate(itertools.product((0, 1), repeat=shape.arity)):
            weight = 1.0
            for bit, one in zip(bits, inputs, strict=True):
                weight *= one if bit else 1 - one
            value += weight * float(table[tree, index, entry])
        return value

    for sample, tree, y, x_ in itertools.product(*map(range, out.shape)):
        out[sample, tree, y, x_] = max(
            node(
                sample,
                tree,
                0,
                (y * shape.pool + py) * shape.stride - shape.padding,
                (x_ * shape.pool + px) * shape.stride - shape.padding,
            )
            for py in range(shape.pool)
            for px in range(shape.pool)
        )
    return out


@pytest.mark.parametrize(
    "shape",
    [
        ConvShape(2, 5, 4, kernel=3, padding=1, pool=2),
        ConvShape(1, 6, 6, kernel=5, depth=2),
        ConvShape(2, 7, 5, kernel=3, padding=2, stride=2, depth=2, arity=3, pool=2),
        ConvShape(3, 4, 4, kernel=2, depth=1, arity=6),
        ConvShape(1, 3, 3, kernel=1, depth=2, arity=1, pool=3),
        ConvShape(1, 4, 4, kernel=2, padding=2, stride=3, depth=1),
    ],
    ids=str,
)
def test_reference_equals_loops(shape: ConvShape) -> None:
    fanin, table = random_layer(shape, trees=2)
    x = torch.rand(2, shape.channels, shape.height, shape.width)
    torch.testing.assert_close(
        reference.conv(x, fanin, table, shape).double(), by_loops(x, fanin, table, shape), atol=1e-6, rtol=0
    )


def test_reference_gradients() -> None:
    shape = ConvShape(2, 4, 4, kernel=3, padding=1, depth=2, pool=2)
    fanin, table = random_layer(shape, trees=2)
    x = torch.rand(2, 2, 4, 4, dtype=torch.float64, requires_grad=True)
    parameters = table.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: reference.conv(a, fanin, b, shape), (x, parameters))


def test_equal_values_give_the_gradient_to_the_first() -> None:
    shape = ConvShape(1, 2, 2, kernel=1, depth=1, pool=2)
    table = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    for convolve in (reference.conv, ops.conv):
        x = torch.full((1, 1, 2, 2), 0.5, requires_grad=True)
        convolve(x, torch.zeros(1, 2, dtype=torch.int32), table, shape).sum().backward()
        assert x.grad is not None
        assert x.grad.flatten().tolist() == [1.0, 0.0, 0.0, 0.0]


def assert_equals_reference(
    x: Tensor, fanin: Tensor, table: Tensor, shape: ConvShape, grad_out: Tensor | None = None
) -> None:
    """Values and gradients against the reference in double precision."""
    results = []
    for convolve, dtype in ((ops.conv, torch.float32), (reference.conv, torch.float64)):
        x_, table_ = x.detach().to(dtype).requires_grad_(), table.detach().to(dtype).requires_grad_()
        out = convolve(x_, fanin, table_, shape)
        grad = torch.linspace(-1, 1, out.numel()).view(out.shape) if grad_out is None else grad_out
        results.append([t.double() for t in (out, *torch.autograd.grad(out, (x_, table_), grad.to(dtype)))])
        # What a rounding error is relative to: the gradients that flow into a tree, and from all trees into a pixel.
        into = float(grad.abs().sum()) / len(fanin)
    for ours, theirs, scale in zip(*results, (1.0, 1.0 + into, 1.0 + into), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6 * scale, rtol=0)


@st.composite
def shapes(draw: st.DrawFn) -> ConvShape:
    arity, depth = draw(st.sampled_from(TREES))
    kernel, pool = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    padding, stride = draw(st.integers(0, 2)), draw(st.integers(1, 2))
    least = max(1, kernel - 2 * padding + (pool - 1) * stride)
    height, width = (draw(st.integers(least, least + 4)) for _ in range(2))
    return ConvShape(draw(st.integers(1, 3)), height, width, kernel, padding, stride, depth, arity, pool)


@needs_kernels
@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=40, deadline=None)
@given(shape=shapes(), batch=st.integers(1, 40), trees=st.integers(1, 3), bits=st.booleans(), seed=st.integers(0, 99))
def test_kernel_equals_reference(path: str, shape: ConvShape, batch: int, trees: int, bits: bool, seed: int) -> None:
    cpu.select_simd(path)
    try:
        fanin, table = random_layer(shape, trees, seed)
        x = torch.rand(batch, shape.channels, shape.height, shape.width, generator=torch.Generator().manual_seed(seed))
        assert ops.supports("cpu", x, table, shapes=[shape])
        # Bits make equal values, which pooling has to tell apart by their place.
        assert_equals_reference(x.round() if bits else x, fanin, table, shape)
    finally:
        cpu.select_simd(PATHS[0])


@needs_kernels
@pytest.mark.parametrize(("arity", "depth"), TREES)
@pytest.mark.parametrize("pool", [1, 2])
def test_every_tree_has_a_kernel(arity: int, depth: int, pool: int) -> None:
    shape = ConvShape(2, 6, 6, kernel=3, padding=1, depth=depth, arity=arity, pool=pool)
    fanin, table = random_layer(shape, trees=3)
    x = torch.rand(17, 2, 6, 6)
    assert ops.supports("cpu", x, table, shapes=[shape])
    assert_equals_reference(x, fanin, table, shape)


@pytest.mark.parametrize("shape", [ConvShape(1, 6, 6, 3, arity=5, depth=1), ConvShape(1, 6, 6, 3, pool=3)], ids=str)
def test_other_trees_and_pools_run_on_the_reference(shape: ConvShape) -> None:
    fanin, table = random_layer(shape, trees=2)
    x = torch.rand(3, 1, 6, 6)
    assert not ops.supports("cpu", x, table, shapes=[shape])
    assert torch.equal(ops.conv(x, fanin, table, shape), reference.conv(x, fanin, table, shape))


@needs_kernels
def test_any_memory_layout() -> None:
    shape = ConvShape(2, 6, 5, kernel=3, padding=1, pool=2)
    fanin, table = random_layer(shape, trees=3)
    x = torch.rand(20, 2, 6, 5)
    expected = ops.conv(x, fanin, table, shape)
    feature_major = x.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2)
    spread = torch.rand(20, 4, 6, 10)[:, ::2, :, ::2].copy_(x)
    for same in (feature_major, spread, x.to(memory_format=torch.channels_last)):
        assert torch.equal(ops.conv(same, fanin, table, shape), expected)
        assert_equals_reference(same, fanin, table, shape)
    constant = torch.ones(1, 1, 1, 1).expand(20, 3, 3, 2)
    assert_equals_reference(x, fanin, table, shape, constant)


@needs_kernels
def test_chain_equals_its_layers_for_every_map() -> None:
    shapes = [
        ConvShape(2, 9, 8, 3, padding=1, pool=2),
        ConvShape(5, 4, 4, 3, padding=1),
        ConvShape(4, 4, 4, 2, depth=2),
    ]
    layers = [
        random_layer(shape, trees, seed) for seed, (shape, trees) in enumerate(zip(shapes, (5, 4, 3), strict=True))
    ]
    x = torch.rand(37, 2, 9, 8)
    for maps in (["iwp-sin", "iwp-sigmoid", "op"], ["table", "iwp-linear-st", "iwp-sigmoid-st"]):
        generator = torch.Generator().manual_seed(1)
        thetas = [
            table if map == "table" else torch.randn(len(table), NATIVE_MAPS[map].parameters(2), generator=generator)
            for map, (_, table) in zip(maps, layers, strict=True)
        ]
        chained = [theta.clone().requires_grad_() for theta in thetas]
        fanins = [fanin for fanin, _ in layers]
        out = ops.conv_chain(x, shapes, fanins, chained, maps)
        grad = torch.randn(out.shape, generator=generator)
        ours = torch.autograd.grad(out, chained, grad)

        tables = [cpu.table_fwd(t, map, 2).requires_grad_() for t, map in zip(thetas, maps, strict=True)]
        value = x
        for shape, fanin, table in zip(shapes, fanins, tables, strict=True):
            value = reference.conv(value, fanin, table, shape)
        torch.testing.assert_close(out, value, atol=1e-5, rtol=0)
        expected = torch.autograd.grad(value, tables, grad)
        for theta, map, mine, of_table in zip(thetas, maps, ours, expected, strict=True):
            wanted = cpu.table_bwd(theta, of_table.contiguous(), map, 2)
            torch.testing.assert_close(mine, wanted, atol=2e-5 * max(1.0, float(wanted.abs().max())), rtol=0)


@needs_kernels
def test_same_bits_for_any_number_of_threads() -> None:
    shape = ConvShape(3, 8, 8, kernel=3, padding=1, pool=2)
    fanin, table = random_layer(shape, trees=9)
    x, grads = torch.rand(150, 3, 8, 8), []
    try:
        for threads in (1, 2, 5):
            cpu.set_threads(threads)
            x_, table_ = x.clone().requires_grad_(), table.clone().requires_grad_()
            out = ops.conv(x_, fanin, table_, shape)
            grads.append((out, *torch.autograd.grad(out.square().sum(), (x_, table_))))
    finally:
        cpu.set_threads(None)
    for other in grads[1:]:
        assert all(torch.equal(a, b) for a, b in zip(grads[0], other, strict=True))


def test_nan_comes_out() -> None:
    shape = ConvShape(1, 4, 4, kernel=1, depth=1, pool=2)
    table, fanin = torch.tensor([[0.0, 0.0, 1.0, 1.0]]), torch.zeros(1, 2, dtype=torch.int32)
    for place in range(4):
        x = torch.zeros(1, 1, 4, 4)
        x[0, 0, place // 2, place % 2] = float("nan")
        out = ops.conv(x, fanin, table, shape)[0, 0]
        assert out[0, 0].isnan()
        assert out.isnan().sum() == 1


def test_empty_batch() -> None:
    shape = ConvShape(1, 4, 4, kernel=3, padding=1, pool=2)
    fanin, table = random_layer(shape, trees=2)
    table.requires_grad_()
    out = ops.conv(torch.rand(0, 1, 4, 4), fanin, table, shape)
    assert out.shape == (0, 2, 2, 2)
    out.sum().backward()
    assert table.grad is not None
    assert not table.grad.any()


@needs_kernels
def test_bad_operands_are_named() -> None:
    shape = ConvShape(2, 6, 6, kernel=3, padding=1)
    fanin, table = random_layer(shape, trees=3)
    rows = torch.rand(72, 4)
    with pytest.raises(ValueError, match="x must have 72 rows"):
        cpu.conv_chain_fwd(rows[:70], [shape], [fanin], [table], ["table"], save=False)
    with pytest.raises(ValueError, match="fanin must have shape"):
        cpu.conv_chain_fwd(rows, [shape], [fanin[:, :4].contiguous()], [table], ["table"], save=False)
    with pytest.raises(ValueError, match="theta must have 21 rows"):
        cpu.conv_chain_fwd(rows, [shape], [fanin], [table[:20].contiguous()], ["table"], save=False)
    with pytest.raises(ValueError, match=r"layer 1 takes images of \(2, 6, 6\), gets \(3, 6, 6\)"):
        cpu.conv_chain_fwd(rows, [shape, shape], [fanin] * 2, [table] * 2, ["table"] * 2, save=False)
    with pytest.raises(ValueError, match="one entry for each layer"):
        cpu.conv_chain_fwd(rows, [shape], [], [table], ["table"], save=False)
    out, saved = cpu.conv_chain_fwd(rows, [shape], [fanin], [table], ["table"], save=True)
    with pytest.raises(ValueError, match="grad_out must be"):
        cpu.conv_chain_bwd(out[:5], rows, saved, [shape], [fanin], [table], ["table"])
    with pytest.raises(ValueError, match="saved must hold"):
        cpu.conv_chain_bwd(out, rows, [saved[0][:8]], [shape], [fanin], [table], ["table"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": 0}, "kernel must be at least 1"),
        ({"padding": -1}, "padding must not be negative"),
        ({"kernel": 9}, "too small for a window of 9 x 9"),
        ({"pool": 5}, "pooling of 5 x 5"),
        ({"arity": 7}, "arity"),
    ],
)
def test_bad_shapes_are_named(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConvShape(**({"channels": 1, "height": 6, "width": 6, "kernel": 3} | options))


def test_rows_that_are_no_images_are_refused() -> None:
    shape = ConvShape(1, 2, 2, kernel=1, depth=1)
    fanin, table = torch.zeros(3, 2, dtype=torch.int32), torch.rand(3, 4)
    with pytest.raises(ValueError, match=r"x must be \[4, batch\] for images of \(1, 2, 2\), got \(3, 5\)"):
        torch.ops.gatelight.conv_chain_fwd(torch.rand(3, 5), pack([shape]), [fanin], [table], "table", False)
    with pytest.raises(ValueError, match="at least one layer is needed, got none"):
        torch.ops.gatelight.conv_chain_fwd(torch.rand(4, 5), [], [], [], "table", False)
