"""What a dataset is: two splits of inputs and labels that have been checked.

>>> bits = np.array([[0, 1], [1, 0], [1, 1]], np.float32)
>>> split = Split(bits, np.array([1, 1, 0]))
>>> xor = Dataset("xor", split, split, ("same", "different"), ("a", "b"), binary=True)
>>> len(xor.train), xor.input_shape, xor.num_classes
(3, (2,), 2)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: More classes than this are taken for a mistake (labels that are really measurements or row numbers).
MAX_CLASSES = 10_000


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs and labels of one part of a dataset.

    Attributes:
        x: uint8 [n, channels, height, width] images, or float32 [n, features] values in [0, 1].
        y: int64 [n], the class of each row, from 0 to classes - 1.
    """

    x: NDArray[Any]
    y: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A train and a test split with the names of classes and features; checks itself when built.

    Attributes:
        name: What the dataset is called.
        train: The split to learn from.
        test: The split to measure on; agrees with ``train`` in shape and dtype.
        classes: The name of each class.
        feature_names: The name of each feature, or () for images.
        binary: True if ``x`` holds only 0 and 1, so that no thermometer is needed.

    Raises:
        ValueError: If shapes, dtypes, values or labels break the rules above.
    """

    name: str
    train: Split
    test: Split
    classes: tuple[str, ...]
    feature_names: tuple[str, ...]
    binary: bool

    def __post_init__(self) -> None:
        if not 2 <= len(self.classes) <= MAX_CLASSES:
            raise ValueError(f"{self.name}: needs 2 to {MAX_CLASSES} classes, got {len(self.classes)}")
        for kind, listed in (("class", self.classes), ("feature", self.feature_names)):
            _check_names(self.name, kind, listed)
        for part, split in (("train", self.train), ("test", self.test)):
            _check_split(f"{self.name}, {part} split", split, self)
        if self.train.x.shape[1:] != self.test.x.shape[1:] or self.train.x.dtype != self.test.x.dtype:
            raise ValueError(
                f"{self.name}: train and test inputs must agree in shape and dtype, got "
                f"{_describe(self.train.x)} and {_describe(self.test.x)}"
            )

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input: (channels, height, width) or (features,)."""
        return tuple(self.train.x.shape[1:])

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)


def validation_split(split: Split, fraction: float, seed: int) -> tuple[Split, Split]:
    """Take a random part of a split away for validation: (rest, validation).

    The validation part has ``round(fraction * n)`` rows, at least one; both parts keep the order of the rows.
    The choice depends on n, ``fraction`` and ``seed`` alone.

    >>> rows = Split(np.zeros((10, 4), np.float32), np.arange(10))
    >>> rest, validation = validation_split(rows, 0.2, seed=0)
    >>> len(rest), len(validation)
    (8, 2)
    """
    rest, held = holdout(len(split), fraction, seed)
    return Split(split.x[rest], split.y[rest]), Split(split.x[held], split.y[held])


def holdout(count: int, fraction: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers of a random division into (rest, held out), each in ascending order."""
    if not 0 < fraction < 1:
        raise ValueError(f"the fraction to hold out must lie between 0 and 1, got {fraction}")
    if count < 2:
        raise ValueError(f"cannot divide {count} row(s) into two parts; at least 2 are needed")
    if seed < 0:
        raise ValueError(f"the seed of a split must not be negative, got {seed}")
    held = min(max(round(fraction * count), 1), count - 1)
    order = np.random.default_rng(seed).permutation(count)
    return np.sort(order[held:]), np.sort(order[:held])


def class_labels(values: NDArray[Any], where: str) -> NDArray[np.int64]:
    """Whole-number labels as int64 [n], refused where they cannot be labels at all."""
    if values.dtype.kind not in "iu":
        raise ValueError(f"{where}: labels must be whole numbers, got dtype {values.dtype}")
    if values.ndim != 1:
        raise ValueError(f"{where}: labels must have shape [n], got {list(values.shape)}")
    if values.size and (values.min() < 0 or values.max() >= MAX_CLASSES):
        raise ValueError(f"{where}: labels must lie in 0..{MAX_CLASSES - 1}, got {values.min()}..{values.max()}")
    return values.astype(np.int64)


def is_bits(*arrays: NDArray[Any]) -> bool:
    """Whether all values are 0 or 1."""
    return all(bool(np.all((values == 0) | (values == 1))) for values in arrays)


def _check_split(where: str, split: Split, dataset: Dataset) -> None:
    x, y = split.x, split.y
    if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray):
        raise ValueError(f"{where}: x and y must be numpy arrays, got {type(x).__name__}, {type(y).__name__}")
    images = x.ndim == 4 and x.dtype == np.uint8
    if not images and not (x.ndim == 2 and x.dtype == np.float32):
        raise ValueError(
            f"{where}: x must be uint8 [n, channels, height, width] or float32 [n, features], got {_describe(x)}"
        )
    if len(x) == 0 or x.size == 0:
        raise ValueError(f"{where}: is empty, x has shape {list(x.shape)}")
    if y.shape != (len(x),) or y.dtype != np.int64:
        raise ValueError(f"{where}: y must be int64 [{len(x)}], got {_describe(y)}")
    if y.min() < 0 or y.max() >= len(dataset.classes):
        raise ValueError(f"{where}: labels must lie in 0..{len(dataset.classes) - 1}, got {y.min()}..{y.max()}")
    if images:
        if dataset.binary or dataset.feature_names:
            raise ValueError(f"{where}: images are neither binary nor do they have feature names")
        return
    if dataset.feature_names and len(dataset.feature_names) != x.shape[1]:
        raise ValueError(f"{where}: {len(dataset.feature_names)} feature names for {x.shape[1]} features")
    check_unit_range(x, where)
    if dataset.binary and not is_bits(x):
        raise ValueError(f"{where}: a binary dataset holds only 0 and 1")


def _check_names(where: str, kind: str, names: tuple[str, ...]) -> None:
    for name in names:
        # Names are shown on terminals and in plots, so control characters and broken text stop here.
        if not isinstance(name, str) or not name or not name.isprintable():
            raise ValueError(f"{where}: a {kind} name must be printable text, got {name!r:.60}")
    if len(set(names)) != len(names):
        raise ValueError(f"{where}: two {kind} names are the same")


def check_unit_range(x: NDArray[Any], where: str) -> None:
    """Raise ValueError unless all values are finite and within [0, 1]."""
    low, high = x.min(), x.max()
    if low >= 0 and high <= 1:
        return
    # A NaN anywhere makes both extremes NaN, so the comparison above is the whole fast path.
    if not np.isfinite(x).all():
        row = int(np.argwhere(~np.isfinite(x))[0, 0])
        raise ValueError(f"{where}: inputs must be finite, row {row} holds {x[row][~np.isfinite(x[row])][0]}")
    raise ValueError(f"{where}: inputs must lie in [0, 1], got {low}..{high}")


def _describe(x: NDArray[Any]) -> str:
    return f"{x.dtype} {list(x.shape)}"
