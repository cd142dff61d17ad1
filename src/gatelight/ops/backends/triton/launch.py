"""The kernels on torch tensors: one dense layer, forward and backward.

Arrays are feature-major, x [features, batch] and out [gates, batch], float32, bfloat16 or float16. Indices in ``fanin``
are trusted here: check them once when they are made.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import torch
import triton
from torch import Tensor

from gatelight.ops.backends.triton.index import readers_of
from gatelight.ops.backends.triton.kernels import dense
from gatelight.ops.maps import NATIVE_MAPS

#: Below this batch the kernels compute tables from theta themselves: reading the parameters costs more than arithmetic,
#: and a table in memory would be read and written once more.
FUSED_BATCH = 32

P = ParamSpec("P")
R = TypeVar("R")

WARPS = 4
#: Samples of a tile: rows of 64 float32 are two cache lines, and 64 columns of a wide layer still fit a GPU's cache.
MAX_SAMPLES = 64
#: Gates times samples of a tile for each arity, so that the values of a thread fit its registers.
TILE_FWD = {1: 512, 2: 512, 3: 512, 4: 512, 5: 256, 6: 128}
TILE_BWD = {1: 512, 2: 512, 3: 256, 4: 256, 5: 128, 6: 128}
TILE_GATHER = 512
#: With fewer programs, a launch leaves multiprocessors idle or with too few loads in flight.
FEW_PROGRAMS = 2048
#: Weights that a program holds if a gate has one for each function, 2**(2**arity) of them.
MAX_WEIGHTS = 1024
#: Gates of a program that computes only tables.
TABLE_GATES = 128


def on_its_device(function: Callable[Concatenate[Tensor, P], R]) -> Callable[Concatenate[Tensor, P], R]:
    """Launch on the GPU of the first argument, which need not be the current one."""

    @functools.wraps(function)
    def guarded(first: Tensor, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if first.device.type == "cpu" or first.device.index == torch.cuda.current_device():
            return function(first, *args, **kwargs)
        with torch.cuda.device(first.device):
            return function(first, *args, **kwargs)

    return guarded


def max_gates(map: str, arity: int) -> int:
    """The most gates of a program: few if each has a softmax over all functions.

    >>> max_gates("op", 2), max_gates("op", 3), max_gates("iwp-sin", 3)
    (64, 4, 128)
    """
    native_map = NATIVE_MAPS[map]
    return min(TABLE_GATES, MAX_WEIGHTS // native_map.parameters(arity)) if native_map.per_function else TABLE_GATES


def blocks(rows: int, batch: int, tile: int) -> tuple[int, int]:
    """The tile's rows and samples, powers of two; narrower if a layer would give too few programs.

    >>> blocks(128_000, 100, 512), blocks(128_000, 1, 512), blocks(100, 100, 512)
    ((8, 64), (128, 1), (2, 64))
    """
    samples = min(MAX_SAMPLES, triton.next_power_of_2(batch))
    block = max(1, tile // samples)
    while block * samples > 32 * WARPS and triton.cdiv(rows, block) < FEW_PROGRAMS:
        block //= 2
    return block, samples


@on_its_device
def table_fwd(theta: Tensor, map: str, arity: int) -> Tensor:
    """Tables [gates, 2**arity] of parameters [gates, parameters]."""
    gates = theta.shape[0]
    table = theta.new_empty(gates, 1 << arity)
    if gates:
        block = max_gates(map, arity)
        grid = (triton.cdiv(gates, block),)
        dense.table_kernel[grid](theta.contiguous(), table, gates, map, arity, block, num_warps=WARPS)
    return table


@on_its_device
def layer_fwd(x: Tensor, fanin: Tensor, theta: Tensor, map: str = "table") -> Tensor:
    """Outputs [gates, batch], in x's dtype, of gates with the tables of theta."""
    x = as_rows(x)
    gates, arity = fanin.shape
    batch = x.shape[1]
    out = x.new_empty(gates, batch)
    if out.numel() == 0:
        return out
    source, source_map = _source(theta, map, arity, batch)
    block, samples = blocks(gates, batch, TILE_FWD[arity])
    block = min(block, max_gates(source_map, arity))
    grid = triton.cdiv(gates, block), triton.cdiv(batch, samples)
    inputs = x, x.stride(0), fanin.contiguous(), source
    dense.lut_fwd_kernel[grid](*inputs, out, gates, batch, source_map, arity, block, samples, num_warps=WARPS)
    return out


@on_its_device
def layer_bwd(
    grad_out: Tensor,
    x: Tensor,
    fanin: Tensor,
    theta: Tensor,
    map: str = "table",
    need_x: bool = True,
    need_theta: bool = True,
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients of :func:`layer_fwd` for x (in grad_out's dtype) and theta, each only if needed."""
    x, grad_out, theta, fanin = as_rows(x), as_rows(grad_out), theta.contiguous(), fanin.contiguous()
    grad_x = x.new_empty(x.shape, dtype=grad_out.dtype) if need_x else None
    grad_theta = torch.empty_like(theta) if need_theta else None
    if grad_out.numel() == 0 or x.numel() == 0:
        return (
            None if grad_x is None else grad_x.zero_(),
            None if grad_theta is None else grad_theta.zero_(),
        )
    if need_x or need_theta:
        backward = _two_inputs_bwd if fanin.shape[1] == 2 else _any_bwd
        backward(grad_out, x, fanin, theta, map, grad_x, grad_theta)
    return grad_x, grad_theta


def _two_inputs_bwd(
    grad_out: Tensor,
    x: Tensor,
    fanin: Tensor,
    theta: Tensor,
    map: str,
    grad_x: Tensor | None,
    grad_theta: Tensor | None,
) -> None:
    (features, batch), gates = x.shape, fanin.shape[0]
    # The parameters' gradient of two-input gates needs no table.
    source, source_map = (theta, "table") if grad_x is None else _source(theta, map, 2, batch)
    block, samples = blocks(gates, batch, TILE_BWD[2])
    block = min(block, max_gates(map, 2))
    gate_blocks = 0 if grad_theta is None else triton.cdiv(gates, block)
    row_blocks = 0 if grad_x is None else triton.cdiv(features, block)
    # If a gradient is not wanted, no program reads its pointers, but some tensor must be passed for them.
    starts, readers = (fanin, fanin) if grad_x is None else readers_of(fanin, features)
    inputs = grad_out, grad_out.stride(0), x, x.stride(0), fanin, source, theta, starts, readers
    outputs = theta if grad_theta is None else grad_theta, x if grad_x is None else grad_x
    sizes = gates, features, batch, gate_blocks
    grid = (gate_blocks + row_blocks,)
    dense.lut2_bwd_kernel[grid](*inputs, *outputs, *sizes, source_map, map, block, samples, num_warps=WARPS)


def _any_bwd(
    grad_out: Tensor,
    x: Tensor,
    fanin: Tensor,
    theta: Tensor,
    map: str,
    grad_x: Tensor | None,
    grad_theta: Tensor | None,
) -> None:
    (features, batch), (gates, arity) = x.shape, fanin.shape
    source, source_map = _source(theta, map, arity, batch)
    handed = x.new_empty((gates * arity, batch) if grad_x is not None else (1, 1), dtype=torch.float32)
    block, samples = blocks(gates, batch, TILE_BWD[arity])
    block = min(block, max_gates(map, arity))
    inputs = grad_out, grad_out.stride(0), x, x.stride(0), fanin, source, theta
    outputs = theta if grad_theta is None else grad_theta, handed
    constants = source_map, map, arity, grad_theta is not None, grad_x is not None, block, samples
    grid = (triton.cdiv(gates, block),)
    dense.lut_bwd_kernel[grid](*inputs, *outputs, gates, batch, *constants, num_warps=WARPS)
    if grad_x is not None:
        starts, readers = readers_of(fanin, features)
        block, samples = blocks(features, batch, TILE_GATHER)
        tiles = triton.cdiv(features, block), triton.cdiv(batch, samples)
        sizes = features, batch, block, samples
        dense.gather_kernel[tiles](handed, starts, readers, grad_x, *sizes, num_warps=WARPS)


def _source(theta: Tensor, map: str, arity: int, batch: int) -> tuple[Tensor, str]:
    """What kernels read tables from: theta for small batches, else tables computed once for all samples."""
    if map == "table" or batch < FUSED_BATCH:
        return theta.contiguous(), map
    return table_fwd(theta, map, arity), "table"


def as_rows(x: Tensor) -> Tensor:
    """An array [rows, batch] with the samples of a row side by side."""
    return x if x.stride(1) == 1 or x.shape[1] <= 1 else x.contiguous()
