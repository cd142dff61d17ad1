"""Convolutional logic layers: trees of gates over images, and a chain of such layers as one op.

As for dense layers (:mod:`gatelight.ops.dense`) an ``autograd.Function`` runs in eager mode, and the registered op
``gatelight::conv_chain_fwd`` when torch captures a graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gatelight.ops import backends
from gatelight.ops.backends import reference
from gatelight.ops.chain import check_given, from_op, is_differentiable, split, to_op
from gatelight.ops.checks import as_images, check_images
from gatelight.ops.convshape import ConvShape
from gatelight.ops.dispatch import backend_for
from gatelight.ops.schemas import pack, unpack
from gatelight.ops.transforms import is_differentiated_again, is_symbolic, is_traced


def conv(x: Tensor, fanin: Tensor, table: Tensor, shape: ConvShape) -> Tensor:
    """Evaluate trees of gates over the windows of images, then max-pooling; differentiable in x and table.

    >>> shape = ConvShape(channels=1, height=4, width=4, kernel=2, depth=1)
    >>> one_and = torch.tensor([[0.0, 0.0, 0.0, 1.0]])
    >>> conv(torch.ones(1, 1, 4, 4), torch.tensor([[0, 3]], dtype=torch.int32), one_and, shape).shape
    torch.Size([1, 1, 3, 3])

    Args:
        x: Images, [batch, channels, height, width].
        fanin: Leaves ``(channel * kernel + dy) * kernel + dx``, int32 [trees, leaves].
        table: Tables [trees * gates of a tree, 2**arity], each tree from its root, level by level.
        shape: The geometry.

    Returns:
        [batch, trees, out_height, out_width], feature-major in memory.
    """
    return conv_chain(x, [shape], [fanin], [table], ["table"])


def conv_chain(
    x: Tensor, shapes: Sequence[ConvShape], fanins: Sequence[Tensor], thetas: Sequence[Tensor], maps: Sequence[str]
) -> Tensor:
    """Evaluate a chain of convolutional layers, differentiable in x and in every theta.

    Forward keeps one value for each pooled output; backward recomputes the trees.

    >>> shape = ConvShape(channels=1, height=4, width=4, kernel=2, depth=1, pool=3)
    >>> one_and, fanin = torch.tensor([[0.0, 0.0, 0.0, 1.0]]), torch.tensor([[0, 3]], dtype=torch.int32)
    >>> conv_chain(torch.ones(1, 1, 4, 4), [shape], [fanin], [one_and], ["table"])
    tensor([[[[1.]]]])

    Args:
        x: Images, [batch, channels, height, width]. There are kernels for float32 (on a GPU also bfloat16 and float16)
            and trees of usual sizes; the reference computes everything else.
        shapes: The geometry of each layer.
        fanins: For each layer int32 [trees, leaves].
        thetas: For each layer [trees * gates of a tree, parameters].
        maps: For each layer a name in :data:`gatelight.ops.NATIVE_MAPS`.

    Returns:
        Images of the last layer, [batch, trees, out_height, out_width], feature-major in memory.
    """
    check_given(x, thetas)
    differentiable = is_differentiable(x, thetas)
    if is_symbolic(x, *thetas):  # the op checks its operands when it runs
        rows = x.flatten(1).t()
        out: Tensor = torch.ops.gatelight.conv_chain_fwd(
            rows, pack(shapes), list(fanins), list(thetas), ",".join(maps), differentiable and not is_traced()
        )[0]
        return _as_images(out, shapes[-1], fanins[-1].shape[0])
    check_images(x, shapes, fanins, thetas, maps)
    rows = x.flatten(1).t()
    name = backend_for(x, *thetas, shapes=shapes)
    if name == "reference":  # autograd and torch's transforms can differentiate it
        out = reference.conv_chain(rows, shapes, fanins, thetas, maps)
    elif differentiable:
        out = _ConvChain.apply(rows, name, tuple(shapes), tuple(maps), *fanins, *thetas)  # type: ignore[no-untyped-call]
    else:
        plain = [theta.detach() for theta in thetas]
        out, _ = backends.load(name).conv_chain_fwd(rows, shapes, fanins, plain, maps, save=False)
    return _as_images(out, shapes[-1], fanins[-1].shape[0])


def _as_images(rows: Tensor, shape: ConvShape, trees: int) -> Tensor:
    images: Tensor = rows.unflatten(0, (trees, shape.out_height, shape.out_width)).permute(3, 0, 1, 2)
    return images


class _ConvChain(torch.autograd.Function):
    """The chain on feature-major arrays, in eager mode."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, name: str, shapes: tuple[ConvShape, ...], maps: tuple[str, ...], *operands: Tensor
    ) -> Tensor:
        layers = len(shapes)
        fanins, thetas = operands[:layers], operands[layers:]
        out, saved = backends.load(name).conv_chain_fwd(x, shapes, fanins, thetas, maps, save=True)
        ctx.name, ctx.shapes, ctx.maps = name, shapes, maps
        ctx.save_for_backward(x, *operands, *saved)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        layers = len(ctx.shapes)
        x, fanins, thetas, saved = split(ctx.saved_tensors, layers)
        need_x, *rest = ctx.needs_input_grad
        needs = [need_x, *rest[3 + layers :]]
        # The reference's gradients can be differentiated again.
        name = "reference" if is_differentiated_again(grads[0]) else ctx.name
        operands = grads[0], x, saved, ctx.shapes, fanins, thetas, ctx.maps, needs
        grad_x, grad_thetas = backends.load(name).conv_chain_bwd(*operands)
        return grad_x, None, None, None, *[None] * layers, *grad_thetas


def _conv_chain_fwd(
    x: Tensor, geometry: list[int], fanins: list[Tensor], thetas: list[Tensor], maps: str, save: bool
) -> tuple[Tensor, list[Tensor]]:
    shapes = unpack(geometry)
    check_images(as_images(x, shapes), shapes, fanins, thetas, maps.split(","))
    backend = backends.load(backend_for(x, *thetas, shapes=shapes))
    return backend.conv_chain_fwd(x, shapes, fanins, thetas, maps.split(","), save, by_shape=True)


def _conv_chain_bwd(
    grad_out: Tensor,
    x: Tensor,
    saved: list[Tensor],
    geometry: list[int],
    fanins: list[Tensor],
    thetas: list[Tensor],
    maps: str,
    needs: list[bool],
) -> tuple[Tensor, list[Tensor]]:
    shapes = unpack(geometry)
    check_images(as_images(x, shapes), shapes, fanins, thetas, maps.split(","))
    name = backend_for(x, *thetas, shapes=shapes)
    operands = grad_out, x, saved, shapes, fanins, thetas, maps.split(","), needs
    return to_op(x, thetas, needs, backends.load(name).conv_chain_bwd(*operands))


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, list[Tensor]]) -> None:
    x, ctx.geometry, fanins, thetas, ctx.maps, _ = inputs
    ctx.layers = len(fanins)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, *fanins, *thetas, *output[1])


def _backward(ctx: Any, grad_out: Tensor, _: Any) -> Any:
    x, fanins, thetas, saved = split(ctx.saved_tensors, ctx.layers)
    needs = [ctx.needs_input_grad[0], *ctx.needs_input_grad[3]]
    if is_differentiated_again(grad_out):
        shapes, maps = unpack(ctx.geometry), ctx.maps.split(",")
        grad_x, grad_thetas = reference.conv_chain_bwd(grad_out, x, [], shapes, fanins, thetas, maps, needs)
    else:
        operands = grad_out, x, saved, ctx.geometry, fanins, thetas, ctx.maps, needs
        grad_x, grad_thetas = from_op(needs, *torch.ops.gatelight.conv_chain_bwd(*operands))
    return grad_x, None, [None] * ctx.layers, grad_thetas, None, None


torch.library.impl("gatelight::conv_chain_fwd", "default", _conv_chain_fwd)
torch.library.impl("gatelight::conv_chain_bwd", "default", _conv_chain_bwd)
torch.library.register_autograd("gatelight::conv_chain_fwd", _backward, setup_context=_save)
