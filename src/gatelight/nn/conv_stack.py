"""A chain of convolutional logic layers that runs as one op."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.functional import max_pool2d

from gatelight import ops
from gatelight.nn.conv import LogicConv2d
from gatelight.nn.pool import OrPool2d
from gatelight.ops import ConvShape


@dataclass(frozen=True)
class ConvStep:
    """A layer and the side of the pooling behind it, 1 for none."""

    layer: LogicConv2d
    pool: int


class LogicConvStack(nn.Sequential):
    """Convolutional logic layers with pooling in between, computed tile by tile through all of them.

    It behaves and saves like an ``nn.Sequential`` of its layers, and is one wherever a layer has hooks, the tensors
    are not float32 on the CPU, a tree has no native kernel, or torch compiles the model.

    >>> import torch
    >>> stack = LogicConvStack([LogicConv2d(1, 4, 3, padding=1, seed=0), OrPool2d(2)])
    >>> stack(torch.rand(2, 1, 8, 8)).shape
    torch.Size([2, 4, 4, 4])

    Args:
        layers: :class:`LogicConv2d` and :class:`OrPool2d`, first to last.

    Shape:
        [batch, in_channels of the first, h, w] -> [batch, out_channels of the last, h', w']
    """

    def __init__(self, layers: Iterable[LogicConv2d | OrPool2d]) -> None:
        super().__init__(*layers)
        for before, after in itertools.pairwise(step.layer for step in self.steps):
            if before.out_channels != after.in_channels:
                raise ValueError(f"a layer of {before.out_channels} channels feeds one of {after.in_channels}")

    @property
    def layers(self) -> list[LogicConv2d]:
        """The layers of gates, without the pooling."""
        return [layer for layer in self if isinstance(layer, LogicConv2d)]

    @property
    def steps(self) -> list[ConvStep]:
        """The layers of gates, each with the pooling behind it."""
        steps: list[ConvStep] = []
        for layer in self:
            if isinstance(layer, LogicConv2d):
                steps.append(ConvStep(layer, 1))
            elif isinstance(layer, OrPool2d) and steps:
                steps[-1] = ConvStep(steps[-1].layer, steps[-1].pool * layer.size)
            else:
                raise ValueError(
                    f"a convolutional stack starts with a LogicConv2d and goes on with them and OrPool2d, "
                    f"got {type(layer).__name__}"
                )
        if not steps:
            raise ValueError("a convolutional stack needs at least one LogicConv2d")
        return steps

    def shapes(self, height: int, width: int) -> list[ConvShape]:
        """The geometry of each step on images of a size."""
        shapes = []
        for step in self.steps:
            shapes.append(step.layer.shape_for(height, width, step.pool))
            height, width = shapes[-1].out_height, shapes[-1].out_width
        return shapes

    def affected(self, inputs: Tensor) -> Tensor:
        """Which outputs depend on a marked input: bool [channels, h, w] -> bool [out_channels, h', w']."""
        for step in self.steps:
            inputs = step.layer.affected(inputs)
            if step.pool > 1:
                inputs = max_pool2d(inputs.float(), step.pool) > 0
        return inputs

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the last layer."""
        layers = self.layers
        layers[0].check_input(x)
        if any(layer._forward_hooks or layer._forward_pre_hooks for layer in self):
            return self._one_by_one(x)
        operands = [layer.kernel_operands() for layer in layers]
        thetas = [theta for theta, _ in operands]
        shapes = self.shapes(x.shape[2], x.shape[3])
        if not ops.can_chain(x, thetas, shapes):
            return self._one_by_one(x)
        return ops.conv_chain(x, shapes, [layer.fanin for layer in layers], thetas, [kind for _, kind in operands])

    def _one_by_one(self, x: Tensor) -> Tensor:
        for layer in self:
            x = layer(x)
        return x
