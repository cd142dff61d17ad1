"""The networks of the papers as tables of values: their sizes, and the recipes they are trained with.

>>> CDLGN["cifar10"]["S"].k, CDLGN["cifar10"]["S"].temperature
(32, 20.0)
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from gatelight.data.catalog import TASKS
from gatelight.data.task import Task
from gatelight.names import check_name

__all__ = ["CDLGN", "DLGN", "MODELS", "TASKS", "ConvSize", "DenseSize", "Size", "Task", "size_of", "sizes"]

MODELS = ("dlgn", "cdlgn")


@dataclass(frozen=True, kw_only=True)
class Size:
    """What the networks have in common, and how they are trained.

    Attributes:
        temperature: Divisor of the group sums.
        thresholds: Thermometer thresholds of each value; 0 if the inputs are bits.
        learning_rate: Learning rate of Adam.
        batch: Samples per step.
        steps: Training steps.
        validation: Share of the training set that is held out.
        schedule: ``constant`` or ``cosine``.
        augment: ``none``, ``crop``, ``flip`` or ``crop-flip``.
        augment_scale: Smallest share of an image's area that a crop shows.
        weight_decay: Weight decay of AdamW, for ``op``; ``iwp`` has none.
    """

    temperature: float
    thresholds: int
    learning_rate: float = 0.01
    batch: int = 100
    steps: int = 250_000
    validation: float = 0.1
    schedule: str = "constant"
    augment: str = "none"
    augment_scale: float = 0.5
    weight_decay: float = 0.0


@dataclass(frozen=True, kw_only=True)
class DenseSize(Size):
    """A dense network.

    Attributes:
        layers: Logic layers at depth scale 1.
        width: Gates of each layer.
    """

    layers: int
    width: int


@dataclass(frozen=True, kw_only=True)
class ConvSize(Size):
    """A convolutional network: blocks of trees of gates and 2 x 2 OR-pooling, then dense layers.

    Attributes:
        k: Channels of the first block; everything is a multiple of it.
        factors: Channels of each block in units of k.
        first_window: Side of the first block's window. 3 is padded by 1 like all later ones, 5 is not padded.
        head: Gates of the dense layers in units of k.
        head_factor: What the head's widths are multiplied by.
    """

    k: int
    factors: tuple[int, ...] = (1, 4, 16, 32)
    first_window: int = 3
    head: tuple[int, ...] = (1280, 640, 320)
    head_factor: int = 1

    def channels(self) -> list[int]:
        """Channels of each block."""
        return [self.k * factor for factor in self.factors]


def _for_cifar100(table: dict[str, Size]) -> dict[str, Size]:
    """The same widths for ten times the classes: groups shrink, and the temperature by sqrt(10) with them."""
    return {
        name: dataclasses.replace(size, temperature=size.temperature / math.sqrt(10)) for name, size in table.items()
    }


def _dense(layers: int, width: int, temperature: float, thresholds: int, **recipe: Any) -> Size:
    return DenseSize(layers=layers, width=width, temperature=temperature, thresholds=thresholds, **recipe)


#: Slightly zoomed and shifted digits and a falling learning rate take MNIST S past the 97.69% of the paper of 2022.
_MNIST_S = DenseSize(
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
_MNIST: dict[str, Size] = {"S": _MNIST_S, "M": dataclasses.replace(_MNIST_S, width=64_000, temperature=1 / 0.03)}
_CIFAR10 = {
    "S": _dense(4, 12_000, 1 / 0.03, 3),
    "M": _dense(4, 128_000, 100.0, 3),
    "L": _dense(5, 256_000, 100.0, 31),
}

#: Petersen et al. 2022.
DLGN: dict[str, dict[str, Size]] = {
    "digits": {
        "S": DenseSize(
            layers=4, width=2_000, temperature=10.0, thresholds=7, learning_rate=0.02, steps=2_000, schedule="cosine"
        )
    },
    "mnist": _MNIST,
    "mnist20": _MNIST,
    "fashion-mnist": _MNIST,
    "cifar10": _CIFAR10,
    "cifar100": _for_cifar100(_CIFAR10),
    "adult": {"S": _dense(5, 256, 1 / 0.075, 0, steps=20_000)},
    "breast-cancer": {"S": _dense(5, 128, 10.0, 0, steps=5_000, validation=0.0)},
    "monk1": {"S": _dense(6, 24, 1.0, 0, steps=5_000, validation=0.0)},
    "monk2": {"S": _dense(6, 12, 1.0, 0, steps=5_000, validation=0.0, learning_rate=0.1)},
    "monk3": {"S": _dense(6, 12, 1.0, 0, steps=5_000, validation=0.0)},
}

_C_S = ConvSize(
    k=32,
    temperature=20.0,
    thresholds=3,
    learning_rate=0.02,
    batch=128,
    steps=40_000,
    validation=0.05,
    schedule="cosine",
    augment="flip",
    weight_decay=0.002,
)
#: B and larger also had fixed edge detectors and a teacher network, which are not published and not included here.
_C_CIFAR10: dict[str, Size] = {
    "S": _C_S,
    "M": dataclasses.replace(_C_S, k=256, temperature=40.0),
    "B": dataclasses.replace(_C_S, k=512, temperature=280.0, thresholds=31, head_factor=2),
    "L": dataclasses.replace(_C_S, k=1024, temperature=340.0, thresholds=31, head_factor=2),
    "G": dataclasses.replace(_C_S, k=2560, temperature=450.0, thresholds=31, weight_decay=0.001),
}
_C_M_S = ConvSize(
    k=16,
    factors=(1, 3, 9),
    first_window=5,
    head_factor=2,
    temperature=6.5,
    thresholds=1,
    learning_rate=0.02,
    batch=512,
    steps=20_000,
    validation=0.05,
    schedule="cosine",
    augment="crop",
    augment_scale=0.85,
)
_C_MNIST: dict[str, Size] = {
    "S": _C_M_S,
    "M": dataclasses.replace(_C_M_S, k=64, temperature=28.0, batch=256),
    "L": dataclasses.replace(_C_M_S, k=256, temperature=35.0, batch=128, head_factor=1),
}

#: Petersen et al. 2024. A thermometer of "b bits" has 2**b - 1 thresholds.
CDLGN: dict[str, dict[str, Size]] = {
    "digits": {
        "S": ConvSize(
            k=16, factors=(1, 4), head=(80, 40), temperature=5.0, thresholds=3, learning_rate=0.02, steps=1_000,
            schedule="cosine",
        )
    },
    "mnist": _C_MNIST,
    "mnist20": _C_MNIST,
    "fashion-mnist": _C_MNIST,
    "cifar10": _C_CIFAR10,
    "cifar100": _for_cifar100(_C_CIFAR10),
}  # fmt: skip

#: For your own data. Widths are rounded up to a multiple of the classes.
OWN_DATA = {"S": _dense(4, 2_000, 10.0, 3, steps=5_000), "M": _dense(4, 16_000, 30.0, 3, steps=20_000)}
OWN_IMAGES: dict[str, Size] = {
    "S": ConvSize(k=16, head=(640, 320), temperature=10.0, thresholds=3, learning_rate=0.02, steps=5_000),
    "M": ConvSize(k=64, head=(640, 320), temperature=20.0, thresholds=3, learning_rate=0.02, steps=20_000),
}


def sizes(dataset: str, model: str = "dlgn") -> dict[str, Size]:
    """The sizes of a data set's network; those for your own data if the papers do not have it."""
    check_name("model", model, MODELS)
    if model == "dlgn":
        return DLGN.get(dataset, OWN_DATA)
    return CDLGN.get(dataset, OWN_IMAGES)


def size_of(dataset: str, size: str, model: str = "dlgn") -> Size:
    """One size by its name, with a ValueError that lists the known ones."""
    table = sizes(dataset, model)
    return table[check_name(f"size of the {dataset} network", size, table)]
