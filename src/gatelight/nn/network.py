"""A whole classifier: encoder, layers of gates, group sums."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from gatelight.nn.dense import LogicDense
from gatelight.nn.encode import Thermometer, check_unit_interval
from gatelight.nn.head import GroupSum
from gatelight.nn.regularize import GateIntervention, PathDropout
from gatelight.nn.stack import LogicStack


class LogicNetwork(nn.Module):
    """Encoder, logic layers and head, with the regularisers that reach across layers.

    >>> net = LogicNetwork(Thermometer.even(1), [LogicDense(16, 20, seed=0)], GroupSum(2, 5.0))
    >>> net(torch.rand(3, 1, 4, 4)).shape
    torch.Size([3, 2])

    Args:
        encoder: Turns features into bits; None where the inputs are bits already.
        layers: The logic layers, first to last.
        head: The group sums.
        intervention: Applied to every layer's outputs in training.
        dropout: Path-connected dropout in training.
        input_shape: Shape of one sample, such as (1, 28, 28); None takes what the encoder and first layer take.

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
        intervention: GateIntervention | None = None,
        dropout: PathDropout | None = None,
        input_shape: tuple[int, ...] | None = None,
        memory: str = "auto",
    ) -> None:
        super().__init__()
        if not layers:
            raise ValueError("a network needs at least one logic layer")
        if layers[-1].out_features % head.classes:
            raise ValueError(
                f"{head.classes} classes do not divide the {layers[-1].out_features} gates of the last layer"
            )
        for before, after in itertools.pairwise(layers):
            if before.out_features != after.in_features:
                raise ValueError(f"a layer of {before.out_features} gates feeds one of {after.in_features} inputs")
        self.encoder = encoder
        self.layers = LogicStack(layers, memory)
        self.head = head
        self.intervention = intervention
        self.dropout = dropout
        self.input_shape = input_shape

    @property
    def logic_layers(self) -> list[LogicDense]:
        """The logic layers, first to last."""
        return self.layers.layers

    def encode(self, x: Tensor) -> Tensor:
        """The bits that the first layer reads, [batch, bits]."""
        if self.input_shape is not None and x.shape[1:] != self.input_shape:
            raise ValueError(
                f"the network takes [batch, {str(self.input_shape)[1:-1].rstrip(',')}], got {tuple(x.shape)}"
            )
        if self.encoder is None:
            check_unit_interval(x)
            return x.flatten(1)
        encoded: Tensor = self.encoder(x)
        return encoded.flatten(1)

    def activations(self, x: Tensor) -> list[Tensor]:
        """The outputs of every logic layer for a batch of raw inputs, each [batch, gates]."""
        return self._layer_outputs(self.encode(x))

    def forward(self, x: Tensor) -> Tensor:
        """Class scores (logits)."""
        return self.scores(self.encode(x))

    def scores(self, bits: Tensor) -> Tensor:
        """Class scores of encoded inputs, [batch, bits] -> [batch, classes]."""
        layered = self.intervention is not None and self.training
        value = self._layer_outputs(bits)[-1] if layered else self.layers(bits)
        if self.dropout is not None and self.training:
            value = value * self.dropout.kept(self.logic_layers).to(value.dtype)
        scores: Tensor = self.head(value)
        return scores

    def _layer_outputs(self, bits: Tensor) -> list[Tensor]:
        outputs = []
        value = bits
        for layer in self.layers:
            value = layer(value)
            if self.intervention is not None:
                value = self.intervention(value)
            outputs.append(value)
        return outputs


@contextmanager
def rounded(model: nn.Module) -> Iterator[None]:
    """Inside, every logic layer of the model computes with its rounded tables and the model is in evaluation mode.

    >>> net = LogicNetwork(None, [LogicDense(4, 4, seed=0)], GroupSum(2))
    >>> with rounded(net):
    ...     net(torch.rand(1, 4).round()) % 1      # sums of zeros and ones
    tensor([[0., 0.]])
    """
    layers = [m for m in model.modules() if isinstance(m, LogicDense)]
    before = [layer.discrete for layer in layers]
    training = model.training
    model.eval()
    try:
        for layer in layers:
            layer.discrete = True
        with torch.no_grad():
            yield
    finally:
        for layer, value in zip(layers, before, strict=True):
            layer.discrete = value
        model.train(training)
