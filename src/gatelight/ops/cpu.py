"""The native CPU kernels on torch tensors: one layer of gates, or a chain of layers in one call.

Arrays are feature-major, [features, batch] and [gates, batch]. An input or an out-gradient may also be the transposed
view of a contiguous [batch, features] array: the kernels read both as they are, anything else is copied first.

:mod:`gatelight.ops.operands` checks and describes what reaches a kernel.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Sequence

import torch
from torch import Tensor

from gatelight import native
from gatelight.names import check_name
from gatelight.ops.convshape import ConvShape
from gatelight.ops.operands import (
    KINDS,
    as_matrix,
    check_saved,
    check_shape,
    check_theta,
    conv_layers,
    dense_layers,
)

#: What forward leaves for backward: the activations of a few layers at most, every hidden activation, or the same in
#: bfloat16.
MODES = {"recompute": 0, "keep": 1, "keep-bf16": 2}

#: Bytes from which memory comes from the library's store: the system's allocator returns large blocks to the system,
#: and every step would pay for fresh pages.
_LARGE = 1 << 20

_threads: int | None = None


def is_available() -> bool:
    """Whether the native library is there; :func:`gatelight.native.why_not` says why it is not."""
    return native.load() is not None


def set_threads(threads: int | None) -> None:
    """Let the kernels use this many threads; None, the default, means as many as torch uses."""
    global _threads
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}")
    _threads = threads


def get_threads() -> int:
    """How many threads the next call may use."""
    return torch.get_num_threads() if _threads is None else _threads


def simd() -> str:
    """The SIMD path in use: ``avx512``, ``avx2`` or ``base``."""
    return str(_library().gl_simd().decode())


def available_simd() -> list[str]:
    """The SIMD paths this machine can run, best first."""
    return str(_library().gl_simd_available().decode()).split()


def select_simd(name: str) -> None:
    """Use another SIMD path from now on (the environment variable ``GATELIGHT_SIMD`` chooses the first)."""
    check_name("SIMD path", name, available_simd())
    _library().gl_simd_select(name.encode())


def table_fwd(theta: Tensor, kind: str, arity: int) -> Tensor:
    """Tables [gates, 2**arity] of parameters [gates, parameters]."""
    gates = check_theta(theta, kind, arity)
    table = theta.new_empty(gates, 1 << arity)
    if gates:
        _call("gl_table_fwd", KINDS[kind], arity, gates, theta.data_ptr(), table.data_ptr())
    return table


def table_bwd(theta: Tensor, grad_table: Tensor, kind: str, arity: int) -> Tensor:
    """Gradients for theta, given those for the tables."""
    gates = check_theta(theta, kind, arity)
    check_shape("grad_table", grad_table, torch.float32, (gates, 1 << arity))
    grad = torch.empty_like(theta)
    if gates:
        pointers = theta.data_ptr(), grad_table.data_ptr(), grad.data_ptr()
        _call("gl_table_bwd", KINDS[kind], arity, gates, *pointers)
    return grad


def lut_fwd(x: Tensor, fanin: Tensor, table: Tensor) -> Tensor:
    """Outputs [gates, batch] of one layer of gates on x [features, batch]."""
    return stack_fwd(x, [fanin], [table], ["table"], "recompute", save=False)[0]


def lut_bwd(
    grad_out: Tensor, x: Tensor, fanin: Tensor, table: Tensor, need_x: bool = True, need_table: bool = True
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients for x [features, batch] and table [gates, 2**arity] of one layer, each only if needed."""
    grads = [torch.empty_like(table) if need_table else None]
    grad_x = _backward(grad_out, x, None, [fanin], [table], ["table"], "recompute", need_x, grads)
    return grad_x, grads[0]


def stack_fwd(
    x: Tensor,
    fanins: Sequence[Tensor],
    thetas: Sequence[Tensor],
    kinds: Sequence[str],
    mode: str = "keep",
    *,
    save: bool = True,
) -> tuple[Tensor, Tensor]:
    """A chain of dense layers on x [features, batch].

    Args:
        x: Inputs, [features, batch], float32.
        fanins: For each layer int32 [gates, arity], contiguous, indices into the layer before.
        thetas: For each layer float32 [gates, parameters], contiguous.
        kinds: For each layer a name in :data:`KINDS`.
        mode: A name in :data:`MODES`.
        save: False leaves nothing for backward, which only ``recompute`` can do: for inference.

    Returns:
        Outputs of the last layer [gates, batch], and what :func:`stack_bwd` wants as ``saved`` (bytes).
    """
    if not save and mode != "recompute":
        raise ValueError(f"save=False is for memory mode 'recompute', got {mode!r}")
    check_name("memory mode", mode, MODES)
    rows, matrix = as_matrix("x", x)
    layers = dense_layers(rows.shape[0], fanins, thetas, kinds)
    batch = rows.shape[1]
    out = empty(fanins[-1].shape[0], batch)
    library = _library()
    saved = _bytes(library.gl_save_bytes(layers, len(layers), batch, MODES[mode]) if save else 0)
    arguments = matrix, native.Matrix(out.data_ptr(), batch, 0), saved.data_ptr() or None
    _call("gl_stack_fwd", layers, len(layers), batch, MODES[mode], *arguments)
    return out, saved


def stack_bwd(
    grad_out: Tensor,
    x: Tensor,
    saved: Tensor,
    fanins: Sequence[Tensor],
    thetas: Sequence[Tensor],
    kinds: Sequence[str],
    mode: str = "keep",
    need_x: bool = False,
) -> tuple[Tensor | None, list[Tensor]]:
    """Gradients of :func:`stack_fwd` for x [features, batch] (if needed) and for each theta."""
    grads = [empty(*theta.shape) for theta in thetas]
    grad_x = _backward(grad_out, x, saved, fanins, thetas, kinds, mode, need_x, grads)
    return grad_x, grads


def conv_supported(shape: ConvShape) -> bool:
    """Whether there is a kernel for trees and pooling of this shape."""
    return bool(_library().gl_conv_supported(shape.arity, shape.depth, shape.pool))


def conv_fwd(
    x: Tensor,
    shapes: Sequence[ConvShape],
    fanins: Sequence[Tensor],
    thetas: Sequence[Tensor],
    kinds: Sequence[str],
    *,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    """A chain of convolutional layers on x [channels * height * width, batch].

    Args:
        x: Inputs, float32.
        shapes: The geometry of each layer.
        fanins: For each layer int32 [trees, leaves], contiguous.
        thetas: For each layer float32 [trees * gates of a tree, parameters], contiguous.
        kinds: For each layer a name in :data:`KINDS`.
        keep: Whether to keep what :func:`conv_bwd` wants.

    Returns:
        Outputs of the last layer [trees * pooled pixels, batch], and the kept bytes.
    """
    rows, matrix = as_matrix("x", x)
    layers = conv_layers(rows.shape[0], shapes, fanins, thetas, kinds)
    batch = rows.shape[1]
    out = empty(fanins[-1].shape[0] * shapes[-1].out_height * shapes[-1].out_width, batch)
    saved = _bytes(_library().gl_conv_save_bytes(layers, len(layers), batch) if keep else 0)
    arguments = matrix, native.Matrix(out.data_ptr(), batch, 0), saved.data_ptr() if keep else None
    _call("gl_conv_fwd", layers, len(layers), batch, *arguments)
    return out, saved


def conv_bwd(
    grad_out: Tensor,
    x: Tensor,
    saved: Tensor,
    shapes: Sequence[ConvShape],
    fanins: Sequence[Tensor],
    thetas: Sequence[Tensor],
    kinds: Sequence[str],
    need_x: bool = False,
) -> tuple[Tensor | None, list[Tensor]]:
    """Gradients of :func:`conv_fwd` for x (if needed) and for each theta."""
    x_rows, x_matrix = as_matrix("x", x)
    out_rows, out_matrix = as_matrix("grad_out", grad_out)
    features, batch = x_rows.shape
    grads = [empty(*theta.shape) for theta in thetas]
    layers = conv_layers(features, shapes, fanins, thetas, kinds, grads)
    expected = (fanins[-1].shape[0] * shapes[-1].out_height * shapes[-1].out_width, batch)
    if out_rows.shape != expected:
        raise ValueError(f"grad_out must be {expected}, got {tuple(out_rows.shape)}")
    size = _library().gl_conv_save_bytes(layers, len(layers), batch)
    check_saved(saved, size)
    grad_x = empty(features, batch) if need_x else None
    x_gradient = native.Matrix(None if grad_x is None else grad_x.data_ptr(), batch, 0)
    _call("gl_conv_bwd", layers, len(layers), batch, x_matrix, out_matrix, x_gradient, saved.data_ptr())
    return grad_x, grads


def work_bytes(x: Tensor, fanins: Sequence[Tensor], thetas: Sequence[Tensor], kinds: Sequence[str], mode: str) -> int:
    """Bytes :func:`stack_bwd` takes besides its results and ``saved``, with the current number of threads."""
    layers = dense_layers(
        x.shape[0], fanins, thetas, kinds, grads=thetas
    )  # of the gradients only their presence counts
    _library().gl_set_threads(get_threads())
    return int(_library().gl_work_bytes(layers, len(layers), x.shape[1], MODES[mode]))


def _backward(
    grad_out: Tensor,
    x: Tensor,
    saved: Tensor | None,
    fanins: Sequence[Tensor],
    thetas: Sequence[Tensor],
    kinds: Sequence[str],
    mode: str,
    need_x: bool,
    grads: Sequence[Tensor | None],
) -> Tensor | None:
    check_name("memory mode", mode, MODES)
    x_rows, x_matrix = as_matrix("x", x)
    out_rows, out_matrix = as_matrix("grad_out", grad_out)
    features, batch = x_rows.shape
    layers = dense_layers(features, fanins, thetas, kinds, grads)
    if out_rows.shape != (fanins[-1].shape[0], batch):
        raise ValueError(f"grad_out must be {(fanins[-1].shape[0], batch)}, got {tuple(out_rows.shape)}")
    library = _library()
    size = library.gl_save_bytes(layers, len(layers), batch, MODES[mode])
    if size and (saved is not None or mode != "recompute"):
        check_saved(saved, size)
    grad_x = empty(features, batch) if need_x else None
    x_gradient = native.Matrix(None if grad_x is None else grad_x.data_ptr(), batch, 0)
    save = saved.data_ptr() if saved is not None and size else None
    arguments = x_matrix, out_matrix, x_gradient, save
    _call("gl_stack_bwd", layers, len(layers), batch, MODES[mode], *arguments)
    return grad_x


def _library() -> ctypes.CDLL:
    library = native.load()
    if library is None:
        raise RuntimeError(f"the cpu kernels are missing: {native.why_not()}")
    return library


def _call(name: str, *arguments: object) -> None:
    _library().gl_set_threads(get_threads())
    call(name, *arguments)


def call(name: str, *arguments: object) -> None:
    """Call a function of the library and raise what its status says; for those that use one thread."""
    status = getattr(_library(), name)(*arguments)
    if status == 2:
        raise MemoryError(f"{name} ran out of memory")
    if status:
        raise ValueError(f"{name} rejected its arguments (status {status})")


def empty(rows: int, columns: int) -> Tensor:
    """Uninitialised float32 [rows, columns]; large ones from the library's store, see :func:`_bytes`."""
    size = 4 * rows * columns
    if size < _LARGE:
        return torch.empty(rows, columns)
    return _bytes(size).view(torch.float32).view(rows, columns)


def _bytes(size: int) -> Tensor:
    """Uninitialised bytes from the library's store, which takes them back when the tensor is gone."""
    if size < 0:
        raise ValueError("the layers do not fit together, or there is no kernel for one of them")
    if size == 0:
        return torch.empty(0, dtype=torch.uint8)
    library = _library()
    address = library.gl_acquire(size)
    if not address:
        raise MemoryError(f"no memory for {size} bytes of saved activations")
    block = _block_type(size).from_address(address)
    weakref.finalize(block, library.gl_release, address).atexit = False
    return torch.frombuffer(block, dtype=torch.uint8)


@functools.lru_cache(maxsize=64)
def _block_type(size: int) -> type[ctypes.Array[ctypes.c_uint8]]:
    return ctypes.c_uint8 * size
