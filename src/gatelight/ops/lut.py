"""The one op: evaluate a layer of gates, differentiable in the inputs and in the tables.

``lut_fwd`` and ``lut_bwd`` are registered with ``torch.library`` on feature-major arrays, so that
``torch.compile`` sees one node; :func:`lut` is what people call.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gatelight import truthtable
from gatelight.ops import cpu, reference
from gatelight.ops.backend import gpu_takes, native_takes
from gatelight.ops.connections import check_fanin, check_tensors
from gatelight.ops.transforms import is_differentiated_again, is_symbolic, is_transformed

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def lut(x: Tensor, fanin: Tensor, table: Tensor) -> Tensor:
    """Evaluate gates on relaxed inputs: the multilinear extension of each gate's table.

    For two inputs p, q and the table (t00, t01, t10, t11):
    ``out = (1-p)(1-q) t00 + (1-p) q t01 + p (1-q) t10 + p q t11``.

    >>> x = torch.tensor([[0.5, 1.0]])
    >>> lut(x, torch.tensor([[0, 1]], dtype=torch.int32), torch.tensor([[0.0, 0.0, 0.0, 1.0]]))
    tensor([[0.5000]])

    Args:
        x: Inputs, [batch, features], float32, float64, bfloat16 or float16. Fastest as a transposed view of a
            contiguous [features, batch] array, which is what the result is.
        fanin: The input of each gate in each slot, int32 [gates, arity], values in 0..features-1.
        table: Tables, [gates, 2**arity].

    Returns:
        Outputs [batch, gates] in x's dtype, a transposed view of a contiguous [gates, batch] array.
    """
    if torch.compiler.is_compiling() or not torch._C._is_tracing():  # sizes are tensors there
        check_operands(x, fanin, table)
    if not is_symbolic(x, fanin):
        check_fanin(fanin, x.shape[1])
    if is_transformed(x, table):
        return reference.lut_fwd(x.t(), fanin, table).t()
    out: Tensor = torch.ops.gatelight.lut_fwd(x.t().contiguous(), fanin, table)
    return out.t()


def check_operands(x: Tensor, fanin: Tensor, table: Tensor, *, features_first: bool = False) -> None:
    """Raise a ValueError that names what is wrong with the shapes and dtypes; values are not read."""
    check_tensors(x=x, fanin=fanin, table=table)
    if any(t.layout != torch.strided for t in (x, fanin, table)):
        raise ValueError(f"x, fanin and table must be dense tensors, got {x.layout}, {fanin.layout}, {table.layout}")
    if x.ndim != 2:
        order = "[features, batch]" if features_first else "[batch, features]"
        raise ValueError(f"x must be {order}, got shape {tuple(x.shape)}")
    if fanin.ndim != 2 or table.ndim != 2:
        raise ValueError(
            f"fanin must be [gates, arity] and table [gates, 2**arity], "
            f"got {tuple(fanin.shape)} and {tuple(table.shape)}"
        )
    gates, arity = fanin.shape
    truthtable.check_arity(arity)
    if table.shape != (gates, 1 << arity):
        raise ValueError(
            f"table must be [{gates}, {1 << arity}] for fanin {tuple(fanin.shape)}, got {tuple(table.shape)}"
        )
    if x.dtype not in FLOATS or table.dtype not in FLOATS:
        raise ValueError(f"x and table must be float32, float64, bfloat16 or float16, got {x.dtype} and {table.dtype}")
    if fanin.dtype != torch.int32:
        raise ValueError(f"fanin must be int32, got {fanin.dtype}")
    if not x.device == fanin.device == table.device:
        raise ValueError(f"x, fanin and table must be on one device, got {x.device}, {fanin.device}, {table.device}")


def _lut_fwd_any(x: Tensor, fanin: Tensor, table: Tensor) -> Tensor:
    check_operands(x, fanin, table, features_first=True)
    return reference.lut_fwd(x, fanin, table)


def _lut_bwd_any(grad_out: Tensor, x: Tensor, fanin: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    check_operands(x, fanin, table, features_first=True)
    return reference.lut_bwd(grad_out, x, fanin, table)


def _lut_fwd_gpu(x: Tensor, fanin: Tensor, table: Tensor) -> Tensor:
    check_fanin(fanin, x.shape[0])
    if not gpu_takes(x, table):
        return reference.lut_fwd(x, fanin, table)
    from gatelight.ops.triton import launch

    return launch.lut_fwd(x, fanin, table)


def _lut_bwd_gpu(grad_out: Tensor, x: Tensor, fanin: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    check_fanin(fanin, x.shape[0])
    if not gpu_takes(x, table):
        return reference.lut_bwd(grad_out, x, fanin, table)
    from gatelight.ops.triton import launch

    return launch.lut_bwd(grad_out, x, fanin, table)


def _lut_fwd_cpu(x: Tensor, fanin: Tensor, table: Tensor) -> Tensor:
    check_operands(x, fanin, table, features_first=True)
    check_fanin(fanin, x.shape[0])
    if gpu_takes(x, table):
        return _lut_fwd_gpu(x, fanin, table)
    fwd = cpu.lut_fwd if native_takes(x, table) else reference.lut_fwd
    return fwd(x, fanin, table)


def _lut_bwd_cpu(grad_out: Tensor, x: Tensor, fanin: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    check_operands(x, fanin, table, features_first=True)
    check_fanin(fanin, x.shape[0])
    if gpu_takes(x, table):
        return _lut_bwd_gpu(grad_out, x, fanin, table)
    if not native_takes(x, table):
        return reference.lut_bwd(grad_out, x, fanin, table)
    grad_x, grad_table = cpu.lut_bwd(grad_out, x, fanin, table)
    assert grad_x is not None
    assert grad_table is not None
    return grad_x, grad_table


def _lut_fwd_fake(x: Tensor, fanin: Tensor, table: Tensor) -> Tensor:
    if x.ndim != 2 or fanin.ndim != 2:
        raise ValueError(f"x must be [features, batch] and fanin [gates, arity], got {x.shape} and {fanin.shape}")
    return x.new_empty(fanin.shape[0], x.shape[1])


def _lut_bwd_fake(grad_out: Tensor, x: Tensor, fanin: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), table.new_empty(table.shape)


def _save(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor, None, Tensor]:
    bwd = reference.lut_bwd if is_differentiated_again(grad_out) else torch.ops.gatelight.lut_bwd
    grad_x, grad_table = bwd(grad_out.contiguous(), *ctx.saved_tensors)
    return grad_x, None, grad_table


torch.library.define("gatelight::lut_fwd", "(Tensor x, Tensor fanin, Tensor table) -> Tensor")
torch.library.define(
    "gatelight::lut_bwd", "(Tensor grad_out, Tensor x, Tensor fanin, Tensor table) -> (Tensor, Tensor)"
)
torch.library.impl("gatelight::lut_fwd", "default", _lut_fwd_any)
torch.library.impl("gatelight::lut_bwd", "default", _lut_bwd_any)
torch.library.impl("gatelight::lut_fwd", "cpu", _lut_fwd_cpu)
torch.library.impl("gatelight::lut_bwd", "cpu", _lut_bwd_cpu)
torch.library.impl("gatelight::lut_fwd", "cuda", _lut_fwd_gpu)
torch.library.impl("gatelight::lut_bwd", "cuda", _lut_bwd_gpu)
torch.library.register_fake("gatelight::lut_fwd", _lut_fwd_fake)
torch.library.register_fake("gatelight::lut_bwd", _lut_bwd_fake)
torch.library.register_autograd("gatelight::lut_fwd", _backward, setup_context=_save)
