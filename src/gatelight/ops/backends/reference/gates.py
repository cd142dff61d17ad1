"""The definition of the gates in plain torch: slow, obvious, and what every kernel must equal.

Arrays are feature-major: x [features, batch], out [gates, batch]. A gate's output is the multilinear extension
of its table, which one fold per input computes, first input (the most significant bit of an entry) first:

    t <- low(t) + x_i (high(t) - low(t))
"""

from __future__ import annotations

import torch
from torch import Tensor

from gatelight import parametrize
from gatelight.ops.convshape import ConvShape


def lut_fwd(x: Tensor, fanin: Tensor, table: Tensor) -> Tensor:
    """Outputs of all gates, [gates, batch] in x's dtype (computed in float32 if x is narrower)."""
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
        grad_x = grad_x.index_add(0, fanin[:, i], (grad * (high - low)).sum(1))
        grad = torch.cat([grad * (1 - value), grad * value], dim=1)
    return grad_x.to(x.dtype), grad.sum(2).to(table.dtype)


def conv(x: Tensor, fanin: Tensor, table: Tensor, shape: ConvShape) -> Tensor:
    """Trees of gates over the windows of images, then max-pooling; differentiable by autograd.

    Args:
        x: Images, [batch, channels, height, width].
        fanin: Leaves, int32 [trees, leaves], see :meth:`ConvShape.leaf_pixels`.
        table: Tables, [trees * gates of a tree, 2**arity], each tree from its root.
        shape: The geometry.

    Returns:
        [batch, trees, out_height, out_width], feature-major in memory.
    """
    batch, trees = x.shape[0], fanin.shape[0]
    dtype = torch.promote_types(torch.float32, torch.promote_types(x.dtype, table.dtype))
    rows = x.flatten(1).t().to(dtype)
    # The last row is the padding, which index -1 reads.
    rows = torch.cat([rows, rows.new_zeros(1, batch)])
    leaves = shape.leaf_pixels(fanin) % len(rows)
    value = rows.index_select(0, leaves.flatten()).view(trees, shape.leaves, shape.positions, batch)
    tables = table.to(dtype).view(trees, shape.tree_gates, 1 << shape.arity, 1, 1)
    first = shape.tree_gates
    for level in reversed(range(shape.depth)):
        gates = shape.arity**level
        first -= gates
        inputs = value.view(trees, gates, shape.arity, shape.positions, batch).unbind(2)
        entries = tables[:, first : first + gates]
        for one in inputs:
            low, high = entries.chunk(2, dim=2)
            entries = low + one.unsqueeze(2) * (high - low)
        value = entries.squeeze(2)
    windows = value.view(trees, shape.out_height, shape.out_width, shape.pool**2, batch)
    # max with indices gives the gradient to the first of equal values; amax would divide it among them.
    return windows.max(3).values.to(x.dtype).permute(3, 0, 1, 2)


def table(theta: Tensor, map: str, arity: int) -> Tensor:
    """Tables of parameters by the name of their map, [gates, 2**arity]; ``table`` is theta itself."""
    return theta if map == "table" else parametrize.of_map(map, arity).table(theta)


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
