"""A chain of dense layers on the GPU, differentiable in its inputs and in every theta."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gatelight.ops.connections import check_fanin
from gatelight.ops.derivatives import stack_gradients
from gatelight.ops.transforms import is_differentiated_again
from gatelight.ops.triton import launch


def stack(x: Tensor, fanins: Sequence[Tensor], thetas: Sequence[Tensor], kinds: Sequence[str], memory: str) -> Tensor:
    """Outputs [gates, batch] of the last layer, on x [features, batch].

    Args:
        x: Inputs in a dtype of :data:`gatelight.ops.backend.GPU_STORAGE`, which activations keep.
        fanins: For each layer int32 [gates, arity].
        thetas: For each layer [gates, parameters].
        kinds: For each layer a name in :data:`gatelight.ops.operands.KINDS`.
        memory: ``keep`` the input of every layer for backward, ``keep-bf16`` the same rounded to bfloat16, or
            ``recompute``: the input of each stretch of about sqrt(layers) layers, the others again in backward.
    """
    features = x.shape[0]
    for fanin in fanins:
        check_fanin(fanin, features)
        features = fanin.shape[0]
    if torch.is_grad_enabled() and (x.requires_grad or any(t.requires_grad for t in thetas)):
        out: Tensor = _Stack.apply(x, tuple(kinds), memory, *fanins, *thetas)  # type: ignore[no-untyped-call]
        return out
    for fanin, theta, kind in zip(fanins, thetas, kinds, strict=True):
        x = launch.layer_fwd(x, fanin, theta.detach(), kind)
    return x


class _Stack(torch.autograd.Function):
    """Keeps the input of every stretch of layers; a stretch is one layer unless activations are recomputed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kinds: tuple[str, ...], memory: str, *operands: Tensor) -> Tensor:
        layers = list(zip(operands[: len(kinds)], operands[len(kinds) :], kinds, strict=True))
        ctx.stretch = math.isqrt(len(layers) - 1) + 1 if memory == "recompute" else 1
        ctx.kinds = kinds
        kept = []
        for number, layer in enumerate(layers):
            if number % ctx.stretch == 0:
                kept.append(x.bfloat16() if memory == "keep-bf16" and number else x)
            x = launch.layer_fwd(x, *layer)
        ctx.save_for_backward(*operands, *kept)
        return x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        count = len(ctx.kinds)
        saved = ctx.saved_tensors
        operands, kept = saved[: 2 * count], list(saved[2 * count :])
        if is_differentiated_again(grads[0]):
            return stack_gradients(ctx, kept[0], operands[:count], operands[count:], grads[0])
        layers = list(zip(operands[:count], operands[count:], ctx.kinds, strict=True))
        grad: Tensor | None = grads[0]
        grad_thetas: list[Tensor | None] = [None] * count
        for first in reversed(range(0, count, ctx.stretch)):
            stretch = range(first, min(first + ctx.stretch, count))
            inputs = [kept.pop()]
            for number in stretch[:-1]:
                inputs.append(launch.layer_fwd(inputs[-1], *layers[number]))
            for number in reversed(stretch):
                assert grad is not None
                need_x = number > 0 or ctx.needs_input_grad[0]
                need_theta = ctx.needs_input_grad[3 + count + number]
                needs = need_x, need_theta
                grad, grad_thetas[number] = launch.layer_bwd(grad, inputs.pop(), *layers[number], *needs)
        return grad, None, None, *[None] * count, *grad_thetas
