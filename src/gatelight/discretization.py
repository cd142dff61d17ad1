"""From a trained model to a circuit: the only bridge from torch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from gatelight import truthtable
from gatelight.circuit import Circuit
from gatelight.nn import GroupSum, LogicDense, LogicNetwork, LogicStack, Thermometer


def discretize(
    model: nn.Module, *, input_shape: Sequence[int] | None = None, class_names: Sequence[str] = ()
) -> Circuit:
    """Round every gate of a model and return the circuit that computes the same class scores.

    >>> net = nn.Sequential(LogicDense(4, 6, seed=0), LogicDense(6, 4, arity=3, seed=1), GroupSum(2))
    >>> discretize(net)
    Circuit(inputs=4, gates=10, depth=2, outputs=4, classes=2)

    Args:
        model: A :class:`~gatelight.nn.LogicNetwork`, or an ``nn.Sequential`` of an optional ``Thermometer``, then
            ``LogicDense`` layers or ``LogicStack``s of them, then a ``GroupSum``; ``nn.Flatten`` and
            ``nn.Identity`` may stand in between.
        input_shape: Shape of one sample where the model does not know it, such as (1, 28, 28).
        class_names: Names that the circuit carries along.
    """
    encoder, layers, head, flat = _parts(model)
    shape = model.input_shape if isinstance(model, LogicNetwork) else None
    if input_shape is not None:
        shape = tuple(input_shape)
    feature, threshold, shape = _encoding(encoder, layers[0].in_features, shape, flat)

    width = max(layer.arity for layer in layers)
    gates = sum(layer.out_features for layer in layers)
    fanin = np.full((gates, width), -1, np.int32)
    arity = np.empty(gates, np.uint8)
    table = np.empty(gates, np.uint64)
    first_net, first_gate = 0, 0
    for layer in layers:
        rows = slice(first_gate, first_gate + layer.out_features)
        fanin[rows, : layer.arity] = layer.fanin.cpu().numpy() + first_net
        arity[rows] = layer.arity
        table[rows] = truthtable.pack(layer.rounded_table().to(torch.uint8).cpu().numpy())
        first_net = len(feature) + first_gate
        first_gate += layer.out_features
    outputs = layers[-1].out_features
    if outputs % head.classes:
        raise ValueError(f"{head.classes} classes do not divide the {outputs} gates of the last layer")
    return Circuit(
        inputs=len(feature),
        fanin=fanin,
        arity=arity,
        table=table,
        outputs=np.arange(first_net, first_net + outputs, dtype=np.int32),
        group_start=np.arange(head.classes + 1, dtype=np.int32) * np.int32(outputs // head.classes),
        bias=np.zeros(head.classes, np.int32),
        temperature=head.temperature,
        features=math.prod(shape),
        encoder_feature=feature,
        encoder_threshold=threshold,
        class_names=tuple(class_names),
        feature_shape=shape,
    )


def _parts(model: nn.Module) -> tuple[Thermometer | None, list[LogicDense], GroupSum, bool]:
    """Take a model apart, refusing by name what has no circuit; last, whether the encoder sees flattened inputs."""
    if isinstance(model, LogicNetwork):
        return model.encoder, model.logic_layers, model.head, False
    if not isinstance(model, nn.Sequential):
        raise ValueError(f"cannot make a circuit of a {type(model).__name__}; expected a LogicNetwork or nn.Sequential")
    encoder: Thermometer | None = None
    layers: list[LogicDense] = []
    head: GroupSum | None = None
    flat = False
    for name, module in model.named_children():
        if isinstance(module, nn.Flatten | nn.Identity):
            flat = flat or (isinstance(module, nn.Flatten) and encoder is None)
            continue
        if isinstance(module, Thermometer) and encoder is None and not layers:
            encoder = module
        elif isinstance(module, LogicDense) and head is None:
            layers.append(module)
        elif isinstance(module, LogicStack) and head is None:
            layers.extend(module.layers)
        elif isinstance(module, GroupSum) and head is None and layers:
            head = module
        else:
            raise ValueError(f"cannot make a circuit of layer {name!r}, a {type(module).__name__} at this place")
    if head is None:
        raise ValueError("cannot make a circuit of a model that does not end in LogicDense layers and a GroupSum")
    return encoder, layers, head, flat


def _encoding(
    encoder: Thermometer | None, bits: int, shape: tuple[int, ...] | None, flat: bool
) -> tuple[NDArray[np.int32], NDArray[np.float32], tuple[int, ...]]:
    """Feature and threshold of every input bit, in the order in which the encoder lays the bits out.

    An encoder of images puts the planes of a channel one after the other; one that sees flattened features keeps the
    bits of a feature together.
    """
    count = 1 if encoder is None else encoder.count
    if shape is None:
        shape = (bits // count,)
    if math.prod(shape) * count != bits:
        raise ValueError(f"inputs of shape {shape} give {math.prod(shape) * count} bits, the first layer reads {bits}")
    channels = math.prod(shape) if flat else shape[0]
    features = np.arange(math.prod(shape), dtype=np.int32).reshape(channels, 1, -1)
    feature = np.broadcast_to(features, (channels, count, features.shape[2]))
    if encoder is None:
        threshold = np.full(feature.shape, 0.5, np.float32)
    else:
        thresholds = encoder.thresholds.cpu().numpy().reshape(-1, count, 1)
        threshold = np.broadcast_to(thresholds, feature.shape)
    return feature.reshape(-1), threshold.reshape(-1), shape
