"""Layers and chains of layers on the GPU, the functions of :class:`~gatelight.ops.backends.base.Backend`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gatelight.ops.backends.base import Gradients, Maps, Needs, Tensors
from gatelight.ops.backends.triton import conv, launch
from gatelight.ops.backends.triton.conv import supports_shape
from gatelight.ops.checks import check_layers
from gatelight.ops.convshape import ConvShape

__all__ = [
    "conv_chain_bwd",
    "conv_chain_fwd",
    "conv_saved",
    "dense_chain_bwd",
    "dense_chain_fwd",
    "dense_saved",
    "lut_bwd",
    "lut_fwd",
    "supports_shape",
]


def dense_chain_fwd(
    x: Tensor, fanins: Tensors, thetas: Tensors, maps: Maps, memory: str, save: bool = True, by_shape: bool = False
) -> tuple[Tensor, list[Tensor]]:
    """Outputs [gates, batch] of the last layer, on x [features, batch].

    Args:
        x: Inputs in a dtype of :data:`gatelight.ops.dispatch.GPU_STORAGE`, which activations keep.
        fanins: For each layer int32 [gates, arity].
        thetas: For each layer [gates, parameters].
        maps: For each layer a name in :data:`gatelight.ops.NATIVE_MAPS`.
        memory: ``keep`` the input of every layer for backward, ``keep-bf16`` the same rounded to bfloat16, or
            ``recompute``: the input of each run of about sqrt(layers) layers; backward recomputes the others.
        save: Whether to return those inputs, without x itself.
        by_shape: Always true here: the saved sizes follow from shapes.
    """
    check_layers(x, fanins, thetas, maps)
    stretch = _stretch(len(fanins), memory)
    kept = []
    for number, layer in enumerate(zip(fanins, thetas, maps, strict=True)):
        if save and number and number % stretch == 0:
            kept.append(x.bfloat16() if memory == "keep-bf16" else x)
        x = launch.layer_fwd(x, *layer)
    return x, kept


def dense_saved(x: Tensor, fanins: Tensors, thetas: Tensors, memory: str) -> list[Tensor]:
    """Empty tensors of the shapes that :func:`dense_chain_fwd` saves."""
    dtype = torch.bfloat16 if memory == "keep-bf16" else x.dtype
    stretch = _stretch(len(fanins), memory)
    widths = [fanins[number - 1].shape[0] for number in range(stretch, len(fanins), stretch)]
    return [x.new_empty(width, x.shape[1], dtype=dtype) for width in widths]


def dense_chain_bwd(
    grad_out: Tensor, x: Tensor, saved: Tensors, fanins: Tensors, thetas: Tensors, maps: Maps, memory: str, needs: Needs
) -> Gradients:
    """Gradients of :func:`dense_chain_fwd`; inputs of layers that were not kept are recomputed."""
    count, kept = len(fanins), [x, *saved]
    stretch = _stretch(count, memory)
    if len(kept) != len(range(0, count, stretch)):
        kept = [x, *dense_chain_fwd(x, fanins, thetas, maps, memory)[1]]
    layers = list(zip(fanins, thetas, maps, strict=True))
    grad: Tensor | None = grad_out
    grads: list[Tensor | None] = [None] * count
    for first in reversed(range(0, count, stretch)):
        numbers = range(first, min(first + stretch, count))
        inputs = [kept.pop()]
        for number in numbers[:-1]:
            inputs.append(launch.layer_fwd(inputs[-1], *layers[number]))
        for number in reversed(numbers):
            assert grad is not None
            wanted = number > 0 or needs[0], needs[1 + number]
            grad, grads[number] = launch.layer_bwd(grad, inputs.pop(), *layers[number], *wanted)
    return grad, grads


def _stretch(layers: int, memory: str) -> int:
    """Layers of which the first's input is kept: one, unless activations are recomputed."""
    return math.isqrt(layers - 1) + 1 if memory == "recompute" else 1


def lut_fwd(x: Tensor, fanin: Tensor, table: Tensor) -> Tensor:
    """Outputs [gates, batch] of gates with these tables [gates, 2**arity]."""
    return launch.layer_fwd(x, fanin, table)


def lut_bwd(grad_out: Tensor, x: Tensor, fanin: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients for x [features, batch] and table [gates, 2**arity]."""
    grad_x, grad_table = launch.layer_bwd(grad_out, x, fanin, table)
    assert grad_x is not None
    assert grad_table is not None
    return grad_x, grad_table


def conv_chain_fwd(
    x: Tensor,
    shapes: Sequence[ConvShape],
    fanins: Tensors,
    thetas: Tensors,
    maps: Maps,
    save: bool = True,
    by_shape: bool = False,
) -> tuple[Tensor, list[Tensor]]:
    """Outputs of the last layer on x [channels * height * width, batch].

    Saved are the inputs of all layers but the first, then the winners of each layer's pooling.
    """
    inputs, winners = [], []
    for shape, fanin, theta, map in zip(shapes, fanins, thetas, maps, strict=True):
        inputs.append(x)
        x, winner = conv.layer_fwd(x, shape, fanin, theta, map, keep=save)
        winners.append(winner)
    return x, [*inputs[1:], *winners] if save else []


def conv_saved(x: Tensor, shapes: Sequence[ConvShape], fanins: Tensors, thetas: Tensors) -> list[Tensor]:
    """Empty tensors of the shapes that :func:`conv_chain_fwd` saves."""
    batch = x.shape[1]
    outputs = [
        (fanin.shape[0] * shape.out_height * shape.out_width, batch)
        for fanin, shape in zip(fanins, shapes, strict=True)
    ]
    winners = [size if shape.pool > 1 else (1, 1) for size, shape in zip(outputs, shapes, strict=True)]
    return [
        *[x.new_empty(size) for size in outputs[:-1]],
        *[x.new_empty(size, dtype=torch.uint8) for size in winners],
    ]


def conv_chain_bwd(
    grad_out: Tensor,
    x: Tensor,
    saved: Tensors,
    shapes: Sequence[ConvShape],
    fanins: Tensors,
    thetas: Tensors,
    maps: Maps,
    needs: Needs = (False,),
) -> Gradients:
    """Gradients of :func:`conv_chain_fwd` for x, if needed, and for every theta."""
    count = len(fanins)
    if not saved:
        saved = conv_chain_fwd(x, shapes, fanins, thetas, maps)[1]
    inputs, winners = [x, *saved[: count - 1]], saved[count - 1 :]
    grad: Tensor | None = grad_out
    grads: list[Tensor | None] = [None] * count
    for i in reversed(range(count)):
        assert grad is not None
        layer = shapes[i], fanins[i], thetas[i], maps[i]
        grad, grads[i] = conv.layer_bwd(grad, inputs[i], winners[i], *layer, i > 0 or needs[0])
    return grad, grads
