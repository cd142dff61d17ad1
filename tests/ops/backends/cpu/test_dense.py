"""The native kernels against a fold in double precision: values, gradients, and the same bits for any threads."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from unittest import mock

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from gatelight import native
from gatelight.ops import NATIVE_MAPS
from gatelight.ops.backends import cpu
from gatelight.ops.backends.cpu import memory
from gatelight.wiring import Clustered, Site
from gatelight.wiring.clustered import WIDE
from gatelight.wiring.linking import link

if not cpu.is_available():
    if os.environ.get("CI") == "true":
        raise RuntimeError(str(native.why_not()))
    pytest.skip(str(native.why_not()), allow_module_level=True)

PATHS = cpu.available_simd()
MAPS = list(NATIVE_MAPS)
FLOAT32_MODES = ["keep", "recompute"]


@pytest.fixture(autouse=True)
def settled() -> Iterator[None]:
    best = cpu.simd()
    yield
    cpu.select_simd(best)
    cpu.set_threads(None)


@dataclass(frozen=True)
class Stack:
    batch: int
    features: int
    widths: tuple[int, ...]
    arities: tuple[int, ...]
    maps: tuple[str, ...]
    seed: int = 0

    def tensors(self) -> tuple[Tensor, list[Tensor], list[Tensor], Tensor]:
        """x [features, batch], fanins, thetas and an out-gradient."""
        random = torch.Generator().manual_seed(self.seed)
        fanins, thetas, features = [], [], self.features
        for gates, arity, map in zip(self.widths, self.arities, self.maps, strict=True):
            fanins.append(torch.randint(0, features, (gates, arity), dtype=torch.int32, generator=random))
            size = (gates, NATIVE_MAPS[map].parameters(arity))
            draw = torch.rand if map == "table" else torch.randn
            thetas.append(draw(size, generator=random))
            features = gates
        x = torch.rand(self.features, self.batch, generator=random)
        return x, fanins, thetas, torch.randn(features, self.batch, generator=random)


@st.composite
def stacks(draw: st.DrawFn) -> Stack:
    maps = draw(st.lists(st.sampled_from(MAPS), min_size=1, max_size=4))
    arities = [draw(st.integers(1, NATIVE_MAPS[map].max_arity)) for map in maps]
    widths = [draw(st.integers(1, 37)) for _ in maps]
    batch = draw(st.one_of(st.integers(1, 40), st.sampled_from([64, 100, 161])))
    seed = draw(st.integers(0, 1 << 30))
    return Stack(batch, draw(st.integers(1, 20)), tuple(widths), tuple(arities), tuple(maps), seed)


def table(theta: Tensor, map: str, arity: int) -> Tensor:
    if map == "table":
        return theta
    if map == "op":
        entries = 1 << arity
        functions = torch.arange(1 << entries)[:, None] >> torch.arange(entries - 1, -1, -1) & 1
        return torch.softmax(theta, -1) @ functions.to(theta.dtype)
    estimators: dict[str, Callable[[Tensor], Tensor]] = {
        "iwp-sin": lambda t: 0.5 + 0.5 * torch.sin(t),
        "iwp-sin-st": lambda t: 0.5 + 0.5 * torch.sin(t.clamp(-torch.pi / 2, torch.pi / 2)),
        "iwp-sigmoid": torch.sigmoid,
        "iwp-sigmoid-st": torch.sigmoid,
        "iwp-linear-st": lambda t: t.clamp(0, 1),
    }
    value = estimators[map](theta)
    return theta + (value - theta).detach() if map.endswith("-st") else value


def fold(x: Tensor, fanin: Tensor, tables: Tensor) -> Tensor:
    entries = tables.unsqueeze(2)
    for column in fanin.unbind(1):
        low, high = entries.chunk(2, 1)
        entries = low + x[column].unsqueeze(1) * (high - low)
    return entries.squeeze(1)


def expected(stack: Stack) -> list[Tensor]:
    """Outputs, gradient for x and gradients for each theta, in float64."""
    x, fanins, thetas, grad_out = stack.tensors()
    inputs = [t.double().requires_grad_() for t in (x, *thetas)]
    rows = inputs[0]
    for fanin, theta, map, arity in zip(fanins, inputs[1:], stack.maps, stack.arities, strict=True):
        rows = fold(rows, fanin, table(theta, map, arity))
    # An unused input has no path to the output; its gradient is zero.
    return [rows.detach(), *torch.autograd.grad(rows, inputs, grad_out.double(), materialize_grads=True)]


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """Memory for results and for what is saved starts as NaN."""
    empty_like, new_bytes = torch.empty_like, memory.acquire
    with (
        mock.patch.object(torch, "empty_like", lambda t: empty_like(t).fill_(torch.nan)),
        mock.patch.object(memory, "acquire", lambda size: new_bytes(size).fill_(255)),
        mock.patch.object(memory, "empty", lambda rows, batch: torch.full((rows, batch), torch.nan)),
    ):
        yield


def run(stack: Stack, mode: str = "keep", x: Tensor | None = None, grad_out: Tensor | None = None) -> list[Tensor]:
    x0, fanins, thetas, grad_out0 = stack.tensors()
    x = x0 if x is None else x
    with poisoned():
        out, saved = cpu.dense_chain_fwd(x, fanins, thetas, stack.maps, mode)
        go = grad_out0 if grad_out is None else grad_out
        grad_x, grads = cpu.dense_chain_bwd(go, x, saved, fanins, thetas, stack.maps, mode, needs=[True])
    assert grad_x is not None
    return [out, grad_x, *grads]


def assert_close(got: list[Tensor], want: list[Tensor], grad_out: Tensor | None = None) -> None:
    # A gradient is a sum of out-gradients times factors of at most 1. Where terms of either sign cancel, its rounding
    # error is that of the terms, not of the sum: one float32 rounding of the largest sum of |out-gradients|.
    rounding = 6e-8 * float(grad_out.abs().sum(1).max()) if grad_out is not None and grad_out.numel() else 0.0
    for a, b in zip(got, want, strict=True):
        scale = float(b.abs().max()) if b.numel() else 0.0
        torch.testing.assert_close(a.double(), b, rtol=0, atol=2e-5 * scale + 1e-7 + rounding)


def assert_same_bits(got: list[Tensor], want: list[Tensor]) -> None:
    for a, b in zip(got, want, strict=True):
        assert torch.equal(a.view(torch.int32), b.view(torch.int32))


@pytest.mark.parametrize("path", PATHS)
@given(stack=stacks())
@example(stack=Stack(1, 1, (1,), (2,), ("iwp-sin",)))
@example(stack=Stack(17, 1, (1, 1), (6, 3), ("table", "op")))
@settings(max_examples=40, deadline=None)
def test_values_gradients_and_bits(path: str, stack: Stack) -> None:
    cpu.select_simd(path)
    cpu.set_threads(1)
    kept = run(stack, "keep")
    assert_close(kept, expected(stack), stack.tensors()[3])
    assert_same_bits(run(stack, "recompute"), kept)
    for threads in (2, 3, 5):
        cpu.set_threads(threads)
        assert_same_bits(run(stack, FLOAT32_MODES[threads % 2]), kept)


@given(stack=stacks(), gap=st.integers(0, 5), offset=st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_any_layout_of_the_inputs(stack: Stack, gap: int, offset: int) -> None:
    x, _, _, grad_out = stack.tensors()
    want = run(stack)
    for arrange in (spread, sample_major, neither):
        assert_same_bits(run(stack, "keep", arrange(x, gap, offset), arrange(grad_out, gap, offset)), want)


def spread(x: Tensor, gap: int, offset: int) -> Tensor:
    """The same matrix with rows further apart, starting off a cache line."""
    store = torch.full((x.shape[0] * (x.shape[1] + gap) + offset,), torch.nan)
    view = store[offset:].view(x.shape[0], -1)[:, : x.shape[1]]
    return view.copy_(x)


def sample_major(x: Tensor, gap: int, offset: int) -> Tensor:
    return spread(x.t(), gap, offset).t()


def neither(x: Tensor, gap: int, offset: int) -> Tensor:
    return x.repeat_interleave(2 + gap, 1)[:, :: 2 + gap]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("batch", "layers"), [(600, 3), (33, 20), (20, 75), (1, 20), (1, 75), (16, 11)])
def test_many_groups_and_many_segments(path: str, batch: int, layers: int) -> None:
    # Sixteen groups of tiles, and more layers than a segment of the recomputation has. Deep random nets lose their
    # gradient, so the tables are pass-through gates with some noise.
    cpu.select_simd(path)
    stack = Stack(batch, 30, (40,) * layers, (2,) * layers, ("table",) * layers)
    x, fanins, thetas, grad_out = stack.tensors()
    thetas = [0.1 * t + torch.tensor([0.0, 0.1, 0.8, 0.9]) for t in thetas]
    with mock.patch.object(Stack, "tensors", return_value=(x, fanins, thetas, grad_out)):
        want = expected(stack)
        first = run(stack, "keep")
        assert_close(first, want, stack.tensors()[3])
        for threads in (1, 3):
            cpu.set_threads(threads)
            for mode in FLOAT32_MODES:
                assert_same_bits(run(stack, mode), first)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("arity", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("batch", [1, 16, 37])
def test_layers_that_outgrow_the_cache(path: str, arity: int, batch: int) -> None:
    # More than 2**15 rows: they are fetched further ahead.
    cpu.select_simd(path)
    stack = Stack(batch, 33_000, (300, 9), (arity, 2), ("iwp-sin", "table"))
    want = expected(stack)
    for mode in FLOAT32_MODES:
        assert_close(run(stack, mode), want, stack.tensors()[3])


@dataclass(frozen=True)
class LinkedStack(Stack):
    """Most two-input gates read first what the gate before reads last; one in 25 does not, one reads a row twice."""

    def tensors(self) -> tuple[Tensor, list[Tensor], list[Tensor], Tensor]:
        x, fanins, thetas, grad_out = super().tensors()
        for fanin in fanins:
            if fanin.shape[1] == 2:
                fanin[1:, 0] = fanin[:-1, 1]
                fanin[24::25] = fanin[24::25].flip(1)
                fanin[5:7, 0] = fanin[5, 1]
        return x, fanins, thetas, grad_out


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "stack",
    [
        LinkedStack(128, 60, (300, 300, 300), (2, 2, 2), ("iwp-sin", "table", "op")),
        LinkedStack(17, 9, (200, 70, 201), (2, 2, 2), ("iwp-sin-st", "iwp-sin", "table")),
        LinkedStack(33, 40, (99, 99, 65, 67), (2, 3, 2, 1), ("iwp-sin",) * 4),
        LinkedStack(9, 3, (100, 100), (2, 2), ("iwp-sigmoid", "iwp-sin")),
        LinkedStack(1, 30, (100, 100), (2, 2), ("iwp-sin", "iwp-sin")),
        LinkedStack(20, 1, (100, 100), (2, 2), ("iwp-sin", "iwp-sin")),
        LinkedStack(40, 200, (WIDE + 100, 300), (2, 2), ("iwp-sin", "iwp-sin")),
        LinkedStack(40, 100, (100,) * 20, (2,) * 20, ("table",) * 20),
    ],
    ids=lambda stack: f"{stack.batch}-{stack.widths}",
)
def test_linked_gates(path: str, stack: LinkedStack) -> None:
    x, fanins, thetas, grad_out = stack.tensors()
    for fanin in fanins:
        # What the kernels ask for (csrc/dense/plan.h): these layers do take the other loops.
        assert fanin.shape[1] != 2 or float((fanin[1:, 0] == fanin[:-1, 1]).float().mean()) > 0.9
    cpu.select_simd(path)
    wanted = expected(stack)
    for mode in ("keep", "recompute"):
        cpu.set_threads(1)
        got = run(stack, mode)
        assert_close(got, wanted, grad_out)
        for threads in (2, 5):
            cpu.set_threads(threads)
            assert_same_bits(run(stack, mode), got)
        for change in (sample_major, spread):
            assert_same_bits(run(stack, mode, change(x, 3, 1), change(grad_out, 3, 1)), got)
    _, saved = cpu.dense_chain_fwd(x, fanins, thetas, stack.maps, "keep")
    arguments = grad_out, x, saved, fanins, thetas, stack.maps, "keep"
    assert_same_bits(
        cpu.dense_chain_bwd(*arguments, needs=[False])[1], cpu.dense_chain_bwd(*arguments, needs=[True])[1]
    )


@dataclass(frozen=True)
class ClusteredStack(Stack):
    """Layers in ``clustered`` read inside clusters, and their gates are listed in three parts."""

    clustered: tuple[int, ...] = ()
    linked: bool = False

    def tensors(self) -> tuple[Tensor, list[Tensor], list[Tensor], Tensor]:
        x, fanins, thetas, grad_out = super().tensors()
        random = torch.Generator().manual_seed(self.seed)
        for index in self.clustered:
            gates, arity = fanins[index].shape
            fanins[index] = Clustered().draw(Site(fanins[index - 1].shape[0], gates, arity, groups=3), random)
        if self.linked:
            fanins = [link(fanin).fanin for fanin in fanins]
        return x, fanins, thetas, grad_out


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "stack",
    [
        ClusteredStack(100, 60, (WIDE, WIDE), (2, 2), ("iwp-sin", "iwp-sin"), clustered=(1,)),
        ClusteredStack(17, 60, (WIDE + 1500, 700), (2, 2), ("iwp-sin", "table"), clustered=(1,)),
        ClusteredStack(32, 9, (WIDE, 2 * WIDE), (1, 2), ("iwp-sigmoid", "op"), clustered=(1,)),
        ClusteredStack(48, 50_000, (40_000, 34_000, 100), (3, 2, 4), ("iwp-sin", "op", "table"), clustered=(1,)),
        ClusteredStack(33, 40, (50, WIDE, 35_001, 36_002, 20), (2, 2, 1, 2, 2), ("iwp-sin",) * 5, clustered=(2, 4)),
        ClusteredStack(70, 300, (WIDE, WIDE, WIDE, 90), (2,) * 4, ("iwp-sin",) * 4, clustered=(1, 3), linked=True),
        ClusteredStack(600, 40, (WIDE, 90), (2, 5), ("table", "iwp-sin-st"), clustered=(1,)),
    ],
    ids=lambda stack: f"{stack.batch}-{stack.widths}",
)
def test_cluster_by_cluster(path: str, stack: ClusteredStack) -> None:
    cpu.select_simd(path)
    cpu.set_threads(1)
    x, fanins, thetas, grad_out = stack.tensors()
    with mock.patch.object(Stack, "tensors", return_value=(x, fanins, thetas, grad_out)):
        kept = run(stack, "keep")
        assert_close(kept, expected(stack), grad_out)
        for threads in (2, 5):
            cpu.set_threads(threads)
            assert_same_bits(run(stack, "keep"), kept)
        assert_close(run(stack, "recompute"), [t.double() for t in kept], grad_out)
        for change in (sample_major, spread):
            assert_same_bits(run(stack, "keep", change(x, 3, 1), change(grad_out, 3, 1)), kept)
    # Exactly the inputs of pairs are kept, padded and with five spare rows: the stack did go cluster by cluster.
    _, saved = cpu.dense_chain_fwd(x, fanins, thetas, stack.maps, "keep")
    inputs = (stack.features, *stack.widths)
    rows = sum(inputs[i] + 5 for i in range(len(stack.widths)) if i not in stack.clustered)
    coefficients = sum(
        -(-(gates << arity) // 16) * 16 for gates, arity in zip(stack.widths, stack.arities, strict=True)
    )
    assert saved[0].numel() == 4 * (coefficients + -(-stack.batch // 16) * 16 * rows)
    assert saved[0].numel() <= cpu.saved_bytes(x, fanins, thetas, "keep")


def test_clusters_need_no_gradient_for_the_input() -> None:
    stack = ClusteredStack(40, 60, (WIDE, WIDE), (2, 2), ("iwp-sin", "iwp-sin"), clustered=(1,))
    x, fanins, thetas, grad_out = stack.tensors()
    _, saved = cpu.dense_chain_fwd(x, fanins, thetas, stack.maps, "keep")
    arguments = grad_out, x, saved, fanins, thetas, stack.maps, "keep"
    _, wanted = cpu.dense_chain_bwd(*arguments, needs=[True])
    nothing, grads = cpu.dense_chain_bwd(*arguments, needs=[False])
    assert nothing is None
    assert_same_bits(grads, wanted)


@pytest.mark.parametrize("batch", [1, 5, 16, 40])
def test_bfloat16_activations_round_gradients_alone(batch: int) -> None:
    stack = Stack(batch, 9, (30, 30, 30), (2, 2, 3), ("iwp-sin",) * 3)
    kept, halves = run(stack, "keep"), run(stack, "keep-bf16")
    assert_same_bits(halves[:1], kept[:1])
    for a, b in zip(halves, kept, strict=True):
        assert float((a - b).abs().max()) <= 0.02 * float(b.abs().max())


@pytest.mark.parametrize("batch", [1, 5, 16, 40])
def test_bfloat16_rounds_to_nearest(batch: int) -> None:
    stack = Stack(batch, 9, (64, 30), (2, 2), ("table", "table"))
    x, fanins, thetas, grad_out = stack.tensors()
    rounded = cpu.lut_fwd(x, fanins[0], thetas[0]).bfloat16().float()
    _, want = cpu.lut_bwd(grad_out, rounded, fanins[1], thetas[1])
    assert_same_bits(run(stack, "keep-bf16")[-1:], [want])


@pytest.mark.parametrize("arity", range(1, 7))
@pytest.mark.parametrize("batch", [0, 1, 23])
def test_one_layer(arity: int, batch: int) -> None:
    stack = Stack(batch, 7, (19,), (arity,), ("table",))
    x, [fanin], [tables], grad_out = stack.tensors()
    want = expected(stack)
    with poisoned():
        out = cpu.lut_fwd(x, fanin, tables)
        grad_x, grad_table = cpu.lut_bwd(grad_out, x, fanin, tables)
    assert_close([out, grad_x, grad_table], want)


def test_inputs_nobody_reads_get_zero() -> None:
    fanin = torch.tensor([[3, 3]], dtype=torch.int32)
    with poisoned():
        grad_x, _ = cpu.lut_bwd(torch.ones(1, 20), torch.rand(5, 20), fanin, torch.rand(1, 4))
    assert torch.equal(grad_x[[0, 1, 2, 4]], torch.zeros(4, 20))


def test_deep_stacks_of_logits() -> None:
    # OP's sums do not fit into its gradients.
    stack = Stack(40, 9, (30,) * 20, (2, 3) * 10, ("op",) * 20)
    assert_same_bits(run(stack, "recompute"), run(stack, "keep"))
