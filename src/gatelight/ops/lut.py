"""One layer of gates, differentiable in the inputs and in the tables."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gatelight.ops import backends
from gatelight.ops.backends import reference
from gatelight.ops.checks import check_operands
from gatelight.ops.connections import check_fanin, check_tensors
from gatelight.ops.dispatch import backend_for
from gatelight.ops.transforms import is_differentiated_again, is_symbolic, is_traced, is_transformed


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
    if not is_traced():  # sizes are tensors there
        check_operands(x, fanin, table)
    if not is_symbolic(x, fanin):
        check_fanin(fanin, x.shape[1])
    if is_transformed(x, table):
        return reference.lut_fwd(x.t(), fanin, table).t()
    out: Tensor = torch.ops.gatelight.lut_fwd(x.t().contiguous(), fanin, table)
    return out.t()


def _lut_fwd(x: Tensor, fanin: Tensor, table: Tensor) -> Tensor:
    check_operands(x, fanin, table, features_first=True)
    check_fanin(fanin, x.shape[0])
    return backends.load(backend_for(x, table)).lut_fwd(x, fanin, table)


def _lut_bwd(grad_out: Tensor, x: Tensor, fanin: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    check_operands(x, fanin, table, features_first=True)
    check_tensors(grad_out=grad_out)
    check_fanin(fanin, x.shape[0])
    if grad_out.shape != (fanin.shape[0], x.shape[1]):
        raise ValueError(f"grad_out must be {(fanin.shape[0], x.shape[1])}, got {tuple(grad_out.shape)}")
    return backends.load(backend_for(x, table)).lut_bwd(grad_out, x, fanin, table)


def _save(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor, None, Tensor]:
    bwd = reference.lut_bwd if is_differentiated_again(grad_out) else torch.ops.gatelight.lut_bwd
    grad_x, grad_table = bwd(grad_out.contiguous(), *ctx.saved_tensors)
    return grad_x, None, grad_table


torch.library.impl("gatelight::lut_fwd", "default", _lut_fwd)
torch.library.impl("gatelight::lut_bwd", "default", _lut_bwd)
torch.library.register_autograd("gatelight::lut_fwd", _backward, setup_context=_save)
