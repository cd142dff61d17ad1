"""Tensors as the native library reads them: checked, and described by pointers and sizes.

Nothing reaches a kernel unchecked: shapes, dtypes, memory, and indices in ``fanin`` (once for each state of a tensor).
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Sequence

import torch
from torch import Tensor

from gatelight import native
from gatelight.ops.checks import check_lengths
from gatelight.ops.connections import check_fanin, check_tensors
from gatelight.ops.convshape import ConvShape
from gatelight.ops.maps import NATIVE_MAPS, check_theta

#: ``native.Layer``.
_LAYER = struct.Struct("@qqiiPPP")

#: Alignment of memory from the library's store; the kernels rely on it.
_ALIGNMENT = 64


def as_matrix(name: str, x: Tensor) -> tuple[Tensor, native.Matrix]:
    """A tensor [rows, batch] as the kernels read it, and what keeps its memory alive."""
    if not isinstance(x, Tensor):
        check_tensors(**{name: x})
    if x.ndim != 2 or x.dtype != torch.float32 or not x.is_cpu:
        raise ValueError(
            f"{name} must be float32 [rows, batch] on the CPU, got {x.dtype} {tuple(x.shape)} on {x.device}"
        )
    rows, batch = x.shape
    if batch <= 1 or x.stride(1) == 1:
        if rows > 1 and x.stride(0) < 1 and batch:
            x = x.contiguous()
        return x, native.Matrix(x.data_ptr(), x.stride(0), 0)
    if rows <= 1 or x.stride(0) == 1:
        return x, native.Matrix(x.data_ptr(), x.stride(1), 1)
    x = x.contiguous()
    return x, native.Matrix(x.data_ptr(), x.stride(0), 0)


def dense_layers(
    features: int,
    fanins: Sequence[Tensor],
    thetas: Sequence[Tensor],
    maps: Sequence[str],
    grads: Sequence[Tensor | None] | None = None,
) -> ctypes.Array[native.Layer]:
    """A chain of dense layers on ``features`` inputs, for the kernels; ``grads`` is where gradients for theta go."""
    check_lengths(fanins=fanins, thetas=thetas, maps=maps)
    # Packing is several times as fast as making one structure after the other, which matters at batch 1.
    memory = bytearray(_LAYER.size * len(fanins))
    for i, (fanin, theta, map) in enumerate(zip(fanins, thetas, maps, strict=True)):
        check_array("fanin", fanin, torch.int32, 2)
        gates, arity = fanin.shape
        check_array("theta", theta, torch.float32, 2)
        if check_theta(theta, map, arity) != gates:
            raise ValueError(f"theta must have {gates} rows like fanin, got {tuple(theta.shape)}")
        check_fanin(fanin, features)
        grad = None if grads is None else grads[i]
        pointers = fanin.data_ptr(), theta.data_ptr(), 0 if grad is None else grad.data_ptr()
        _LAYER.pack_into(memory, i * _LAYER.size, features, gates, arity, NATIVE_MAPS[map].number, *pointers)
        features = gates
    return (native.Layer * len(fanins)).from_buffer(memory)


def conv_layers(
    features: int,
    shapes: Sequence[ConvShape],
    fanins: Sequence[Tensor],
    thetas: Sequence[Tensor],
    maps: Sequence[str],
    grads: Sequence[Tensor] | None = None,
) -> ctypes.Array[native.Conv]:
    """A chain of convolutional layers on ``features`` inputs, for the kernels."""
    check_lengths(shapes=shapes, fanins=fanins, thetas=thetas, maps=maps)
    layers = (native.Conv * len(shapes))()
    image = (shapes[0].channels, shapes[0].height, shapes[0].width)
    if features != math.prod(image):
        raise ValueError(f"x must have {math.prod(image)} rows for images of {image}, got {features}")
    for i, (shape, fanin, theta, map) in enumerate(zip(shapes, fanins, thetas, maps, strict=True)):
        if (shape.channels, shape.height, shape.width) != image:
            raise ValueError(f"layer {i} takes images of {(shape.channels, shape.height, shape.width)}, gets {image}")
        check_shape("fanin", fanin, torch.int32, (fanin.shape[0], shape.leaves))
        check_array("theta", theta, torch.float32, 2)
        if check_theta(theta, map, shape.arity) != fanin.shape[0] * shape.tree_gates:
            raise ValueError(f"theta must have {fanin.shape[0] * shape.tree_gates} rows, got {tuple(theta.shape)}")
        check_fanin(fanin, shape.window_inputs)
        layers[i] = native.Conv(
            *image, shape.kernel, shape.padding, shape.stride, shape.pool,
            fanin.shape[0], shape.depth, shape.arity, NATIVE_MAPS[map].number,
            fanin.data_ptr(), theta.data_ptr(), None if grads is None else grads[i].data_ptr(),
        )  # fmt: skip
        image = (fanin.shape[0], shape.out_height, shape.out_width)
    return layers


def check_array(name: str, tensor: Tensor, dtype: torch.dtype, ndim: int) -> None:
    """Raise a ValueError unless a tensor is contiguous on the CPU, of this dtype and number of dimensions."""
    if not isinstance(tensor, Tensor):
        check_tensors(**{name: tensor})
    if tensor.dtype != dtype or tensor.ndim != ndim or not tensor.is_cpu or not tensor.is_contiguous():
        raise ValueError(
            f"{name} must be a contiguous {dtype} tensor of {ndim} dimensions on the CPU, "
            f"got {tensor.dtype} {tuple(tensor.shape)} on {tensor.device}"
        )


def check_shape(name: str, tensor: Tensor, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    """Raise a ValueError unless a tensor is contiguous on the CPU, of this dtype and shape."""
    check_array(name, tensor, dtype, len(shape))
    if tensor.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {tuple(tensor.shape)}")


def check_saved(saved: Sequence[Tensor], size: int) -> None:
    """Raise a ValueError unless these are the bytes that forward saved, in one array."""
    if len(saved) != 1 or saved[0].numel() < size:
        raise ValueError(f"saved must hold {size} bytes, got {[t.numel() for t in saved]}")
    check_array("saved", saved[0], torch.uint8, 1)
    if saved[0].data_ptr() % _ALIGNMENT:
        raise ValueError(f"saved must start at a multiple of {_ALIGNMENT} bytes, as it does when forward returns it")
