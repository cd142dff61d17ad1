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
from gatelight.names import check_name
from gatelight.ops.connections import check_fanin, check_tensors
from gatelight.ops.convshape import ConvShape
from gatelight.parametrize import Parametrization

#: What theta is: the table itself, one of IWP's estimators, or OP's logits.
KINDS = {
    "table": 0,
    "iwp-sin": 1,
    "iwp-sin-st": 2,
    "iwp-sigmoid": 3,
    "iwp-sigmoid-st": 4,
    "iwp-linear-st": 5,
    "op": 6,
}
MAX_ARITY = 6
MAX_OP_ARITY = 3

#: ``native.Layer``.
_LAYER = struct.Struct("@qqiiPPP")

#: Of what the library's store gives out; the kernels rely on it.
_ALIGNMENT = 64


def kind_of(parametrization: Parametrization) -> str | None:
    """The name by which the kernels map a parametrization's theta to tables, or None: its tables are made in torch."""
    name = parametrization.native_map
    return name if name in KINDS else None


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
    kinds: Sequence[str],
    grads: Sequence[Tensor | None] | None = None,
) -> ctypes.Array[native.Layer]:
    """A chain of dense layers on ``features`` inputs, for the kernels; ``grads`` is where gradients for theta go."""
    if not fanins or not len(fanins) == len(thetas) == len(kinds):
        raise ValueError(
            "fanins, thetas and kinds must have one entry for each layer, "
            f"got {len(fanins)}, {len(thetas)} and {len(kinds)}"
        )
    # Packing is several times as fast as making one structure after the other, which counts at batch 1.
    memory = bytearray(_LAYER.size * len(fanins))
    for i, (fanin, theta, kind) in enumerate(zip(fanins, thetas, kinds, strict=True)):
        _check("fanin", fanin, torch.int32, 2)
        gates, arity = fanin.shape
        if check_theta(theta, kind, arity) != gates:
            raise ValueError(f"theta must have {gates} rows as fanin has, got {tuple(theta.shape)}")
        check_fanin(fanin, features)
        grad = None if grads is None else grads[i]
        pointers = fanin.data_ptr(), theta.data_ptr(), 0 if grad is None else grad.data_ptr()
        _LAYER.pack_into(memory, i * _LAYER.size, features, gates, arity, KINDS[kind], *pointers)
        features = gates
    return (native.Layer * len(fanins)).from_buffer(memory)


def conv_layers(
    features: int,
    shapes: Sequence[ConvShape],
    fanins: Sequence[Tensor],
    thetas: Sequence[Tensor],
    kinds: Sequence[str],
    grads: Sequence[Tensor] | None = None,
) -> ctypes.Array[native.Conv]:
    """A chain of convolutional layers on ``features`` inputs, for the kernels."""
    if not shapes or not len(shapes) == len(fanins) == len(thetas) == len(kinds):
        raise ValueError(
            "shapes, fanins, thetas and kinds must have one entry for each layer, "
            f"got {len(shapes)}, {len(fanins)}, {len(thetas)} and {len(kinds)}"
        )
    layers = (native.Conv * len(shapes))()
    image = (shapes[0].channels, shapes[0].height, shapes[0].width)
    if features != math.prod(image):
        raise ValueError(f"x must have {math.prod(image)} rows for images of {image}, got {features}")
    for i, (shape, fanin, theta, kind) in enumerate(zip(shapes, fanins, thetas, kinds, strict=True)):
        if (shape.channels, shape.height, shape.width) != image:
            raise ValueError(f"layer {i} takes images of {(shape.channels, shape.height, shape.width)}, gets {image}")
        check_shape("fanin", fanin, torch.int32, (fanin.shape[0], shape.leaves))
        if check_theta(theta, kind, shape.arity) != fanin.shape[0] * shape.tree_gates:
            raise ValueError(f"theta must have {fanin.shape[0] * shape.tree_gates} rows, got {tuple(theta.shape)}")
        check_fanin(fanin, shape.window_inputs)
        layers[i] = native.Conv(
            *image, shape.kernel, shape.padding, shape.stride, shape.pool,
            fanin.shape[0], shape.depth, shape.arity, KINDS[kind],
            fanin.data_ptr(), theta.data_ptr(), None if grads is None else grads[i].data_ptr(),
        )  # fmt: skip
        image = (fanin.shape[0], shape.out_height, shape.out_width)
    return layers


def check_theta(theta: Tensor, kind: str, arity: int) -> int:
    """The number of gates of parameters [gates, parameters]."""
    if kind not in KINDS:
        check_name("kind", kind, KINDS)
    most = MAX_OP_ARITY if kind == "op" else MAX_ARITY
    if not 1 <= arity <= most:
        raise ValueError(f"the arity of kind {kind!r} must be from 1 to {most}, got {arity}")
    _check("theta", theta, torch.float32, 2)
    gates, columns = theta.shape[0], 1 << (1 << arity if kind == "op" else arity)
    if theta.shape[1] != columns:
        raise ValueError(f"theta must have shape {(gates, columns)}, got {tuple(theta.shape)}")
    return gates


def _check(name: str, tensor: Tensor, dtype: torch.dtype, ndim: int) -> None:
    if not isinstance(tensor, Tensor):
        check_tensors(**{name: tensor})
    if tensor.dtype != dtype or tensor.ndim != ndim or not tensor.is_cpu or not tensor.is_contiguous():
        raise ValueError(
            f"{name} must be a contiguous {dtype} tensor of {ndim} dimensions on the CPU, "
            f"got {tensor.dtype} {tuple(tensor.shape)} on {tensor.device}"
        )


def check_shape(name: str, tensor: Tensor, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    """Raise a ValueError unless a tensor is contiguous on the CPU, of this dtype and shape."""
    _check(name, tensor, dtype, len(shape))
    if tensor.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {tuple(tensor.shape)}")


def check_saved(saved: Tensor | None, size: int) -> None:
    """Raise a ValueError unless these bytes are what forward left."""
    if saved is None or saved.numel() < size:
        raise ValueError(f"saved must hold {size} bytes, got {0 if saved is None else saved.numel()}")
    _check("saved", saved, torch.uint8, 1)
    if saved.data_ptr() % _ALIGNMENT:
        raise ValueError(f"saved must start at a multiple of {_ALIGNMENT} bytes, as what forward returns does")
