"""The definition of the lut op in plain torch: slow, obvious, and what every kernel must equal.

Arrays are feature-major: x [features, batch], out [gates, batch]. A gate's output is the multilinear extension
of its table, which one fold per input computes, first input (the most significant bit of an entry) first:

    t <- low(t) + x_i (high(t) - low(t))
"""

from __future__ import annotations

import torch
from torch import Tensor


def lut_fwd(x: Tensor, fanin: Tensor, table: Tensor) -> Tensor:
    """Outputs of all gates, [gates, batch] in x's dtype (computed in float32 where x is narrower)."""
    return _folds(*_gather(x, fanin, table))[-1].squeeze(1).to(x.dtype)


def lut_bwd(grad_out: Tensor, x: Tensor, fanin: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients for x [features, batch] and table [gates, 2**arity].

    With g the gradient of a fold's result, its inputs receive

        dx_i = sum over entries of g (high - low),    d low = g (1 - x_i),    d high = g x_i
    """
    inputs, entries = _gather(x, fanin, table)
    folds = _folds(inputs, entries)
    grad = grad_out.to(entries.dtype).unsqueeze(1)
    grad_x = torch.zeros(x.shape, dtype=entries.dtype, device=x.device)
    for i in range(len(inputs) - 1, -1, -1):
        value = inputs[i].unsqueeze(1)
        low, high = folds[i].chunk(2, dim=1)
        grad_x.index_add_(0, fanin[:, i], (grad * (high - low)).sum(1))
        grad = torch.cat([grad * (1 - value), grad * value], dim=1)
    return grad_x.to(x.dtype), grad.sum(2).to(table.dtype)


def _gather(x: Tensor, fanin: Tensor, table: Tensor) -> tuple[list[Tensor], Tensor]:
    """The input rows of all gates, one [gates, batch] for each input, and the table [gates, 2**arity, 1]."""
    dtype = torch.promote_types(torch.float32, torch.promote_types(x.dtype, table.dtype))
    wide = x.to(dtype)
    return [wide.index_select(0, column) for column in fanin.unbind(1)], table.to(dtype).unsqueeze(2)


def _folds(inputs: list[Tensor], entries: Tensor) -> list[Tensor]:
    """The table before each fold and after the last, [gates, 2**(arity - i), 1 or batch]."""
    folds = [entries]
    for value in inputs:
        low, high = folds[-1].chunk(2, dim=1)
        folds.append(low + value.unsqueeze(1) * (high - low))
    return folds
