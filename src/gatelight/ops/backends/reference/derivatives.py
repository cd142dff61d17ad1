"""Gradients of a function in plain torch, which can be differentiated again.

Kernels compute only first derivatives. If a backward pass is differentiated itself (``create_graph=True``, as for a
gradient penalty or a Hessian), or runs under ``torch.func``, this is used instead: slower, but correct.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from gatelight.ops.backends.base import Gradients


def gradients(
    function: Callable[..., Tensor], x: Tensor, thetas: Sequence[Tensor], needs: Sequence[bool], grad_out: Tensor
) -> Gradients:
    """Gradients of ``function(x, *thetas)`` for those inputs that need one, differentiable themselves.

    >>> gradients(torch.mul, torch.tensor(2.0), [torch.tensor(3.0)], [True, False], torch.tensor(1.0))
    (tensor(3.), [None])
    """
    inputs = [x, *thetas]
    picked = [i for i, need in enumerate(needs) if need]

    def of_picked(*values: Tensor) -> Tensor:
        every = list(inputs)
        for i, value in zip(picked, values, strict=True):
            every[i] = value
        return function(*every)

    made: Any = torch.func.vjp(of_picked, *[inputs[i] for i in picked])
    found: list[Tensor | None] = [None] * len(inputs)
    for i, gradient in zip(picked, made[1](grad_out), strict=True):
        found[i] = gradient
    return found[0], found[1:]
