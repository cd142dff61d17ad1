"""A whole classifier: encoder, layers of gates, convolutional ones first, group sums."""

from __future__ import annotations

import math

from torch import Tensor, nn

from gatelight.nn.checks import check_shape, trusted
from gatelight.nn.conv import LogicConv2d
from gatelight.nn.conv_stack import LogicConvStack
from gatelight.nn.dense import LogicDense
from gatelight.nn.encode import Thermometer, as_bits
from gatelight.nn.head import GroupSum
from gatelight.nn.regularize import GateIntervention, PathDropout
from gatelight.nn.stack import LogicStack


class LogicNetwork(nn.Module):
    """Encoder, logic layers and head, with the regularizers that act across layers.

    >>> import torch
    >>> net = LogicNetwork(Thermometer.even(1), [LogicDense(16, 20, seed=0)], GroupSum(2, 5.0))
    >>> net(torch.rand(3, 1, 4, 4)).shape
    torch.Size([3, 2])

    Args:
        encoder: Turns features into bits; None if the inputs are bits already.
        layers: The dense logic layers, first to last.
        head: The group sums.
        conv: Convolutional logic layers before the dense ones; they need ``input_shape`` (channels, h, w).
        intervention: Applied to every layer's outputs in training.
        dropout: Path-connected dropout in training.
        input_shape: Shape of one sample, such as (1, 28, 28); None takes it from the encoder and first layer.
        memory: What forward leaves for backward, see :class:`~gatelight.nn.LogicStack`.

    Shape:
        [batch, *input_shape] -> [batch, classes]
    """

    def __init__(
        self,
        encoder: Thermometer | None,
        layers: list[LogicDense],
        head: GroupSum,
        *,
        conv: LogicConvStack | None = None,
        intervention: GateIntervention | None = None,
        dropout: PathDropout | None = None,
        input_shape: tuple[int, ...] | None = None,
        memory: str = "auto",
    ) -> None:
        super().__init__()
        input_shape = None if input_shape is None else check_shape("input_shape", input_shape)
        if not layers:
            raise ValueError("a network needs at least one logic layer")
        if layers[-1].out_features % head.classes:
            raise ValueError(
                f"{head.classes} classes do not divide the {layers[-1].out_features} gates of the last layer"
            )
        self.encoder = encoder
        self.conv = conv
        self.image = None if conv is None else _image(conv, encoder, input_shape, layers[0].in_features)
        self.layers = LogicStack(layers, memory=memory)
        self.head = head
        self.intervention = intervention
        self.dropout = dropout
        self.input_shape = input_shape

    @property
    def logic_layers(self) -> list[LogicConv2d | LogicDense]:
        """The logic layers, first to last."""
        return [*(self.conv.layers if self.conv is not None else ()), *self.layers.layers]

    @property
    def gates(self) -> int:
        """Gates of the circuit before simplification: a tree counts once per position, pooling as two-input gates."""
        gates = sum(layer.out_features for layer in self.layers.layers)
        if self.conv is not None and self.image is not None:
            for step, shape in zip(self.conv.steps, self.conv.shapes(*self.image[1:]), strict=True):
                windows = step.layer.out_channels * shape.out_height * shape.out_width
                gates += windows * (shape.pool**2 * shape.tree_gates + shape.pool**2 - 1)
        return gates

    def encode(self, x: Tensor) -> Tensor:
        """The bits that the first layer reads, [batch, bits]."""
        if self.input_shape is not None and x.shape[1:] != self.input_shape:
            raise ValueError(
                f"the network takes [batch, {str(self.input_shape)[1:-1].rstrip(',')}], got {tuple(x.shape)}"
            )
        if self.encoder is None:
            return trusted(as_bits(x).flatten(1))
        encoded: Tensor = self.encoder(x)
        return trusted(encoded.flatten(1))

    def activations(self, x: Tensor) -> list[Tensor]:
        """The outputs of every logic layer for a batch of raw inputs, each [batch, gates]; of trees, the roots."""
        return self._layer_outputs(self.encode(x))

    def forward(self, x: Tensor) -> Tensor:
        """Class scores (logits)."""
        return self.scores(self.encode(x))

    def scores(self, bits: Tensor) -> Tensor:
        """Class scores of encoded inputs, [batch, bits] -> [batch, classes]."""
        if self.intervention is not None and self.training:
            value = self._layer_outputs(bits)[-1]
        else:
            if self.conv is not None:
                bits = trusted(self.conv(self._as_images(bits)).flatten(1))
            value = self.layers(bits)
        if self.dropout is not None and self.training:
            value = value * self._kept().to(value.dtype)
        scores: Tensor = self.head(value)
        return scores

    def _layer_outputs(self, bits: Tensor) -> list[Tensor]:
        outputs = []
        value = bits if self.conv is None else self._as_images(bits)
        for layer in [*(self.conv if self.conv is not None else ()), *self.layers]:
            value = layer(value.flatten(1) if isinstance(layer, LogicDense) else value)
            if isinstance(layer, LogicDense | LogicConv2d):
                if self.intervention is not None:
                    value = self.intervention(value)
                outputs.append(value.flatten(1))
        return outputs

    def _as_images(self, bits: Tensor) -> Tensor:
        assert self.image is not None
        return trusted(bits.view(len(bits), *self.image))

    def _kept(self) -> Tensor:
        """Path-connected dropout's mask over the last layer's gates."""
        assert self.dropout is not None
        device = self.layers.layers[0].fanin.device
        inputs = self.layers.layers[0].in_features if self.image is None else math.prod(self.image)
        dropped = self.dropout.draw(inputs, device)
        if self.conv is not None and self.image is not None:
            dropped = self.conv.affected(dropped.view(self.image)).flatten()
        return self.dropout.kept(self.layers.layers, dropped)


def _image(
    conv: LogicConvStack, encoder: Thermometer | None, input_shape: tuple[int, ...] | None, inputs: int
) -> tuple[int, int, int]:
    """Shape of the encoded images, checked against the layers that read them."""
    if input_shape is None or len(input_shape) != 3:
        raise ValueError(f"convolutional layers need an input_shape (channels, h, w), got {input_shape}")
    channels, height, width = input_shape
    channels *= 1 if encoder is None else encoder.count
    steps = conv.steps  # raises for anything but trees and pooling
    if channels != steps[0].layer.in_channels:
        raise ValueError(f"the encoder makes {channels} channels, the first layer reads {steps[0].layer.in_channels}")
    last = conv.shapes(height, width)[-1]
    outputs = steps[-1].layer.out_channels * last.out_height * last.out_width
    if outputs != inputs:
        raise ValueError(f"convolutional layers of {outputs} outputs feed a dense one of {inputs} inputs")
    return channels, height, width
