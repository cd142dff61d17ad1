"""The convolutional kernels on torch tensors, and a chain of such layers that autograd differentiates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
from torch import Tensor

from gatelight.ops.convshape import ConvShape
from gatelight.ops.derivatives import chain_gradients
from gatelight.ops.transforms import is_differentiated_again
from gatelight.ops.triton.index import readers_of
from gatelight.ops.triton.kernels import conv as kernels
from gatelight.ops.triton.launch import WARPS, as_rows, blocks, most_gates, on_its_device, table_fwd

#: Table entries of a tree up to which a program can hold their sums; larger trees run on the reference.
MOST_ENTRIES = 64
#: Places of a pooling window, which a byte numbers and forward goes through one by one.
MOST_PLACES = 16
TILE = 128
#: Programs into which backward cuts the pixels of few trees.
PARTS_PROGRAMS = 2048


def supported(shape: ConvShape) -> bool:
    """Whether there is a kernel for trees and pooling of this shape.

    >>> supported(ConvShape(3, 8, 8, kernel=3, depth=3, pool=2)), supported(ConvShape(3, 8, 8, kernel=3, depth=7))
    (True, False)
    """
    return shape.tree_gates << shape.arity <= MOST_ENTRIES and shape.pool**2 <= MOST_PLACES


@on_its_device
def layer_fwd(
    x: Tensor, shape: ConvShape, fanin: Tensor, theta: Tensor, kind: str, keep: bool = False
) -> tuple[Tensor, Tensor]:
    """Outputs [trees * out_height * out_width, batch] on x [channels * height * width, batch].

    Returns:
        Outputs in x's dtype and, to keep for backward, the place that won in each pooling window, uint8.
    """
    x = as_rows(x)
    trees, batch, pixels = fanin.shape[0], x.shape[1], shape.out_height * shape.out_width
    out = x.new_empty(trees * pixels, batch)
    keep = keep and shape.pool > 1
    winner = x.new_empty(out.shape if keep else (1, 1), dtype=torch.uint8)
    if out.numel():
        table = table_fwd(theta, kind, shape.arity) if kind != "table" else theta.contiguous()
        block, samples = blocks(pixels, batch, TILE)
        grid = trees, triton.cdiv(pixels, block), triton.cdiv(batch, samples)
        arrays = x, x.stride(0), fanin.contiguous(), table, out, winner, pixels, batch
        kernels.conv_fwd_kernel[grid](*arrays, *geometry(shape), *_tree(shape), keep, block, samples, num_warps=WARPS)
    return out, winner


@on_its_device
def layer_bwd(
    grad_out: Tensor, x: Tensor, winner: Tensor, shape: ConvShape, fanin: Tensor, theta: Tensor, kind: str, need_x: bool
) -> tuple[Tensor | None, Tensor]:
    """Gradients of :func:`layer_fwd` for x, if needed, and theta."""
    x, grad_out, theta, fanin = as_rows(x), as_rows(grad_out), theta.contiguous(), fanin.contiguous()
    (trees, leaves), batch, pixels = fanin.shape, x.shape[1], shape.out_height * shape.out_width
    if grad_out.numel() == 0:
        return (torch.zeros_like(x) if need_x else None), torch.zeros_like(theta)
    table = table_fwd(theta, kind, shape.arity) if kind != "table" else theta
    block, samples = blocks(pixels, batch, TILE)
    parts = max(1, min(triton.cdiv(pixels, block), PARTS_PROGRAMS // trees))
    part = triton.cdiv(triton.cdiv(pixels, parts), block) * block
    parts = triton.cdiv(pixels, part)
    partial = x.new_empty(parts, *table.shape, dtype=torch.float32)
    grad_leaf = x.new_empty((trees * leaves * pixels, batch) if need_x else (1, 1), dtype=torch.float32)
    arrays = grad_out, grad_out.stride(0), x, x.stride(0), fanin, table, winner, partial, grad_leaf
    kernels.conv_bwd_kernel[(trees, parts)](
        *arrays, trees, pixels, batch, part, *geometry(shape), *_tree(shape), need_x, block, samples, num_warps=WARPS
    )
    grad_theta = torch.empty_like(theta)
    gates = len(theta)
    gate_block = most_gates(kind, shape.arity)
    kernels.table_bwd_kernel[(triton.cdiv(gates, gate_block),)](
        partial, theta, grad_theta, gates, parts, kind, shape.arity, gate_block, num_warps=WARPS
    )
    if not need_x:
        return None, grad_theta
    grad_x = x.new_empty(x.shape, dtype=grad_out.dtype)
    starts, readers = readers_of(fanin, shape.channels, shape.kernel**2)
    image = shape.height * shape.width
    block, samples = blocks(image, batch, TILE)
    grid = shape.channels, triton.cdiv(image, block), triton.cdiv(batch, samples)
    inputs = grad_leaf, fanin, winner, starts, readers
    kernels.conv_gather_kernel[grid](
        *inputs, grad_x, pixels, batch, *geometry(shape), leaves, block, samples, num_warps=WARPS
    )
    return grad_x, grad_theta


def chain(
    x: Tensor, shapes: Sequence[ConvShape], fanins: Sequence[Tensor], thetas: Sequence[Tensor], kinds: Sequence[str]
) -> Tensor:
    """A chain of layers on x [channels * height * width, batch], differentiable in x and in every theta."""
    if torch.is_grad_enabled() and (x.requires_grad or any(t.requires_grad for t in thetas)):
        out: Tensor = _Chain.apply(x, tuple(shapes), tuple(kinds), *fanins, *thetas)  # type: ignore[no-untyped-call]
        return out
    for shape, fanin, theta, kind in zip(shapes, fanins, thetas, kinds, strict=True):
        x, _ = layer_fwd(x, shape, fanin, theta.detach(), kind)
    return x


class _Chain(torch.autograd.Function):
    """Keeps the input of every layer and the winners of its pooling."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, shapes: tuple[ConvShape, ...], kinds: tuple[str, ...], *operands: Tensor
    ) -> Tensor:
        count = len(kinds)
        inputs, winners = [], []
        for shape, fanin, theta, kind in zip(shapes, operands[:count], operands[count:], kinds, strict=True):
            inputs.append(x)
            x, winner = layer_fwd(x, shape, fanin, theta, kind, keep=True)
            winners.append(winner)
        ctx.shapes, ctx.kinds = shapes, kinds
        ctx.save_for_backward(*operands, *inputs, *winners)
        return x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        count = len(ctx.kinds)
        saved = ctx.saved_tensors
        fanins, thetas, inputs, winners = (saved[i * count : (i + 1) * count] for i in range(4))
        if is_differentiated_again(grads[0]):
            return chain_gradients(ctx, inputs[0], fanins, thetas, grads[0])
        grad: Tensor | None = grads[0]
        grad_thetas: list[Tensor | None] = [None] * count
        for i in reversed(range(count)):
            assert grad is not None
            need_x = i > 0 or ctx.needs_input_grad[0]
            layer = ctx.shapes[i], fanins[i], thetas[i], ctx.kinds[i]
            grad, grad_thetas[i] = layer_bwd(grad, inputs[i], winners[i], *layer, need_x)
        return grad, None, None, *[None] * count, *grad_thetas


def geometry(shape: ConvShape) -> tuple[int, ...]:
    """What kernels are compiled for besides the tree: OUT_WIDTH, HEIGHT, WIDTH, KERNEL, STRIDE, PADDING, POOL."""
    return shape.out_width, shape.height, shape.width, shape.kernel, shape.stride, shape.padding, shape.pool


def _tree(shape: ConvShape) -> tuple[int, int, int]:
    return shape.arity, shape.depth, shape.tree_gates
