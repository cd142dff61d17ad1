"""A chain of convolutional logic layers that runs as one op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.nn.functional import max_pool2d

from gatelight import ops
from gatelight.circuit.sketch import CircuitSketch
from gatelight.nn.checks import to_weights, trusted
from gatelight.nn.conv import LogicConv2d
from gatelight.nn.fusion import FusedSequential
from gatelight.nn.pool import OrPool2d
from gatelight.ops import ConvShape


@dataclass(frozen=True)
class ConvStep:
    """A layer and the side of the pooling after it, 1 for none."""

    layer: LogicConv2d
    pool: int

    def emit(self, sketch: CircuitSketch) -> None:
        """Add the layer with its pooling to a circuit."""
        self.layer.emit(sketch, self.pool)


class LogicConvStack(FusedSequential):
    """Convolutional logic layers with pooling in between, computed tile by tile through all of them.

    It is an ``nn.Sequential``: it saves like one, and calls layers of other classes and layers with hooks one by one.
    Where there is no kernel for the tensors or the trees, the reference computes them. Under ``torch.compile`` a run of
    layers is one op.

    >>> import torch
    >>> stack = LogicConvStack([LogicConv2d(1, 4, 3, padding=1, seed=0), OrPool2d(2)])
    >>> stack(torch.rand(2, 1, 8, 8)).shape
    torch.Size([2, 4, 4, 4])

    Args:
        layers: :class:`LogicConv2d` and :class:`OrPool2d`, first to last, or one list of them.

    Shape:
        [batch, in_channels of the first, h, w] -> [batch, out_channels of the last, h', w']
    """

    fusible = (LogicConv2d, OrPool2d)

    @property
    def layers(self) -> list[LogicConv2d]:
        """The layers of gates, without the pooling."""
        return [layer for layer in self if isinstance(layer, LogicConv2d)]

    @property
    def steps(self) -> list[ConvStep]:
        """The layers of gates, each with the pooling after it."""
        return conv_steps(list(self))

    def shapes(self, height: int, width: int) -> list[ConvShape]:
        """The geometry of each step on images of a size."""
        return step_shapes(self.steps, height, width)

    def affected(self, inputs: Tensor) -> Tensor:
        """Which outputs depend on a marked input: bool [channels, h, w] -> bool [out_channels, h', w']."""
        for step in self.steps:
            inputs = step.layer.affected(inputs)
            if step.pool > 1:
                inputs = max_pool2d(inputs.float(), step.pool) > 0
        return inputs

    def _check_order(self, layers: list[Any]) -> None:
        channels: int | None = None
        for layer in layers:
            if isinstance(layer, LogicConv2d):
                if channels is not None and channels != layer.in_channels:
                    raise ValueError(f"a layer of {channels} channels feeds one of {layer.in_channels}")
                channels = layer.out_channels
            elif not isinstance(layer, OrPool2d):
                channels = None

    def _fused(self, x: Tensor, layers: list[Any]) -> Tensor:
        while layers and isinstance(layers[0], OrPool2d):  # pooling of the input
            x = layers.pop(0)(x)
        if not layers:
            return x
        self._check_order(layers)
        steps = conv_steps(layers)
        steps[0].layer.check_input(x)
        x = to_weights(x, steps[0].layer.theta)
        operands = [step.layer.kernel_operands() for step in steps]
        thetas, maps = [theta for theta, _ in operands], [map for _, map in operands]
        shapes = step_shapes(steps, x.shape[2], x.shape[3])
        return trusted(ops.conv_chain(x, shapes, [step.layer.fanin for step in steps], thetas, maps))


def conv_steps(layers: list[Any]) -> list[ConvStep]:
    """The layers of gates, each with the pooling after it; a ValueError for any other layer."""
    steps: list[ConvStep] = []
    for layer in layers:
        if isinstance(layer, LogicConv2d):
            steps.append(ConvStep(layer, 1))
        elif isinstance(layer, OrPool2d) and steps:
            steps[-1] = ConvStep(steps[-1].layer, steps[-1].pool * layer.size)
        else:
            raise ValueError(
                f"a convolutional stack starts with a LogicConv2d and holds only LogicConv2d and OrPool2d, "
                f"got {type(layer).__name__}"
            )
    if not steps:
        raise ValueError("a convolutional stack needs at least one LogicConv2d")
    return steps


def step_shapes(steps: list[ConvStep], height: int, width: int) -> list[ConvShape]:
    """The geometry of each step on images of a size."""
    shapes = []
    for step in steps:
        shapes.append(step.layer.shape_for(height, width, step.pool))
        height, width = shapes[-1].out_height, shapes[-1].out_width
    return shapes
