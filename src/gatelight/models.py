"""The networks of the papers, by data set, size and depth scale, described by plain values.

>>> net = build("mnist", size="S", width=200, seed=0)      # a narrow version of MNIST S
>>> [layer.out_features for layer in net.logic_layers], net.head.temperature
([200, 200, 200, 200, 200, 200], 10.0)
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gatelight.names import check_name
from gatelight.nn.dense import LogicDense, make_generator
from gatelight.nn.encode import Thermometer
from gatelight.nn.head import GroupSum
from gatelight.nn.network import LogicNetwork
from gatelight.nn.regularize import GateIntervention, PathDropout, residual_masks

MODELS = ("dlgn",)
ENCODINGS = ("even", "quantile")


@dataclass(frozen=True)
class Task:
    """What a data set asks of a network: the shape of its inputs, its classes, whether inputs are bits."""

    shape: tuple[int, ...]
    classes: int
    binary: bool = False


@dataclass(frozen=True)
class Size:
    """A dense network and the recipe it is trained with.

    Attributes:
        layers: Logic layers at depth scale 1.
        width: Gates of each layer.
        temperature: Divisor of the group sums.
        thresholds: Thermometer thresholds of each value; 0 where the inputs are bits.
        learning_rate: Of Adam.
        batch: Samples of a step.
        steps: Optimiser steps.
        validation: Share of the training set that is held out.
        schedule: ``constant`` or ``cosine``.
        augment: ``none``, ``crop``, ``flip`` or ``crop-flip``.
        augment_scale: Smallest share of an image's area that a crop shows.
    """

    layers: int
    width: int
    temperature: float
    thresholds: int
    learning_rate: float = 0.01
    batch: int = 100
    steps: int = 250_000
    validation: float = 0.1
    schedule: str = "constant"
    augment: str = "none"
    augment_scale: float = 0.5


TASKS = {
    "digits": Task((1, 8, 8), 10),
    "mnist": Task((1, 28, 28), 10),
    "mnist20": Task((1, 20, 20), 10),
    "fashion-mnist": Task((1, 28, 28), 10),
    "cifar10": Task((3, 32, 32), 10),
    "cifar100": Task((3, 32, 32), 100),
    "adult": Task((116,), 2, binary=True),
    "breast-cancer": Task((51,), 2, binary=True),
    "monk1": Task((17,), 2, binary=True),
    "monk2": Task((17,), 2, binary=True),
    "monk3": Task((17,), 2, binary=True),
}

#: Slightly zoomed and shifted digits and a falling learning rate take MNIST S past the 97.69 % of the paper of 2022.
_MNIST_S = Size(
    layers=6,
    width=8_000,
    temperature=10.0,
    thresholds=1,
    learning_rate=0.02,
    steps=60_000,
    validation=0.05,
    schedule="cosine",
    augment="crop",
    augment_scale=0.85,
)
_MNIST = {"S": _MNIST_S, "M": dataclasses.replace(_MNIST_S, width=64_000, temperature=1 / 0.03)}
_CIFAR10 = {
    "S": Size(4, 12_000, 1 / 0.03, 3),
    "M": Size(4, 128_000, 100.0, 3),
    "L": Size(5, 256_000, 100.0, 31),
}

#: Petersen et al. 2022; CIFAR-100 keeps the width, and its temperature shrinks by sqrt(10) with the groups.
DLGN = {
    "digits": {"S": Size(4, 2_000, 10.0, 7, learning_rate=0.02, steps=2_000, schedule="cosine")},
    "mnist": _MNIST,
    "mnist20": _MNIST,
    "fashion-mnist": _MNIST,
    "cifar10": _CIFAR10,
    "cifar100": {
        name: dataclasses.replace(size, temperature=size.temperature / math.sqrt(10)) for name, size in _CIFAR10.items()
    },
    "adult": {"S": Size(5, 256, 1 / 0.075, 0, steps=20_000)},
    "breast-cancer": {"S": Size(5, 128, 10.0, 0, steps=5_000, validation=0.0)},
    "monk1": {"S": Size(6, 24, 1.0, 0, steps=5_000, validation=0.0)},
    "monk2": {"S": Size(6, 12, 1.0, 0, steps=5_000, validation=0.0)},
    "monk3": {"S": Size(6, 12, 1.0, 0, steps=5_000, validation=0.0)},
}

#: For data of one's own. The width is rounded up to a multiple of the classes.
OWN_DATA = {"S": Size(4, 2_000, 10.0, 3, steps=5_000), "M": Size(4, 16_000, 30.0, 3, steps=20_000)}


def sizes(dataset: str) -> dict[str, Size]:
    """The sizes of a data set's network; :data:`OWN_DATA` for a data set not in the papers."""
    return DLGN.get(dataset, OWN_DATA)


def size_of(dataset: str, size: str) -> Size:
    """One size by its name, with a ValueError that lists the known ones."""
    table = sizes(dataset)
    return table[check_name(f"size of the {dataset} network", size, table)]


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
    arity: int = 2,
    parametrization: str = "iwp",
    estimator: str = "sin",
    init: str = "residual",
    init_strength: float | None = None,
    init_spread: float | None = None,
    wiring: str = "random",
    residual_fraction: float = 0.0,
    intervention: float = 0.0,
    intervention_value: str = "bernoulli",
    dropout: float = 0.0,
    seed: int | None = None,
) -> LogicNetwork:
    """Build a network with fresh connections and parameters.

    Args:
        dataset: A name in :data:`TASKS`, or any name together with ``task``.
        model: ``dlgn``, the dense network.
        size: A size of the data set's network, such as ``S`` or ``M``.
        depth_scale: D logic layers stand where the original network has one.
        task: Input shape and classes of data that is not in the papers.
        layers: Logic layers at depth scale 1, in place of the size's.
        width: Gates of each layer, in place of the size's.
        temperature: Divisor of the group sums, in place of the size's.
        thresholds: Thermometer thresholds of each value, in place of the size's; 0 takes the inputs as bits.
        encoding: ``even`` thresholds, or ``quantile`` thresholds fitted to ``samples``.
        samples: Training inputs, for ``quantile``.
        wide_head: CIFAR-100's other way to meet 100 classes: a ten times wider last layer at CIFAR-10's temperature.
        arity: Inputs of a gate; see :class:`~gatelight.nn.LogicDense`, as for the next six.
        parametrization: ``iwp`` or ``op``.
        estimator: Of ``iwp``.
        init: Where the gates start.
        init_strength: How far the init leans to its function.
        init_spread: Standard deviation of the init.
        wiring: ``random`` or ``unique``.
        residual_fraction: Share of the last layer's gates that end a fixed residual connection.
        intervention: Probability of a gate intervention in training.
        intervention_value: What an intervention puts in place of the output.
        dropout: Probability of path-connected dropout in training.
        seed: Draws all connections and parameters.
    """
    check_name("model", model, MODELS)
    check_name("encoding", encoding, ENCODINGS)
    if task is None:
        task = TASKS[check_name("data set", dataset, TASKS)]
    chosen = size_of(dataset, size)
    depth = _positive("layers", chosen.layers if layers is None else layers) * _positive("depth scale", depth_scale)
    if width is None:
        width = chosen.width if dataset in DLGN else -(-chosen.width // task.classes) * task.classes
    widths = [_positive("width", width)] * depth
    if temperature is None:
        temperature = chosen.temperature
        if wide_head:
            temperature *= math.sqrt(10)
    if wide_head:
        if dataset != "cifar100":
            raise ValueError(f"wide_head is for cifar100, not {dataset}")
        widths[-1] *= 10
    if thresholds is None:
        thresholds = 0 if task.binary else chosen.thresholds or 3
    encoder = _encoder(thresholds, encoding, samples)
    bits = math.prod(task.shape) * max(thresholds, 1)

    generator = make_generator(seed)
    seeds = torch.randint(0, 1 << 62, (depth + 1,), generator=generator).tolist()
    masks = residual_masks(widths, residual_fraction, seeds[-1]) if residual_fraction else None
    logic = []
    for index, (inputs, gates) in enumerate(zip([bits, *widths], widths, strict=False)):
        layer = LogicDense(
            inputs,
            gates,
            arity=arity,
            parametrization=parametrization,
            estimator=estimator,
            init=init,
            init_strength=init_strength,
            init_spread=init_spread,
            wiring=wiring,
            ordered=index < depth - 1,
            seed=seeds[index],
            fixed=masks[index] if masks else None,
        )
        if layer.fixed is not None:
            layer.fanin[layer.fixed, 0] = layer.fixed.nonzero().flatten().int()
        logic.append(layer)
    return LogicNetwork(
        encoder,
        logic,
        GroupSum(task.classes, temperature),
        intervention=GateIntervention(intervention, intervention_value) if intervention else None,
        dropout=PathDropout(dropout) if dropout else None,
        input_shape=task.shape,
    )


def _encoder(thresholds: int, encoding: str, samples: Tensor | None) -> Thermometer | None:
    if thresholds == 0:
        return None
    if encoding == "even":
        return Thermometer.even(thresholds)
    if samples is None:
        raise ValueError("encoding 'quantile' is fitted to data: pass samples")
    return Thermometer.fit(samples, thresholds)


def _positive(what: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"{what} must be at least 1, got {value}")
    return value
