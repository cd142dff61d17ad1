"""The values of a network that its size decides unless others are given."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gatelight.sizes import DLGN, ConvSize, DenseSize, Task, size_of


@dataclass(frozen=True)
class Settled:
    """What a size decides if nothing else is given; see :func:`build` for the meaning.

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
        return Settled(None, positive("width", chosen.k if width is None else width), temperature, thresholds)
    assert isinstance(chosen, DenseSize)
    if width is None:
        width = chosen.width if dataset in DLGN else round_up(chosen.width, task.classes)
    _check_width(positive("width", width), task.classes, 10 if wide_head else 1)
    depth = positive("layers", chosen.layers if layers is None else layers)
    return Settled(depth, width, temperature, thresholds)


def _check_width(width: int, classes: int, factor: int) -> None:
    """Refuse a width that the classes cannot share equally, and suggest the nearest one that works."""
    if width * factor % classes:
        unit = classes // math.gcd(classes, factor)
        near = max(1, round(width / unit)) * unit
        raise ValueError(
            f"{classes} classes do not divide the {width * factor} gates of the last layer; "
            f"the nearest width that works is {near}"
        )


def round_up(value: int, unit: int) -> int:
    """The smallest multiple of a unit that is at least a value."""
    return -(-value // unit) * unit


def positive(what: str, value: int) -> int:
    """A number of at least 1, or a ValueError."""
    if value < 1:
        raise ValueError(f"{what} must be at least 1, got {value}")
    return value
