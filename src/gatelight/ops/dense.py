"""A chain of dense logic layers as one op.

In eager mode an ``autograd.Function`` calls the backend: at batch 1 a dispatch through ``torch.library`` would cost as
much as several layers. When torch captures a graph (``torch.compile``, ``torch.export``, ``jit.trace``, fake tensors)
the registered op ``gatelight::dense_chain_fwd`` is used instead, so that a chain is one node. Both run the same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gatelight.names import check_name
from gatelight.ops import backends
from gatelight.ops.backends import reference
from gatelight.ops.backends.base import Gradients
from gatelight.ops.chain import check_given, from_op, is_differentiable, split, to_op
from gatelight.ops.checks import check_layers
from gatelight.ops.dispatch import backend_for
from gatelight.ops.memory import MEMORY, resolve
from gatelight.ops.transforms import is_differentiated_again, is_symbolic, is_traced, is_transformed


def dense_chain(
    x: Tensor, fanins: Sequence[Tensor], thetas: Sequence[Tensor], maps: Sequence[str], memory: str = "auto"
) -> Tensor:
    """Evaluate a chain of dense layers, differentiable in x and in every theta.

    Layer l computes ``lut(., fanins[l], table(thetas[l]))`` where ``maps[l]`` names the map theta -> table.

    >>> one_or, one_not = torch.tensor([[0.0, 1.0, 1.0, 1.0]]), torch.tensor([[1.0, 0.0]])
    >>> fanins = [torch.tensor([[0, 1]], dtype=torch.int32), torch.tensor([[0]], dtype=torch.int32)]
    >>> dense_chain(torch.tensor([[0.0, 0.0], [0.0, 1.0]]), fanins, [one_or, one_not], ["table", "table"])
    tensor([[1.],
            [0.]])

    Args:
        x: Inputs, [batch, features]. There are kernels for float32 (on a GPU also bfloat16 and float16, which
            activations then are too); the reference computes everything else.
        fanins: For each layer int32 [gates, arity].
        thetas: For each layer [gates, parameters].
        maps: For each layer a name in :data:`gatelight.ops.NATIVE_MAPS`.
        memory: What forward leaves for backward: ``keep`` (one value for each gate and sample; of every second layer
            only, where those read inside clusters of wide ones), ``keep-bf16`` (one of two bytes for each),
            ``recompute`` (those of three layers; on a GPU the inputs of about sqrt(layers) layers), or ``auto``:
            ``keep``, but ``recompute`` on the CPU if activations take more than a GiB. The reference keeps all.

    Returns:
        Outputs of the last layer [batch, gates], a transposed view of [gates, batch].
    """
    check_name("memory mode", memory, MEMORY)
    check_given(x, thetas)
    if x.ndim != 2:
        raise ValueError(f"x must be [batch, features], got shape {tuple(x.shape)}")
    differentiable = is_differentiable(x, thetas)
    rows = x.t()
    if is_symbolic(x, *thetas):
        out: Tensor = torch.ops.gatelight.dense_chain_fwd(
            rows, list(fanins), list(thetas), ",".join(maps), memory, differentiable and not is_traced()
        )[0]
        return out.t()
    name = backend_for(x, *thetas)
    if name == "reference" and is_transformed(x, *thetas):
        check_layers(rows, fanins, thetas, maps)
        return reference.dense_chain(rows, fanins, thetas, maps).t()
    memory = resolve(memory, name, rows, fanins)
    if differentiable:
        out = _DenseChain.apply(rows, name, tuple(maps), memory, *fanins, *thetas)  # type: ignore[no-untyped-call]
    else:
        plain = [theta.detach() for theta in thetas]
        out, _ = backends.load(name).dense_chain_fwd(rows, fanins, plain, maps, memory, save=False)
    return out.t()


class _DenseChain(torch.autograd.Function):
    """The chain on feature-major arrays, in eager mode."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, name: str, maps: tuple[str, ...], memory: str, *operands: Tensor) -> Tensor:
        layers = len(operands) // 2
        fanins, thetas = operands[:layers], operands[layers:]
        out, saved = backends.load(name).dense_chain_fwd(x, fanins, thetas, maps, memory, save=True)
        ctx.name, ctx.maps, ctx.memory, ctx.layers = name, maps, memory, layers
        ctx.save_for_backward(x, *operands, *saved)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        layers = ctx.layers
        x, fanins, thetas, saved = split(ctx.saved_tensors, layers)
        need_x, *rest = ctx.needs_input_grad
        needs = [need_x, *rest[3 + layers :]]
        if is_differentiated_again(grads[0]):
            grad_x, grad_thetas = _gradients_again(grads[0], x, fanins, thetas, ctx.maps, needs)
        else:
            operands = grads[0], x, saved, fanins, thetas, ctx.maps, ctx.memory, needs
            grad_x, grad_thetas = backends.load(ctx.name).dense_chain_bwd(*operands)
        return grad_x, None, None, None, *[None] * layers, *grad_thetas


def _gradients_again(
    grad_out: Tensor,
    x: Tensor,
    fanins: Sequence[Tensor],
    thetas: Sequence[Tensor],
    maps: Sequence[str],
    needs: Sequence[bool],
) -> Gradients:
    """Gradients that can be differentiated again."""

    def run(x: Tensor, *thetas: Tensor) -> Tensor:
        return reference.dense_chain(x, fanins, thetas, maps)

    return reference.gradients(run, x, thetas, needs, grad_out)


def _dense_chain_fwd(
    x: Tensor, fanins: list[Tensor], thetas: list[Tensor], maps: str, memory: str, save: bool
) -> tuple[Tensor, list[Tensor]]:
    check_layers(x, fanins, thetas, maps.split(","))
    name = backend_for(x, *thetas)
    mode = resolve(check_name("memory mode", memory, MEMORY), name, x, fanins)
    return backends.load(name).dense_chain_fwd(x, fanins, thetas, maps.split(","), mode, save, by_shape=True)


def _dense_chain_bwd(
    grad_out: Tensor,
    x: Tensor,
    saved: list[Tensor],
    fanins: list[Tensor],
    thetas: list[Tensor],
    maps: str,
    memory: str,
    needs: list[bool],
) -> tuple[Tensor, list[Tensor]]:
    check_layers(x, fanins, thetas, maps.split(","))
    name = backend_for(x, *thetas)
    mode = resolve(memory, name, x, fanins)
    backend = backends.load(name)
    found = backend.dense_chain_bwd(grad_out, x, saved, fanins, thetas, maps.split(","), mode, needs)
    return to_op(x, thetas, needs, found)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, list[Tensor]]) -> None:
    x, fanins, thetas, ctx.maps, ctx.memory, _ = inputs
    ctx.layers = len(fanins)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, *fanins, *thetas, *output[1])


def _backward(ctx: Any, grad_out: Tensor, _: Any) -> Any:
    layers = ctx.layers
    x, fanins, thetas, saved = split(ctx.saved_tensors, layers)
    needs = [ctx.needs_input_grad[0], *ctx.needs_input_grad[2]]
    if is_differentiated_again(grad_out):
        grad_x, grad_thetas = _gradients_again(grad_out, x, fanins, thetas, ctx.maps.split(","), needs)
    else:
        operands = grad_out, x, saved, fanins, thetas, ctx.maps, ctx.memory, needs
        grad_x, grad_thetas = from_op(needs, *torch.ops.gatelight.dense_chain_bwd(*operands))
    return grad_x, [None] * layers, grad_thetas, None, None, None


torch.library.impl("gatelight::dense_chain_fwd", "default", _dense_chain_fwd)
torch.library.impl("gatelight::dense_chain_bwd", "default", _dense_chain_bwd)
torch.library.register_autograd("gatelight::dense_chain_fwd", _backward, setup_context=_save)
