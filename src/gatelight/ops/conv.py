"""A chain of convolutional logic layers as one call of the native kernels, or as one node on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gatelight.ops import cpu, reference
from gatelight.ops.backend import gpu_takes, native_takes
from gatelight.ops.connections import check_fanin, check_tensors
from gatelight.ops.convshape import ConvShape
from gatelight.ops.derivatives import chain_gradients
from gatelight.ops.transforms import is_differentiated_again, is_symbolic


def conv(x: Tensor, fanin: Tensor, table: Tensor, shape: ConvShape) -> Tensor:
    """Evaluate trees of gates over the windows of images, then max-pooling; differentiable in x and table.

    >>> shape = ConvShape(channels=1, height=4, width=4, kernel=2, depth=1)
    >>> one_and = torch.tensor([[0.0, 0.0, 0.0, 1.0]])
    >>> conv(torch.ones(1, 1, 4, 4), torch.tensor([[0, 3]], dtype=torch.int32), one_and, shape).shape
    torch.Size([1, 1, 3, 3])

    Args:
        x: Images, [batch, channels, height, width].
        fanin: Leaves ``(channel * kernel + dy) * kernel + dx``, int32 [trees, leaves].
        table: Tables [trees * gates of a tree, 2**arity], a tree from its root on, level by level.
        shape: The geometry.

    Returns:
        [batch, trees, out_height, out_width], feature-major in memory.
    """
    check_images(x, [shape], [fanin], [table])
    if can_chain(x, [table], [shape]):
        return conv_chain(x, [shape], [fanin], [table], ["table"])
    return reference.conv(x, fanin, table, shape)


def can_chain(x: Tensor, thetas: Sequence[Tensor], shapes: Sequence[ConvShape]) -> bool:
    """Whether :func:`conv_chain` takes these operands: their device has kernels for these trees and pooling windows."""
    if is_symbolic(x, *thetas):
        return False
    if gpu_takes(x, *thetas):
        from gatelight.ops.triton import conv as gpu

        return all(gpu.supported(shape) for shape in shapes)
    return native_takes(x, *thetas) and all(cpu.conv_supported(shape) for shape in shapes)


def conv_chain(
    x: Tensor, shapes: Sequence[ConvShape], fanins: Sequence[Tensor], thetas: Sequence[Tensor], kinds: Sequence[str]
) -> Tensor:
    """Evaluate a chain of convolutional layers tile by tile, differentiable in x and in every theta.

    Forward keeps one value for each pooled output; backward evaluates the trees again.

    Args:
        x: Images, [batch, channels, height, width], float32 (on a GPU also bfloat16 or float16).
        shapes: The geometry of each layer.
        fanins: For each layer int32 [trees, leaves].
        thetas: For each layer float32 [trees * gates of a tree, parameters].
        kinds: For each layer a name in :data:`gatelight.ops.operands.KINDS`.
    """
    check_images(x, shapes, fanins, thetas)
    rows = x.flatten(1).t()
    if gpu_takes(x, *thetas):
        from gatelight.ops.triton import conv as gpu

        out = gpu.chain(rows, shapes, fanins, thetas, kinds)
    elif torch.is_grad_enabled() and (x.requires_grad or any(t.requires_grad for t in thetas)):
        out = _Chain.apply(rows, tuple(shapes), tuple(kinds), *fanins, *thetas)  # type: ignore[no-untyped-call]
    else:
        out, _ = cpu.conv_fwd(rows, shapes, fanins, [t.detach() for t in thetas], kinds, keep=False)
    last = shapes[-1]
    images: Tensor = out.view(len(fanins[-1]), last.out_height, last.out_width, x.shape[0]).permute(3, 0, 1, 2)
    return images


def check_images(x: Tensor, shapes: Sequence[ConvShape], fanins: Sequence[Tensor], thetas: Sequence[Tensor]) -> None:
    """Raise a ValueError unless x are images of the first shape, shapes follow on one another and leaves lie inside."""
    if not shapes or not len(shapes) == len(fanins) == len(thetas):
        raise ValueError(
            "shapes, fanins and thetas must have one entry for each layer, "
            f"got {len(shapes)}, {len(fanins)} and {len(thetas)}"
        )
    check_tensors(x=x)
    image = tuple(x.shape[1:])
    for shape, fanin, theta in zip(shapes, fanins, thetas, strict=True):
        check_tensors(fanin=fanin, theta=theta)
        if image != (shape.channels, shape.height, shape.width):
            raise ValueError(f"images of {(shape.channels, shape.height, shape.width)} are expected, got {image}")
        if fanin.ndim != 2 or fanin.shape[1] != shape.leaves or fanin.dtype != torch.int32:
            raise ValueError(f"fanin must be int32 [trees, {shape.leaves}], got {fanin.dtype} {tuple(fanin.shape)}")
        if theta.ndim != 2 or theta.shape[0] != fanin.shape[0] * shape.tree_gates:
            raise ValueError(f"theta must have {fanin.shape[0] * shape.tree_gates} rows, got {tuple(theta.shape)}")
        check_fanin(fanin, shape.window_inputs)
        image = (fanin.shape[0], shape.out_height, shape.out_width)


class _Chain(torch.autograd.Function):
    """Forward and backward of the chain on feature-major arrays."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, shapes: tuple[ConvShape, ...], kinds: tuple[str, ...], *operands: Tensor
    ) -> Tensor:
        fanins, thetas = operands[: len(kinds)], operands[len(kinds) :]
        out, saved = cpu.conv_fwd(x, shapes, fanins, thetas, kinds, keep=True)
        ctx.shapes, ctx.kinds = shapes, kinds
        ctx.save_for_backward(x, saved, *operands)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, saved, *operands = ctx.saved_tensors
        layers = len(ctx.kinds)
        fanins, thetas = operands[:layers], operands[layers:]
        if is_differentiated_again(grads[0]):
            return chain_gradients(ctx, x, fanins, thetas, grads[0])
        need_x = ctx.needs_input_grad[0]
        grad_x, grad_thetas = cpu.conv_bwd(grads[0], x, saved, ctx.shapes, fanins, thetas, ctx.kinds, need_x)
        return grad_x, None, None, *[None] * layers, *grad_thetas
