"""A chain of dense logic layers as one call of the native kernels, or as one node on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gatelight.names import check_name
from gatelight.ops import cpu
from gatelight.ops.backend import gpu_takes, native_takes
from gatelight.ops.connections import check_tensors
from gatelight.ops.derivatives import stack_gradients
from gatelight.ops.transforms import is_differentiated_again, is_symbolic

MEMORY = ("auto", *cpu.MODES)

#: ``auto`` computes activations again in backward above this many bytes of them.
KEEP_LIMIT = 1 << 30


def can_stack(x: Tensor, thetas: Sequence[Tensor]) -> bool:
    """Whether :func:`stack` takes these operands: there are kernels for their device, and torch makes no graph."""
    return not is_symbolic(x, *thetas) and (gpu_takes(x, *thetas) or native_takes(x, *thetas))


def stack(
    x: Tensor, fanins: Sequence[Tensor], thetas: Sequence[Tensor], kinds: Sequence[str], memory: str = "auto"
) -> Tensor:
    """Evaluate a chain of dense layers, differentiable in x and in every theta.

    Layer l computes ``lut(., fanins[l], table(thetas[l]))`` where ``kinds[l]`` names the map theta -> table.

    Args:
        x: Inputs, [batch, features], float32 (on a GPU also bfloat16 or float16, which activations then are too).
        fanins: For each layer int32 [gates, arity].
        thetas: For each layer float32 [gates, parameters].
        kinds: For each layer a name in :data:`gatelight.ops.operands.KINDS`.
        memory: What forward leaves for backward: ``keep`` (one value for each gate and sample; of every second layer
            only, where those read inside clusters of wide ones), ``keep-bf16`` (one of two bytes for each),
            ``recompute`` (those of three layers; on a GPU the inputs of about sqrt(layers) layers), or ``auto``:
            ``keep``, but ``recompute`` on the CPU where activations take more than :data:`KEEP_LIMIT` bytes.

    Returns:
        Outputs of the last layer [batch, gates], a transposed view of [gates, batch].
    """
    check_name("memory mode", memory, MEMORY)
    check_tensors(x=x)
    for theta in thetas:
        if not isinstance(theta, Tensor):
            check_tensors(theta=theta)
    if x.ndim != 2:
        raise ValueError(f"x must be [batch, features], got shape {tuple(x.shape)}")
    if gpu_takes(x, *thetas):
        from gatelight.ops.triton import chain

        return chain.stack(x.t(), fanins, thetas, kinds, "keep" if memory == "auto" else memory).t()
    if memory == "auto":
        activations = x.shape[0] * sum(fanin.shape[0] for fanin in fanins)
        memory = "recompute" if 4 * activations > KEEP_LIMIT else "keep"
    if not (torch.is_grad_enabled() and (x.requires_grad or any(t.requires_grad for t in thetas))):
        return cpu.stack_fwd(x.t(), fanins, [t.detach() for t in thetas], kinds, "recompute", save=False)[0].t()
    out: Tensor = _Stack.apply(x.t(), tuple(kinds), memory, *fanins, *thetas)  # type: ignore[no-untyped-call]
    return out.t()


class _Stack(torch.autograd.Function):
    """Forward and backward of the chain on feature-major arrays."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kinds: tuple[str, ...], memory: str, *operands: Tensor) -> Tensor:
        fanins, thetas = operands[: len(kinds)], operands[len(kinds) :]
        out, saved = cpu.stack_fwd(x, fanins, thetas, kinds, memory)
        ctx.kinds, ctx.memory = kinds, memory
        ctx.save_for_backward(x, saved, *operands)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, saved, *operands = ctx.saved_tensors
        layers = len(ctx.kinds)
        fanins, thetas = operands[:layers], operands[layers:]
        if is_differentiated_again(grads[0]):
            return stack_gradients(ctx, x, fanins, thetas, grads[0])
        need_x = ctx.needs_input_grad[0]
        grad_x, grad_thetas = cpu.stack_bwd(grads[0], x, saved, fanins, thetas, ctx.kinds, ctx.memory, need_x)
        return grad_x, None, None, *[None] * layers, *grad_thetas
