"""The kernels on torch tensors: one dense layer, forward and backward.

Arrays are feature-major, x [features, batch] and out [gates, batch], float32, bfloat16 or float16. Indices in ``fanin``
are trusted here: check them once where they are made.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import torch
import triton
from torch import Tensor

from gatelight.ops.triton.index import readers_of
from gatelight.ops.triton.kernels import dense

#: Below this batch the kernels compute tables from theta themselves: reading the parameters costs more than arithmetic,
#: and a table in memory would be read and written once more.
FUSED_BATCH = 32

P = ParamSpec("P")
R = TypeVar("R")

WARPS = 4
#: Samples of a tile: rows of 64 float32 are two cache lines, and 64 columns of a wide layer still fit a GPU's cache.
MOST_SAMPLES = 64
#: Gates times samples of a tile for each arity, so that what a thread holds fits its registers.
TILE_FWD = {1: 512, 2: 512, 3: 512, 4: 512, 5: 256, 6: 128}
TILE_BWD = {1: 512, 2: 512, 3: 256, 4: 256, 5: 128, 6: 128}
TILE_GATHER = 512
#: Programs below which a launch leaves multiprocessors idle or with too few loads under way.
FEW_PROGRAMS = 2048
#: Weights of OP that a program holds: a gate has 2**(2**arity) of them.
MOST_WEIGHTS = 1024
#: Gates of a program that computes tables alone.
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


def most_gates(kind: str, arity: int) -> int:
    """Gates of a program at most: few where each has a softmax over all functions.

    >>> most_gates("op", 2), most_gates("op", 3), most_gates("iwp-sin", 3)
    (64, 4, 128)
    """
    return min(TABLE_GATES, MOST_WEIGHTS >> (1 << arity)) if kind == "op" else TABLE_GATES


def blocks(rows: int, batch: int, tile: int) -> tuple[int, int]:
    """The tile's rows and samples, powers of two; narrower where a layer would give too few programs.

    >>> blocks(128_000, 100, 512), blocks(128_000, 1, 512), blocks(100, 100, 512)
    ((8, 64), (128, 1), (2, 64))
    """
    samples = min(MOST_SAMPLES, triton.next_power_of_2(batch))
    block = max(1, tile // samples)
    while block * samples > 32 * WARPS and triton.cdiv(rows, block) < FEW_PROGRAMS:
        block //= 2
    return block, samples


@on_its_device
def table_fwd(theta: Tensor, kind: str, arity: int) -> Tensor:
    """Tables [gates, 2**arity] of parameters [gates, parameters]."""
    gates = theta.shape[0]
    table = theta.new_empty(gates, 1 << arity)
    if gates:
        block = most_gates(kind, arity)
        grid = (triton.cdiv(gates, block),)
        dense.table_kernel[grid](theta.contiguous(), table, gates, kind, arity, block, num_warps=WARPS)
    return table


@on_its_device
def layer_fwd(x: Tensor, fanin: Tensor, theta: Tensor, kind: str = "table") -> Tensor:
    """Outputs [gates, batch], in x's dtype, of gates whose tables theta stands for."""
    x = as_rows(x)
    gates, arity = fanin.shape
    batch = x.shape[1]
    out = x.new_empty(gates, batch)
    if out.numel() == 0:
        return out
    source, source_kind = _source(theta, kind, arity, batch)
    block, samples = blocks(gates, batch, TILE_FWD[arity])
    block = min(block, most_gates(source_kind, arity))
    grid = triton.cdiv(gates, block), triton.cdiv(batch, samples)
    inputs = x, x.stride(0), fanin.contiguous(), source
    dense.lut_fwd_kernel[grid](*inputs, out, gates, batch, source_kind, arity, block, samples, num_warps=WARPS)
    return out


@on_its_device
def layer_bwd(
    grad_out: Tensor,
    x: Tensor,
    fanin: Tensor,
    theta: Tensor,
    kind: str = "table",
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
        backward(grad_out, x, fanin, theta, kind, grad_x, grad_theta)
    return grad_x, grad_theta


def lut_fwd(x: Tensor, fanin: Tensor, table: Tensor) -> Tensor:
    """Outputs [gates, batch] of gates with these tables [gates, 2**arity]."""
    return layer_fwd(x, fanin, table)


def lut_bwd(grad_out: Tensor, x: Tensor, fanin: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients for x [features, batch] and table [gates, 2**arity]."""
    grad_x, grad_table = layer_bwd(grad_out, x, fanin, table)
    assert grad_x is not None
    assert grad_table is not None
    return grad_x, grad_table


def _two_inputs_bwd(
    grad_out: Tensor,
    x: Tensor,
    fanin: Tensor,
    theta: Tensor,
    kind: str,
    grad_x: Tensor | None,
    grad_theta: Tensor | None,
) -> None:
    (features, batch), gates = x.shape, fanin.shape[0]
    # The parameters' gradient of two-input gates needs no table.
    source, source_kind = (theta, "table") if grad_x is None else _source(theta, kind, 2, batch)
    block, samples = blocks(gates, batch, TILE_BWD[2])
    block = min(block, most_gates(kind, 2))
    gate_blocks = 0 if grad_theta is None else triton.cdiv(gates, block)
    row_blocks = 0 if grad_x is None else triton.cdiv(features, block)
    # Where a gradient is not wanted no program touches its pointers; some tensor has to stand for them.
    starts, readers = (fanin, fanin) if grad_x is None else readers_of(fanin, features)
    inputs = grad_out, grad_out.stride(0), x, x.stride(0), fanin, source, theta, starts, readers
    outputs = theta if grad_theta is None else grad_theta, x if grad_x is None else grad_x
    sizes = gates, features, batch, gate_blocks
    grid = (gate_blocks + row_blocks,)
    dense.lut2_bwd_kernel[grid](*inputs, *outputs, *sizes, source_kind, kind, block, samples, num_warps=WARPS)


def _any_bwd(
    grad_out: Tensor,
    x: Tensor,
    fanin: Tensor,
    theta: Tensor,
    kind: str,
    grad_x: Tensor | None,
    grad_theta: Tensor | None,
) -> None:
    (features, batch), (gates, arity) = x.shape, fanin.shape
    source, source_kind = _source(theta, kind, arity, batch)
    handed = x.new_empty((gates * arity, batch) if grad_x is not None else (1, 1), dtype=torch.float32)
    block, samples = blocks(gates, batch, TILE_BWD[arity])
    block = min(block, most_gates(kind, arity))
    inputs = grad_out, grad_out.stride(0), x, x.stride(0), fanin, source, theta
    outputs = theta if grad_theta is None else grad_theta, handed
    constants = source_kind, kind, arity, grad_theta is not None, grad_x is not None, block, samples
    grid = (triton.cdiv(gates, block),)
    dense.lut_bwd_kernel[grid](*inputs, *outputs, gates, batch, *constants, num_warps=WARPS)
    if grad_x is not None:
        starts, readers = readers_of(fanin, features)
        block, samples = blocks(features, batch, TILE_GATHER)
        tiles = triton.cdiv(features, block), triton.cdiv(batch, samples)
        sizes = features, batch, block, samples
        dense.gather_kernel[tiles](handed, starts, readers, grad_x, *sizes, num_warps=WARPS)


def _source(theta: Tensor, kind: str, arity: int, batch: int) -> tuple[Tensor, str]:
    """What kernels read tables from: theta for small batches, else tables computed once for all samples."""
    if kind == "table" or batch < FUSED_BATCH:
        return theta.contiguous(), kind
    return table_fwd(theta, kind, arity), "table"


def as_rows(x: Tensor) -> Tensor:
    """An array [rows, batch] with the samples of a row side by side."""
    return x if x.stride(1) == 1 or x.shape[1] <= 1 else x.contiguous()
