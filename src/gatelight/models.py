"""Builds the networks of :mod:`gatelight.sizes`, by data set, model, size and depth scale.

>>> net = build("mnist", size="S", width=200, seed=0)      # a narrow version of MNIST S
>>> [layer.out_features for layer in net.layers], net.head.temperature
([200, 200, 200, 200, 200, 200], 10.0)
>>> build("cifar10", model="cdlgn", width=4, seed=0).gates      # k = 4 in place of 32
120064
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gatelight import parametrize
from gatelight.names import check_name
from gatelight.nn.conv import LogicConv2d
from gatelight.nn.conv_stack import LogicConvStack
from gatelight.nn.dense import LogicDense
from gatelight.nn.encode import Thermometer
from gatelight.nn.head import GroupSum
from gatelight.nn.layer import make_generator
from gatelight.nn.linking import list_linked
from gatelight.nn.network import LogicNetwork
from gatelight.nn.pool import OrPool2d
from gatelight.nn.regularize import GateIntervention, PathDropout, residual_masks
from gatelight.parametrize import IWP, Init, Parametrization
from gatelight.sizes import CDLGN, DLGN, MODELS, TASKS, ConvSize, DenseSize, Task, size_of
from gatelight.wiring import Leaves, Placed
from gatelight.wiring import make as make_wiring

__all__ = ["CDLGN", "DLGN", "MODELS", "TASKS", "Settled", "Task", "build", "settle", "size_of"]

ENCODINGS = ("even", "quantile")


@dataclass(frozen=True)
class Settled:
    """What a size decides where nothing else is asked for; see :func:`build` for the meaning.

    Attributes:
        layers: Logic layers at depth scale 1; None for cdlgn, which has no such choice.
        width: Gates of each layer, or k.
        temperature: Divisor of the group sums.
        thresholds: Thermometer thresholds of each value.
    """

    layers: int | None
    width: int
    temperature: float
    thresholds: int


def settle(
    dataset: str,
    model: str = "dlgn",
    size: str = "S",
    *,
    task: Task,
    layers: int | None = None,
    width: int | None = None,
    temperature: float | None = None,
    thresholds: int | None = None,
    wide_head: bool = False,
) -> Settled:
    """The values that a network is built with: those given, else those of the size.

    >>> settle("mine", task=Task((30,), 7), temperature=5.0)
    Settled(layers=4, width=2002, temperature=5.0, thresholds=3)
    """
    chosen = size_of(dataset, size, model)
    if wide_head and dataset != "cifar100":
        raise ValueError(f"wide_head is for cifar100, not {dataset}")
    if temperature is None:
        temperature = chosen.temperature * (math.sqrt(10) if wide_head else 1.0)
    if thresholds is None:
        thresholds = 0 if task.binary else chosen.thresholds or 3
    if thresholds == 0 and not task.binary:
        raise ValueError(f"thresholds 0 takes the inputs as bits, but those of {dataset} are not only 0 and 1")
    if isinstance(chosen, ConvSize):
        if layers is not None:
            raise ValueError(f"layers and residual_fraction are for the model dlgn, not for cdlgn: got layers {layers}")
        return Settled(None, _positive("width", chosen.k if width is None else width), temperature, thresholds)
    assert isinstance(chosen, DenseSize)
    if width is None:
        width = chosen.width if dataset in DLGN else _round_up(chosen.width, task.classes)
    _check_width(_positive("width", width), task.classes, 10 if wide_head else 1)
    depth = _positive("layers", chosen.layers if layers is None else layers)
    return Settled(depth, width, temperature, thresholds)


def _check_width(width: int, classes: int, factor: int) -> None:
    """Refuse a width from which the classes get unequal shares, with the nearest that works."""
    if width * factor % classes:
        unit = classes // math.gcd(classes, factor)
        near = max(1, round(width / unit)) * unit
        raise ValueError(
            f"{classes} classes do not divide the {width * factor} gates of the last layer; "
            f"the nearest width that works is {near}"
        )


def build(
    dataset: str,
    model: str = "dlgn",
    size: str = "S",
    depth_scale: int = 1,
    *,
    task: Task | None = None,
    layers: int | None = None,
    width: int | None = None,
    temperature: float | None = None,
    thresholds: int | None = None,
    encoding: str = "even",
    samples: Tensor | None = None,
    wide_head: bool = False,
    tree_depth: int = 3,
    channels_per_tree: int | None = None,
    arity: int = 2,
    parametrization: str = "iwp",
    estimator: str = "sin",
    init: str = "residual",
    init_strength: float | None = None,
    init_spread: float | None = None,
    wiring: str = "clustered",
    residual_fraction: float = 0.0,
    intervention: float = 0.0,
    intervention_value: str = "bernoulli",
    dropout: float = 0.0,
    seed: int | None = None,
) -> LogicNetwork:
    """Build a network with fresh connections and parameters.

    Args:
        dataset: A name in :data:`TASKS`, or any name together with ``task``.
        model: ``dlgn``, the dense network, or ``cdlgn``, the convolutional one.
        size: A size of the data set's network, such as ``S`` or ``M``.
        depth_scale: D logic layers stand where the original network has one. Widths and channels change in the first
            of them, pooling comes after the last.
        task: Input shape and classes of data that is not in the papers.
        layers: Logic layers at depth scale 1, in place of the size's (dlgn).
        width: Gates of each layer, in place of the size's; for cdlgn the k of which all widths are multiples.
        temperature: Divisor of the group sums, in place of the size's.
        thresholds: Thermometer thresholds of each value, in place of the size's; 0 takes the inputs as bits.
        encoding: ``even`` thresholds, or ``quantile`` thresholds fitted to ``samples``.
        samples: Training inputs, for ``quantile``.
        wide_head: CIFAR-100's other way to meet 100 classes: a ten times wider last layer at CIFAR-10's temperature.
        tree_depth: Levels of gates in a tree of the convolution (cdlgn).
        channels_per_tree: Channels that a tree reads; None, the paper's way, is any (cdlgn).
        arity: Inputs of a gate; see :class:`~gatelight.nn.LogicDense`, as for the next six.
        parametrization: ``iwp`` or ``op``.
        estimator: Of ``iwp``.
        init: Where the gates start.
        init_strength: How far the init leans to its function.
        init_spread: Standard deviation of the init.
        wiring: Of the dense layers: ``random``, ``unique``, or ``clustered``, which is random but that every second of
            the layers with 32,768 inputs and more reads inside clusters of 1,024, and so trains faster on a CPU.
        residual_fraction: Share of the last layer's gates that end a fixed residual connection (dlgn).
        intervention: Probability of a gate intervention in training.
        intervention_value: What an intervention puts in place of the output.
        dropout: Probability of path-connected dropout in training.
        seed: Draws all connections and parameters.
    """
    check_name("model", model, MODELS)
    check_name("encoding", encoding, ENCODINGS)
    if task is None:
        task = TASKS[check_name("data set", dataset, TASKS)]
    if model == "cdlgn" and residual_fraction:
        raise ValueError("layers and residual_fraction are for the model dlgn, not for cdlgn")
    chosen = size_of(dataset, size, model)
    depth_scale = _positive("depth scale", depth_scale)
    settled = settle(
        dataset,
        model,
        size,
        task=task,
        layers=layers,
        width=width,
        temperature=temperature,
        thresholds=thresholds,
        wide_head=wide_head,
    )
    thresholds = settled.thresholds
    if not intervention and intervention_value != "bernoulli":
        raise ValueError(f"intervention_value {intervention_value!r} needs an intervention above 0")
    encoder = _encoder(thresholds, encoding, samples)
    gates: dict[str, Any] = {
        "parametrization": _parametrization(parametrization, arity, estimator),
        "init": Init(init, init_strength, init_spread),
    }

    generator = make_generator(seed)
    conv = None
    bits = math.prod(task.shape) * max(thresholds, 1)
    if isinstance(chosen, ConvSize):
        image = _image(dataset, task.shape, max(thresholds, 1))
        k = settled.width
        conv = _conv_stack(chosen, image, k, depth_scale, generator, gates, tree_depth, channels_per_tree)
        last = conv.shapes(*image[1:])[-1]
        bits = conv.layers[-1].out_channels * last.out_height * last.out_width
        widths = [k * units * chosen.head_factor for units in chosen.head for _ in range(depth_scale)]
        widths[-1] = _round_up(widths[-1], task.classes)
    else:
        assert settled.layers is not None
        if tree_depth != 3 or channels_per_tree is not None:
            raise ValueError("tree_depth and channels_per_tree are for the model cdlgn, not for dlgn")
        widths = [settled.width] * (settled.layers * depth_scale)
    if wide_head:
        widths[-1] *= 10
    if residual_fraction and len(widths) == 1:
        raise ValueError("residual_fraction needs at least two layers: a fixed connection ends in a later one")
    seeds = torch.randint(0, 1 << 62, (len(widths) + 1,), generator=generator).tolist()
    masks = residual_masks(widths, residual_fraction, seeds[-1]) if residual_fraction else None
    chosen_wiring = make_wiring(wiring)
    dense = []
    for index, (inputs, count) in enumerate(zip([bits, *widths], widths, strict=False)):
        ends = index == len(widths) - 1
        place = Placed(chosen_wiring, index, task.classes if ends else 1, passes_on=bool(residual_fraction))
        fixed = masks[index] if masks else None
        layer = LogicDense(inputs, count, wiring=place, seed=seeds[index], fixed=fixed, **gates)
        if not ends:
            list_linked(layer)
        if layer.fixed is not None:
            layer.fanin[layer.fixed, 0] = layer.fixed.nonzero().flatten().int()
        dense.append(layer)
    return LogicNetwork(
        encoder,
        dense,
        GroupSum(task.classes, settled.temperature),
        conv=conv,
        intervention=GateIntervention(intervention, intervention_value) if intervention else None,
        dropout=PathDropout(dropout) if dropout else None,
        input_shape=task.shape,
    )


def _conv_stack(
    size: ConvSize,
    image: tuple[int, int, int],
    k: int,
    depth_scale: int,
    generator: torch.Generator,
    gates: dict[str, Any],
    tree_depth: int,
    channels_per_tree: int | None,
) -> LogicConvStack:
    """Blocks of D convolutional layers and 2 x 2 pooling, as many as the image has room for."""

    def modules() -> Iterator[LogicConv2d | OrPool2d]:
        channels, height, width = image
        for block, factor in enumerate(size.factors):
            for layer in range(depth_scale):
                window = size.first_window if block == layer == 0 else 3
                padding = 0 if window == 5 else 1
                height, width = height + 2 * padding - window + 1, width + 2 * padding - window + 1
                yield LogicConv2d(
                    channels,
                    k * factor,
                    window,
                    tree_depth=tree_depth,
                    padding=padding,
                    # The first block of a grey image has one channel to offer.
                    wiring=Leaves(None if channels_per_tree is None else min(channels_per_tree, channels)),
                    seed=int(torch.randint(0, 1 << 62, (), generator=generator)),
                    **gates,
                )
                channels = k * factor
            yield OrPool2d(2)
            height, width = height // 2, width // 2
            if min(height, width) < 2:
                return

    return LogicConvStack(modules())


def _image(dataset: str, shape: tuple[int, ...], planes: int) -> tuple[int, int, int]:
    """Channels, height and width of the encoded images of a task."""
    if len(shape) != 3 or min(shape[1:]) < 4 or (dataset in TASKS and dataset not in CDLGN):
        raise ValueError(f"the model cdlgn needs images of at least 4 x 4 pixels, but a sample of {dataset} is {shape}")
    return shape[0] * planes, shape[1], shape[2]


def _parametrization(name: str | Parametrization, arity: int, estimator: str) -> Parametrization:
    """The parametrization; an estimator other than the default must be one of its options."""
    options: dict[str, Any] = {"arity": arity}
    if isinstance(name, str) and (estimator != IWP().estimator or name == "iwp"):
        options["estimator"] = estimator
    return parametrize.make(name, **options)


def _encoder(thresholds: int, encoding: str, samples: Tensor | None) -> Thermometer | None:
    if thresholds == 0:
        return None
    if encoding == "even":
        return Thermometer.even(thresholds)
    if samples is None:
        raise ValueError("encoding 'quantile' is fitted to data: pass samples")
    return Thermometer.fit(samples, thresholds)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _positive(what: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"{what} must be at least 1, got {value}")
    return value
