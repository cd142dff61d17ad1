"""The native kernels of convolutional layers on torch tensors, a chain of layers in one call."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gatelight import native
from gatelight.ops.backends.base import Maps, Needs, Tensors
from gatelight.ops.backends.cpu import memory as store
from gatelight.ops.backends.cpu.library import call, library
from gatelight.ops.backends.cpu.operands import as_matrix, check_saved, conv_layers
from gatelight.ops.convshape import ConvShape

#: The kernels' layout, for :func:`conv_saved_bytes`: samples of a tile, and floats to which arrays are padded.
_TILE, _PADDING = 16, 16


def supports_shape(shape: ConvShape) -> bool:
    """Whether there is a kernel for trees and pooling of this shape."""
    return bool(library().gl_conv_supported(shape.arity, shape.depth, shape.pool))


def conv_chain_fwd(
    x: Tensor,
    shapes: Sequence[ConvShape],
    fanins: Tensors,
    thetas: Tensors,
    maps: Maps,
    save: bool = True,
    by_shape: bool = False,
) -> tuple[Tensor, list[Tensor]]:
    """A chain of convolutional layers on x [channels * height * width, batch].

    Args:
        x: Inputs, float32.
        shapes: The geometry of each layer.
        fanins: For each layer int32 [trees, leaves], contiguous.
        thetas: For each layer float32 [trees * gates of a tree, parameters], contiguous.
        maps: For each layer a name in :data:`~gatelight.ops.NATIVE_MAPS`.
        save: Whether to save what :func:`conv_chain_bwd` needs.
        by_shape: Save :func:`conv_saved_bytes`, a little more than the kernels need.

    Returns:
        Outputs of the last layer [trees * pooled pixels, batch], and one array of saved bytes.
    """
    rows, matrix = as_matrix("x", x)
    layers = conv_layers(rows.shape[0], shapes, fanins, thetas, maps)
    batch = rows.shape[1]
    out = store.empty(_out_features(shapes, fanins), batch)
    saved = []
    if save:
        size = library().gl_conv_save_bytes(layers, len(layers), batch)
        bound = conv_saved_bytes(rows, shapes, fanins, thetas) if by_shape else None
        saved = [store.acquire(size) if bound is None else store.promised(bound, size)]
    arguments = matrix, native.Matrix(out.data_ptr(), batch, 0), saved[0].data_ptr() if saved else None
    call("gl_conv_fwd", layers, len(layers), batch, *arguments)
    return out, saved


def conv_saved(x: Tensor, shapes: Sequence[ConvShape], fanins: Tensors, thetas: Tensors) -> list[Tensor]:
    """An empty tensor of the size that :func:`conv_chain_fwd` saves by shape."""
    return [x.new_empty(conv_saved_bytes(x, shapes, fanins, thetas), dtype=torch.uint8)]


def conv_saved_bytes(x: Tensor, shapes: Sequence[ConvShape], fanins: Tensors, thetas: Tensors) -> int:
    """Bytes that forward saves at most, by the shapes alone.

    Coefficients; then for each tile the planes of hidden layers, each with a row of zeros, and a word for each pooled
    output that says which position won.
    """
    tiles = (x.shape[1] + _TILE - 1) // _TILE
    coefficients = sum(theta.numel() + _PADDING for theta in thetas)
    planes = sum(shape.channels * (shape.height * shape.width + 1) for shape in shapes[1:])
    winners = sum(
        fanin.shape[0] * shape.out_height * shape.out_width for fanin, shape in zip(fanins, shapes, strict=True)
    )
    return 4 * (coefficients + tiles * (planes * _TILE + winners + _PADDING))


def conv_chain_bwd(
    grad_out: Tensor,
    x: Tensor,
    saved: Tensors,
    shapes: Sequence[ConvShape],
    fanins: Tensors,
    thetas: Tensors,
    maps: Maps,
    needs: Needs = (False,),
) -> tuple[Tensor | None, list[Tensor]]:
    """Gradients of :func:`conv_chain_fwd` for x (if ``needs[0]``) and for each theta.

    With an empty ``saved`` forward runs again.
    """
    if not saved:
        saved = conv_chain_fwd(x, shapes, fanins, thetas, maps)[1]
    x_rows, x_matrix = as_matrix("x", x)
    out_rows, out_matrix = as_matrix("grad_out", grad_out)
    features, batch = x_rows.shape
    grads = [store.empty(*theta.shape) for theta in thetas]
    layers = conv_layers(features, shapes, fanins, thetas, maps, grads)
    expected = (_out_features(shapes, fanins), batch)
    if out_rows.shape != expected:
        raise ValueError(f"grad_out must be {expected}, got {tuple(out_rows.shape)}")
    size = library().gl_conv_save_bytes(layers, len(layers), batch)
    check_saved(saved, size)
    grad_x = store.empty(features, batch) if needs[0] else None
    x_gradient = native.Matrix(None if grad_x is None else grad_x.data_ptr(), batch, 0)
    call("gl_conv_bwd", layers, len(layers), batch, x_matrix, out_matrix, x_gradient, saved[0].data_ptr())
    return grad_x, grads


def _out_features(shapes: Sequence[ConvShape], fanins: Tensors) -> int:
    return fanins[-1].shape[0] * shapes[-1].out_height * shapes[-1].out_width
