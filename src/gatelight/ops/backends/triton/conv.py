"""The convolutional kernels on torch tensors: one layer, forward and backward."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from gatelight.ops.backends.triton.index import readers_of
from gatelight.ops.backends.triton.kernels import conv as kernels
from gatelight.ops.backends.triton.launch import WARPS, as_rows, blocks, max_gates, on_its_device, table_fwd
from gatelight.ops.convshape import ConvShape

#: Table entries of a tree up to which a program can hold their sums; larger trees run on the reference.
MAX_ENTRIES = 64
#: Most positions of a pooling window: a byte numbers them, and forward visits them one by one.
MAX_PLACES = 16
TILE = 128
#: Programs into which backward divides the pixels if there are few trees.
PARTS_PROGRAMS = 2048


def supports_shape(shape: ConvShape) -> bool:
    """Whether there is a kernel for trees and pooling of this shape.

    >>> supports_shape(ConvShape(3, 8, 8, kernel=3, depth=3, pool=2))
    True
    >>> supports_shape(ConvShape(3, 8, 8, kernel=3, depth=7))
    False
    """
    return shape.tree_gates << shape.arity <= MAX_ENTRIES and shape.pool**2 <= MAX_PLACES


@on_its_device
def layer_fwd(
    x: Tensor, shape: ConvShape, fanin: Tensor, theta: Tensor, map: str, keep: bool = False
) -> tuple[Tensor, Tensor]:
    """Outputs [trees * out_height * out_width, batch] on x [channels * height * width, batch].

    Returns:
        Outputs in x's dtype and, to keep for backward, the position that won in each pooling window, uint8.
    """
    x = as_rows(x)
    trees, batch, pixels = fanin.shape[0], x.shape[1], shape.out_height * shape.out_width
    out = x.new_empty(trees * pixels, batch)
    keep = keep and shape.pool > 1
    winner = x.new_empty(out.shape if keep else (1, 1), dtype=torch.uint8)
    if out.numel():
        table = table_fwd(theta, map, shape.arity) if map != "table" else theta.contiguous()
        block, samples = blocks(pixels, batch, TILE)
        grid = trees, triton.cdiv(pixels, block), triton.cdiv(batch, samples)
        arrays = x, x.stride(0), fanin.contiguous(), table, out, winner, pixels, batch
        kernels.conv_fwd_kernel[grid](*arrays, *geometry(shape), keep, *_tree(shape), block, samples, num_warps=WARPS)
    return out, winner


@on_its_device
def layer_bwd(
    grad_out: Tensor, x: Tensor, winner: Tensor, shape: ConvShape, fanin: Tensor, theta: Tensor, map: str, need_x: bool
) -> tuple[Tensor | None, Tensor]:
    """Gradients of :func:`layer_fwd` for x, if needed, and theta."""
    x, grad_out, theta, fanin = as_rows(x), as_rows(grad_out), theta.contiguous(), fanin.contiguous()
    (trees, leaves), batch, pixels = fanin.shape, x.shape[1], shape.out_height * shape.out_width
    if grad_out.numel() == 0:
        return (torch.zeros_like(x) if need_x else None), torch.zeros_like(theta)
    table = table_fwd(theta, map, shape.arity) if map != "table" else theta
    block, samples = blocks(pixels, batch, TILE)
    parts = max(1, min(triton.cdiv(pixels, block), PARTS_PROGRAMS // trees))
    part = triton.cdiv(triton.cdiv(pixels, parts), block) * block
    parts = triton.cdiv(pixels, part)
    partial = x.new_empty(parts, *table.shape, dtype=torch.float32)
    grad_leaf = x.new_empty((trees * leaves * pixels, batch) if need_x else (1, 1), dtype=torch.float32)
    arrays = grad_out, grad_out.stride(0), x, x.stride(0), fanin, table, winner, partial, grad_leaf
    kernels.conv_bwd_kernel[(trees, parts)](
        *arrays, trees, pixels, batch, part, *geometry(shape), need_x, *_tree(shape), block, samples, num_warps=WARPS
    )
    grad_theta = torch.empty_like(theta)
    gates = len(theta)
    gate_block = max_gates(map, shape.arity)
    kernels.table_bwd_kernel[(triton.cdiv(gates, gate_block),)](
        partial, theta, grad_theta, gates, parts, map, shape.arity, gate_block, num_warps=WARPS
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


def geometry(shape: ConvShape) -> tuple[int, ...]:
    """What kernels are compiled for besides the tree: OUT_WIDTH, HEIGHT, WIDTH, KERNEL, STRIDE, PADDING, POOL."""
    return shape.out_width, shape.height, shape.width, shape.kernel, shape.stride, shape.padding, shape.pool


def _tree(shape: ConvShape) -> tuple[int, int, int]:
    return shape.arity, shape.depth, shape.tree_gates
