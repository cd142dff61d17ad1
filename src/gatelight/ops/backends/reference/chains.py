"""Chains of layers in plain torch: one layer after another."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from gatelight.ops.backends.base import Gradients, Maps, Needs, Tensors
from gatelight.ops.backends.reference.derivatives import gradients
from gatelight.ops.backends.reference.gates import conv, lut_bwd, lut_fwd, table
from gatelight.ops.checks import check_layers
from gatelight.ops.convshape import ConvShape


def supports_shape(shape: ConvShape) -> bool:
    """Every shape."""
    return True


def dense_chain(x: Tensor, fanins: Tensors, thetas: Tensors, maps: Maps) -> Tensor:
    """Outputs of the last of a chain of dense layers, [gates, batch]; autograd differentiates it, again and again."""
    for fanin, theta, map in zip(fanins, thetas, maps, strict=True):
        x = lut_fwd(x, fanin, table(theta, map, fanin.shape[1]))
    return x


def dense_chain_fwd(
    x: Tensor, fanins: Tensors, thetas: Tensors, maps: Maps, memory: str, save: bool = True, by_shape: bool = False
) -> tuple[Tensor, list[Tensor]]:
    """Outputs of the last layer and, to save, the inputs of all layers but the first, whatever the memory mode."""
    check_layers(x, fanins, thetas, maps)
    inputs = [x]
    for fanin, theta, map in zip(fanins, thetas, maps, strict=True):
        inputs.append(lut_fwd(inputs[-1], fanin, table(theta, map, fanin.shape[1])))
    return inputs[-1], inputs[1:-1] if save else []


def dense_saved(x: Tensor, fanins: Tensors, thetas: Tensors, memory: str) -> list[Tensor]:
    """Empty tensors of the shapes that :func:`dense_chain_fwd` saves."""
    return [x.new_empty(fanin.shape[0], x.shape[1]) for fanin in fanins[:-1]]


def dense_chain_bwd(
    grad_out: Tensor, x: Tensor, saved: Tensors, fanins: Tensors, thetas: Tensors, maps: Maps, memory: str, needs: Needs
) -> Gradients:
    """Gradients for x and each theta, layer by layer from the last to the first."""
    if len(saved) != len(fanins) - 1:
        saved = dense_chain_fwd(x, fanins, thetas, maps, memory)[1]
    inputs = [x, *saved]
    grads: list[Tensor | None] = [None] * len(fanins)
    for i in reversed(range(len(fanins))):
        arity, map = fanins[i].shape[1], maps[i]
        grad_out, grad_table = lut_bwd(grad_out, inputs[i], fanins[i], table(thetas[i], map, arity))
        if needs[1 + i]:
            grads[i] = _theta_gradient(thetas[i], map, arity, grad_table)
    return (grad_out if needs[0] else None), grads


def _theta_gradient(theta: Tensor, map: str, arity: int, grad_table: Tensor) -> Tensor:
    if map == "table":
        return grad_table
    found, _ = gradients(lambda t: table(t, map, arity), theta, [], [True], grad_table)
    assert found is not None
    return found


def conv_chain(x: Tensor, shapes: Sequence[ConvShape], fanins: Tensors, thetas: Tensors, maps: Maps) -> Tensor:
    """Outputs of the last of a chain of convolutional layers, feature-major as x is, [features, batch]."""
    for shape, fanin, theta, map in zip(shapes, fanins, thetas, maps, strict=True):
        images = x.t().reshape(x.shape[1], shape.channels, shape.height, shape.width)
        x = conv(images, fanin, table(theta, map, shape.arity), shape).flatten(1).t()
    return x


def conv_chain_fwd(
    x: Tensor,
    shapes: Sequence[ConvShape],
    fanins: Tensors,
    thetas: Tensors,
    maps: Maps,
    save: bool = True,
    by_shape: bool = False,
) -> tuple[Tensor, list[Tensor]]:
    """Outputs of the last layer; nothing is saved, backward recomputes the chain."""
    return conv_chain(x, shapes, fanins, thetas, maps), []


def conv_saved(x: Tensor, shapes: Sequence[ConvShape], fanins: Tensors, thetas: Tensors) -> list[Tensor]:
    """Nothing, as :func:`conv_chain_fwd` saves nothing."""
    return []


def conv_chain_bwd(
    grad_out: Tensor,
    x: Tensor,
    saved: Tensors,
    shapes: Sequence[ConvShape],
    fanins: Tensors,
    thetas: Tensors,
    maps: Maps,
    needs: Needs,
) -> Gradients:
    """Gradients for x and each theta, from autograd on :func:`conv_chain`."""

    def run(x: Tensor, *thetas: Tensor) -> Tensor:
        return conv_chain(x, shapes, fanins, thetas, maps)

    return gradients(run, x, thetas, needs, grad_out)
