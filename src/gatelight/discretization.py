"""From a trained model to a circuit: the only bridge from torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from gatelight import truthtable
from gatelight.circuit import Circuit
from gatelight.nn import (
    GroupSum,
    LogicConv2d,
    LogicConvStack,
    LogicDense,
    LogicNetwork,
    LogicStack,
    OrPool2d,
    Thermometer,
)
from gatelight.nn.conv_stack import ConvStep


def discretize(
    model: nn.Module, *, input_shape: Sequence[int] | None = None, class_names: Sequence[str] = ()
) -> Circuit:
    """Round every gate of a model and return the circuit that computes the same class scores.

    >>> net = nn.Sequential(LogicDense(4, 6, seed=0), LogicDense(6, 4, arity=3, seed=1), GroupSum(2))
    >>> discretize(net)
    Circuit(inputs=4, gates=10, depth=2, outputs=4, classes=2)

    Args:
        model: A :class:`~gatelight.nn.LogicNetwork`, or an ``nn.Sequential`` of an optional ``Thermometer``, then
            ``LogicConv2d`` and ``OrPool2d`` or ``LogicConvStack``s of them, ``LogicDense`` layers or ``LogicStack``s
            of them, and a ``GroupSum``; ``nn.Flatten`` and ``nn.Identity`` may stand in between.
        input_shape: Shape of one sample where the model does not know it, such as (1, 28, 28).
        class_names: Names that the circuit carries along.
    """
    parts = _parts(model)
    shape = model.input_shape if isinstance(model, LogicNetwork) else None
    if input_shape is not None:
        shape = tuple(input_shape)
    if parts.conv:
        if shape is None or len(shape) != 3:
            raise ValueError(f"convolutional layers need an input_shape (channels, h, w), got {shape}")
        bits = parts.conv[0].layer.in_channels * shape[1] * shape[2]
    else:
        bits = parts.dense[0].in_features
        if shape is None and parts.images and parts.encoder is not None and parts.encoder.count > 1:
            raise ValueError("give the input_shape of one sample: the order of the encoder's bits depends on it")
    feature, threshold, shape = _encoding(parts.encoder, bits, shape, parts.flat)

    netlist = Netlist(len(feature))
    nets = np.arange(len(feature), dtype=np.int32)
    image = shape[1:]
    for step in parts.conv:
        nets = nets.reshape(step.layer.in_channels, *image)
        nets = add_conv(netlist, nets, step)
        image = nets.shape[1:]
    nets = nets.reshape(-1)
    for layer in parts.dense:
        if len(nets) != layer.in_features:
            raise ValueError(f"layers of {len(nets)} outputs feed a dense one of {layer.in_features} inputs")
        nets = netlist.add(nets[layer.fanin.cpu().numpy()], layer.rounded_table().to(torch.uint8).cpu().numpy())
    classes = parts.head.classes
    if len(nets) % classes:
        raise ValueError(f"{classes} classes do not divide the {len(nets)} gates of the last layer")
    fanin, arity, table = netlist.arrays()
    return Circuit(
        inputs=len(feature),
        fanin=fanin,
        arity=arity,
        table=table,
        outputs=nets,
        group_start=np.arange(classes + 1, dtype=np.int32) * np.int32(len(nets) // classes),
        bias=np.zeros(classes, np.int32),
        temperature=parts.head.temperature,
        features=math.prod(shape),
        encoder_feature=feature,
        encoder_threshold=threshold,
        class_names=tuple(class_names),
        feature_shape=shape,
        feature_kind="bits" if parts.encoder is None else "bytes",
    )


class Netlist:
    """A circuit's gates in the making: layers are added one after the other.

    Args:
        inputs: Number of input bits.
    """

    def __init__(self, inputs: int) -> None:
        self.inputs, self.gates = inputs, 0
        self._parts: list[tuple[NDArray[np.int32], NDArray[np.uint64]]] = []

    def add(self, fanin: NDArray[np.int32], table: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Add gates and return their nets, int32 [gates].

        Args:
            fanin: Nets that each gate reads, int32 [gates, arity]; -1 is constant false and is folded into the table.
            table: Rounded tables, uint8 [gates, 2**arity].
        """
        gates, arity = fanin.shape
        nets = np.arange(gates, dtype=np.int32) + np.int32(self.inputs + self.gates)
        absent = fanin < 0
        pattern = absent @ (1 << np.arange(arity))
        order = []
        for value in np.unique(pattern):
            rows = np.flatnonzero(pattern == value)
            keep = ~absent[rows[0]]
            # One axis for each input; an input that is false has index 0 on its axis.
            cube = table[rows].reshape(-1, *(2,) * arity)[(slice(None), *(slice(None) if k else 0 for k in keep))]
            packed = truthtable.pack(cube.reshape(len(rows), -1)) if keep.any() else cube.astype(np.uint64)
            self._parts.append((fanin[rows][:, keep], packed))
            order.append(rows)
        self.gates += gates
        renamed = np.empty_like(nets)
        if order:
            renamed[np.concatenate(order)] = nets
        return renamed

    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.uint64]]:
        """fanin, arity and table of all gates, as a circuit holds them."""
        width = max((part.shape[1] for part, _ in self._parts), default=0)
        fanin = np.full((self.gates, width), -1, np.int32)
        arity = np.empty(self.gates, np.uint8)
        table = np.empty(self.gates, np.uint64)
        first = 0
        for nets, tables in self._parts:
            rows = slice(first, first + len(nets))
            fanin[rows, : nets.shape[1]], arity[rows], table[rows] = nets, nets.shape[1], tables
            first += len(nets)
        return fanin, arity, table


def add_conv(netlist: Netlist, image: NDArray[np.int32], step: ConvStep) -> NDArray[np.int32]:
    """Unroll a convolutional layer over all positions: nets [channels, h, w] -> nets [out_channels, h', w']."""
    layer = step.layer
    shape = layer.shape_for(image.shape[1], image.shape[2], step.pool)
    trees, positions, arity = layer.out_channels, shape.positions, shape.arity
    pixels = shape.leaf_pixels(layer.fanin.cpu()).numpy()
    # Index -1, the padding, reads the last entry.
    nets: NDArray[np.int32] = np.append(image.reshape(-1), np.int32(-1))[pixels]
    tables = layer.rounded_table().to(torch.uint8).cpu().numpy().reshape(trees, shape.tree_gates, 1, -1)
    first = shape.tree_gates
    for level in reversed(range(shape.depth)):
        gates = arity**level
        first -= gates
        fanin = nets.reshape(trees, gates, arity, positions).transpose(0, 1, 3, 2).reshape(-1, arity)
        table = np.broadcast_to(tables[:, first : first + gates], (trees, gates, positions, 1 << arity))
        nets = netlist.add(fanin, table.reshape(-1, 1 << arity))
    windows: NDArray[np.int32] = nets.reshape(-1, shape.pool**2)
    while windows.shape[1] > 1:
        paired = windows.shape[1] // 2 * 2
        pairs = windows[:, :paired].reshape(-1, 2)
        ors = netlist.add(pairs, np.broadcast_to(_OR, (len(pairs), 4)))
        windows = np.concatenate([ors.reshape(len(windows), -1), windows[:, paired:]], axis=1)
    return windows.reshape(trees, shape.out_height, shape.out_width)


_OR = truthtable.from_name("or", 2)


class _Parts(NamedTuple):
    """A model taken apart; ``flat`` tells whether the encoder sees flattened inputs, ``images`` whether it may not."""

    encoder: Thermometer | None
    conv: list[ConvStep]
    dense: list[LogicDense]
    head: GroupSum
    flat: bool
    images: bool


def _parts(model: nn.Module) -> _Parts:
    """Take a model apart, refusing by name what has no circuit."""
    if isinstance(model, LogicNetwork):
        steps = model.conv.steps if model.conv is not None else []
        return _Parts(model.encoder, steps, model.layers.layers, model.head, flat=False, images=True)
    if not isinstance(model, nn.Sequential):
        raise ValueError(f"cannot make a circuit of a {type(model).__name__}; expected a LogicNetwork or nn.Sequential")
    encoder: Thermometer | None = None
    conv: list[LogicConv2d | OrPool2d] = []
    layers: list[LogicDense] = []
    head: GroupSum | None = None
    flat = flattened = False
    for name, module in model.named_children():
        if isinstance(module, nn.Flatten | nn.Identity):
            flattened = flattened or isinstance(module, nn.Flatten)
            flat = flat or (isinstance(module, nn.Flatten) and encoder is None and not conv)
            continue
        before_dense = not (flattened or layers or head)
        if isinstance(module, Thermometer) and encoder is None and not conv and not layers:
            encoder = module
        elif before_dense and (isinstance(module, LogicConv2d) or (isinstance(module, OrPool2d) and conv)):
            conv.append(module)
        elif isinstance(module, LogicConvStack) and before_dense:
            conv.extend(layer for layer in module if isinstance(layer, LogicConv2d | OrPool2d))
        elif isinstance(module, LogicDense) and head is None:
            layers.append(module)
        elif isinstance(module, LogicStack) and head is None:
            layers.extend(module.layers)
        elif isinstance(module, GroupSum) and head is None and (layers or conv):
            head = module
        else:
            raise ValueError(f"cannot make a circuit of layer {name!r}, a {type(module).__name__} at this place")
    if head is None:
        raise ValueError("cannot make a circuit of a model that does not end in logic layers and a GroupSum")
    steps = LogicConvStack(conv).steps if conv else []
    return _Parts(encoder, steps, layers, head, flat, images=flattened and not flat)


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
        if encoder.thresholds.ndim == 2 and len(encoder.thresholds) != channels:
            raise ValueError(f"the encoder is for {len(encoder.thresholds)} features or channels, got shape {shape}")
        thresholds = encoder.thresholds.float().cpu().numpy().reshape(-1, count, 1)
        threshold = np.broadcast_to(thresholds, feature.shape)
    return feature.reshape(-1), threshold.reshape(-1), shape
