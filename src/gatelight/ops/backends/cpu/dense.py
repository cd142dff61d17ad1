"""The native kernels of dense layers on torch tensors: one layer of gates, or a chain of layers in one call.

An input or an out-gradient may also be the transposed view of a contiguous [batch, features] array: the kernels read
both directly, anything else is copied first. :mod:`~gatelight.ops.backends.cpu.operands` checks what kernels read.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gatelight import native
from gatelight.names import check_name
from gatelight.ops.backends.base import Maps, Needs, Tensors
from gatelight.ops.backends.cpu import memory as store
from gatelight.ops.backends.cpu.library import call, get_threads, library
from gatelight.ops.backends.cpu.operands import as_matrix, check_saved, dense_layers

#: What forward leaves for backward: the activations of a few layers at most, every hidden activation, or the same in
#: bfloat16.
MODES = {"recompute": 0, "keep": 1, "keep-bf16": 2}

#: The kernels' layout, for :func:`saved_bytes`: samples of a tile, rows after a layer's, floats to which
#: coefficients are padded, and for ``recompute`` the layers of a segment and the activations that are kept.
_TILE, _SPARE_ROWS, _PADDING, _SEGMENT, _SNAPSHOTS = 16, 5, 16, 8, 3


def lut_fwd(x: Tensor, fanin: Tensor, table: Tensor) -> Tensor:
    """Outputs [gates, batch] of one layer of gates on x [features, batch]."""
    return dense_chain_fwd(x, [fanin], [table], ["table"], save=False)[0]


def lut_bwd(grad_out: Tensor, x: Tensor, fanin: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients for x [features, batch] and table [gates, 2**arity] of one layer."""
    grad_x, [grad_table] = dense_chain_bwd(grad_out, x, [], [fanin], [table], ["table"], needs=[True])
    assert grad_x is not None
    return grad_x, grad_table


def dense_chain_fwd(
    x: Tensor,
    fanins: Tensors,
    thetas: Tensors,
    maps: Maps,
    memory: str = "keep",
    save: bool = True,
    by_shape: bool = False,
) -> tuple[Tensor, list[Tensor]]:
    """A chain of dense layers on x [features, batch].

    Args:
        x: Inputs, [features, batch], float32.
        fanins: For each layer int32 [gates, arity], contiguous, indices into the layer before.
        thetas: For each layer float32 [gates, parameters], contiguous.
        maps: For each layer a name in :data:`~gatelight.ops.NATIVE_MAPS`.
        memory: A name in :data:`MODES`.
        save: False leaves nothing for backward: for inference.
        by_shape: Save :func:`saved_bytes`, which may be more than the kernels need for these connections.

    Returns:
        Outputs of the last layer [gates, batch], and for :func:`dense_chain_bwd` one array of saved bytes.
    """
    mode = MODES[check_name("memory mode", memory, MODES)] if save else MODES["recompute"]
    rows, matrix = as_matrix("x", x)
    layers = dense_layers(rows.shape[0], fanins, thetas, maps)
    batch = rows.shape[1]
    out = store.empty(fanins[-1].shape[0], batch)
    saved = []
    if save:
        size = library().gl_save_bytes(layers, len(layers), batch, mode)
        bound = saved_bytes(rows, fanins, thetas, memory) if by_shape else None
        saved = [store.acquire(size) if bound is None else store.promised(bound, size)]
    address = saved[0].data_ptr() or None if saved else None
    call("gl_stack_fwd", layers, len(layers), batch, mode, matrix, native.Matrix(out.data_ptr(), batch, 0), address)
    return out, saved


def dense_saved(x: Tensor, fanins: Tensors, thetas: Tensors, memory: str) -> list[Tensor]:
    """An empty tensor of the size that :func:`dense_chain_fwd` saves by shape."""
    return [x.new_empty(saved_bytes(x, fanins, thetas, memory), dtype=torch.uint8)]


def saved_bytes(x: Tensor, fanins: Tensors, thetas: Tensors, memory: str) -> int:
    """Bytes that forward saves at most, by the shapes alone: clusters in the connections make it less.

    >>> x, fanin, theta = torch.rand(8, 100), torch.zeros(50, 2, dtype=torch.int32), torch.rand(50, 4)
    >>> saved_bytes(x, [fanin, fanin], [theta, theta], "keep") >= 4 * (2 * 50 * 4 + 50 * 100)
    True
    """
    batch = (x.shape[1] + _TILE - 1) // _TILE * _TILE
    widths = [x.shape[0], *[fanin.shape[0] for fanin in fanins]]
    coefficients = [theta.numel() + _PADDING for theta in thetas]
    if memory == "recompute":
        segment = max(coefficients) * min(len(thetas), _SEGMENT)
        return 4 * (segment + _SNAPSHOTS * batch * (max(widths) + _SPARE_ROWS))
    values = batch * sum(width + _SPARE_ROWS for width in widths[:-1])
    return 4 * sum(coefficients) + (2 if memory == "keep-bf16" else 4) * values


def dense_chain_bwd(
    grad_out: Tensor,
    x: Tensor,
    saved: Tensors,
    fanins: Tensors,
    thetas: Tensors,
    maps: Maps,
    memory: str = "keep",
    needs: Needs = (False,),
) -> tuple[Tensor | None, list[Tensor]]:
    """Gradients of :func:`dense_chain_fwd` for x [features, batch] (if ``needs[0]``) and for each theta.

    All thetas get one: the kernels compute every layer's gradient anyway, and leaving one out saves nothing.
    With an empty ``saved`` the kernels run forward again.
    """
    mode = MODES[check_name("memory mode", memory, MODES) if saved else "recompute"]
    x_rows, x_matrix = as_matrix("x", x)
    out_rows, out_matrix = as_matrix("grad_out", grad_out)
    features, batch = x_rows.shape
    grads = [store.empty(*theta.shape) for theta in thetas]
    layers = dense_layers(features, fanins, thetas, maps, grads)
    if out_rows.shape != (fanins[-1].shape[0], batch):
        raise ValueError(f"grad_out must be {(fanins[-1].shape[0], batch)}, got {tuple(out_rows.shape)}")
    size = library().gl_save_bytes(layers, len(layers), batch, mode) if saved else 0
    if size:
        check_saved(saved, size)
    grad_x = store.empty(features, batch) if needs[0] else None
    x_gradient = native.Matrix(None if grad_x is None else grad_x.data_ptr(), batch, 0)
    address = saved[0].data_ptr() if size else None
    call("gl_stack_bwd", layers, len(layers), batch, mode, x_matrix, out_matrix, x_gradient, address)
    return grad_x, grads


def work_bytes(x: Tensor, fanins: Tensors, thetas: Tensors, maps: Maps, memory: str) -> int:
    """Bytes :func:`dense_chain_bwd` takes besides its results and ``saved``, with the current number of threads."""
    # Only whether gradients are wanted matters here.
    layers = dense_layers(x.shape[0], fanins, thetas, maps, grads=thetas)
    library().gl_set_threads(get_threads())
    return int(library().gl_work_bytes(layers, len(layers), x.shape[1], MODES[memory]))
