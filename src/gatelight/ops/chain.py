"""What the ops for chains of dense and of convolutional layers share."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gatelight.ops.backends.base import Gradients, Tensors
from gatelight.ops.connections import check_tensors


def check_given(x: Tensor, thetas: Tensors) -> None:
    """Raise a ValueError unless x and every theta are tensors, as the code after it assumes."""
    check_tensors(x=x)
    for theta in thetas:
        if not isinstance(theta, Tensor):
            check_tensors(theta=theta)


def is_differentiable(x: Tensor, thetas: Tensors) -> bool:
    """Whether a backward pass may follow.

    >>> is_differentiable(torch.ones(1), [torch.ones(1)]), is_differentiable(torch.ones(1, requires_grad=True), [])
    (False, True)
    """
    return torch.is_grad_enabled() and (x.requires_grad or any(theta.requires_grad for theta in thetas))


def split(tensors: Tensors, layers: int) -> tuple[Tensor, Tensors, Tensors, Tensors]:
    """x, fanins, thetas and what was saved, of the tensors that a chain keeps for backward in this order."""
    return tensors[0], tensors[1 : 1 + layers], tensors[1 + layers : 1 + 2 * layers], tensors[1 + 2 * layers :]


def to_op(x: Tensor, thetas: Tensors, needs: Sequence[bool], found: Gradients) -> tuple[Tensor, list[Tensor]]:
    """Gradients as a registered op returns them: contiguous, and an empty tensor if none is needed."""
    every = [
        grad.contiguous() if need and grad is not None else like.new_empty(0)
        for like, need, grad in zip([x, *thetas], needs, [found[0], *found[1]], strict=True)
    ]
    return every[0], every[1:]


def from_op(needs: Sequence[bool], grad_x: Tensor, grad_thetas: Tensors) -> Gradients:
    """Gradients as autograd takes them, from those that :func:`to_op` made."""
    every = [grad if need else None for need, grad in zip(needs, [grad_x, *grad_thetas], strict=True)]
    return every[0], every[1:]
