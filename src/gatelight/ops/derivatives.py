"""Backward passes that can be differentiated again: the gradients of a chain, computed by the reference in plain torch.

Kernels compute first derivatives. Where a backward pass is to be differentiated itself (``create_graph=True``, as for a
gradient penalty or a Hessian), or runs under ``torch.func``, these functions take their place: slower, and right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from gatelight.ops import reference


def stack_gradients(ctx: Any, x: Tensor, fanins: Sequence[Tensor], thetas: Sequence[Tensor], grad: Tensor) -> Any:
    """What backward of a chain returns, differentiable again; ``ctx`` belongs to (x, kinds, memory, fanins, thetas)."""

    def run(x: Tensor, *thetas: Tensor) -> Tensor:
        return reference.stack(x, fanins, thetas, ctx.kinds)

    layers = len(fanins)
    needed = [ctx.needs_input_grad[0], *ctx.needs_input_grad[3 + layers :]]
    grad_x, *grad_thetas = _gradients(run, [x, *thetas], needed, grad)
    return grad_x, None, None, *[None] * layers, *grad_thetas


def chain_gradients(ctx: Any, x: Tensor, fanins: Sequence[Tensor], thetas: Sequence[Tensor], grad: Tensor) -> Any:
    """What backward of a chain returns, differentiable again; ``ctx`` belongs to (x, shapes, kinds, fanins, thetas)."""

    def run(x: Tensor, *thetas: Tensor) -> Tensor:
        return reference.conv_chain(x, ctx.shapes, fanins, thetas, ctx.kinds)

    layers = len(fanins)
    needed = [ctx.needs_input_grad[0], *ctx.needs_input_grad[3 + layers :]]
    grad_x, *grad_thetas = _gradients(run, [x, *thetas], needed, grad)
    return grad_x, None, None, *[None] * layers, *grad_thetas


def _gradients(
    function: Callable[..., Tensor], inputs: Sequence[Tensor], needed: Sequence[bool], grad_out: Tensor
) -> list[Tensor | None]:
    """Gradients of ``function(*inputs)`` for the inputs that need one, differentiable themselves."""
    picked = [i for i, need in enumerate(needed) if need]

    def of_picked(*values: Tensor) -> Tensor:
        every = list(inputs)
        for i, value in zip(picked, values, strict=True):
            every[i] = value
        return function(*every)

    made: Any = torch.func.vjp(of_picked, *[inputs[i] for i in picked])
    found: list[Tensor | None] = [None] * len(inputs)
    for i, gradient in zip(picked, made[1](grad_out), strict=True):
        found[i] = gradient
    return found
