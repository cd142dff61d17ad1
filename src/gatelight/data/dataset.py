"""What a data set is: two splits of inputs and labels that have been checked.

>>> bits = np.array([[0, 1], [1, 0], [1, 1]], np.float32)
>>> split = Split(bits, np.array([1, 1, 0]))
>>> xor = Dataset("xor", split, split, ("same", "different"), ("a", "b"), binary=True)
>>> len(xor.train), xor.input_shape, xor.num_classes
(3, (2,), 2)
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatelight.data.encoding import Encoding, class_name
from gatelight.names import shorten

#: More classes than this are treated as a mistake (labels that are really measurements or row numbers).
MAX_CLASSES = 10_000


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs and labels of one part of a data set.

    Attributes:
        x: uint8 or float32 [n, channels, height, width] images, or float32 [n, features]; floats lie in [0, 1].
        y: int64 [n], the class of each row, from 0 to classes - 1.
    """

    x: NDArray[Any]
    y: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A train and a test split with the names of classes and features; checks itself when built.

    Inputs may be given as any numbers, in any byte order, images also as [n, height, width]; the attributes hold them
    as :class:`Split` says. Whole numbers are divided by 255 (images of whole numbers become uint8, which means the
    same), unless they are bools or ``binary`` says that they are bits; floats stay as they are.

    >>> pixels = Split(np.array([[[0, 51], [102, 255]]] * 2), np.array([0, 1], np.uint8))
    >>> images = Dataset("tiny", pixels, pixels, ("a", "b"), (), binary=False)
    >>> images.train.x.dtype, images.input_shape
    (dtype('uint8'), (1, 2, 2))

    Attributes:
        name: The name of the dataset.
        train: The split to learn from.
        test: The split to measure on; agrees with ``train`` in shape and dtype.
        classes: The name of each class.
        feature_names: The name of each feature, or () for images.
        binary: True if ``x`` holds only 0 and 1, so that no thermometer is needed; it is then float32.
        encoding: For a table, how its columns became features.
        notes: Decisions made while reading a file, in lines that a user should see.

    Raises:
        ValueError: If shapes, dtypes, values or labels break the rules above.
    """

    name: str
    train: Split
    test: Split
    classes: tuple[str, ...]
    feature_names: tuple[str, ...]
    binary: bool
    encoding: Encoding | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            split = getattr(self, part)
            where = f"{self.name}, {part} split"
            x = _as_inputs(split.x, where, self.binary)
            object.__setattr__(self, part, Split(x, _as_labels(split.y, where)))
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

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of what a network is trained on: train inputs and labels, names of classes and features."""
        digest = hashlib.blake2b(digest_size=16)
        x, y = self.train.x, self.train.y
        about = [str(x.dtype), x.shape, self.classes, self.feature_names]
        digest.update(json.dumps(about).encode())
        digest.update(np.ascontiguousarray(x).data)
        digest.update(np.ascontiguousarray(y).data)
        return digest.hexdigest()

    def all_rows(self) -> Split:
        """The train rows, then the test rows."""
        x, y = (np.concatenate([getattr(part, key) for part in (self.train, self.test)]) for key in "xy")
        return Split(x, y)

    def with_classes(self, classes: Sequence[str]) -> Dataset:
        """The same data with labels that count in the order of ``classes``, matched by name.

        Names that are numbers match by value, "1" and "1.0" are one class.

        Raises:
            ValueError: If a class of this dataset is not among them.
        """
        if tuple(classes) == self.classes:
            return self
        order = class_order(self.classes, classes, self.name)
        train, test = (Split(split.x, order[split.y]) for split in (self.train, self.test))
        return dataclasses.replace(self, train=train, test=test, classes=tuple(classes))


def validation_split(split: Split, fraction: float, seed: int) -> tuple[Split, Split]:
    """Hold out a random part of a split for validation: (rest, validation).

    The validation part has ``round(fraction * n)`` rows, at least one; both parts keep the order of the rows.
    The choice depends only on n, ``fraction`` and ``seed``.

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
    """Whole-number labels as int64 [n], refused if they cannot be labels."""
    if values.dtype.kind not in "iu":
        raise ValueError(f"{where}: labels must be whole numbers, got dtype {values.dtype}")
    if values.ndim != 1:
        raise ValueError(f"{where}: labels must have shape [n], got {list(values.shape)}")
    if values.size and (values.min() < 0 or values.max() >= MAX_CLASSES):
        raise ValueError(f"{where}: labels must lie in 0..{MAX_CLASSES - 1}, got {values.min()}..{values.max()}")
    return values.astype(np.int64)


def class_order(given: Sequence[str], wanted: Sequence[str], where: str) -> NDArray[np.int64]:
    """The index of each given class among the wanted ones, by name, int64 [given].

    >>> class_order(("no", "yes"), ("yes", "no"), "mine"), class_order(("0", "1"), ("1.0", "0.0"), "mine")
    (array([1, 0]), array([1, 0]))
    """
    key = class_name if set(given) - set(wanted) else str
    place = {key(name): index for index, name in enumerate(wanted)}
    for name in given:
        if key(name) not in place or len(place) < len(wanted):
            raise ValueError(f"{where} has the class {name!r:.60}, expected one of {shorten(tuple(wanted))}")
    return np.array([place[key(name)] for name in given], np.int64)


def is_bits(*arrays: NDArray[Any]) -> bool:
    """Whether all values are 0 or 1."""
    # For most data a few values are enough to skip the full comparison.
    return all(_all_bits(values[:8]) and _all_bits(values) for values in arrays)


def _all_bits(values: NDArray[Any]) -> bool:
    return bool(np.all((values == 0) | (values == 1)))


def _as_inputs(given: Any, where: str, binary: bool) -> NDArray[Any]:
    """Inputs in the form that a :class:`Split` has; values are checked later."""
    x = np.asarray(given)
    if x.dtype.kind not in "fiub":
        raise ValueError(f"{where}: inputs must be numbers, got dtype {x.dtype}")
    if x.ndim == 3:
        x = x[:, None]
    if x.ndim not in (2, 4):
        raise ValueError(
            f"{where}: x must be [n, features], [n, height, width] or [n, channels, height, width], "
            f"got {_describe(x)}{single_sample(x)}"
        )
    if x.dtype.kind in "bf":
        with np.errstate(over="ignore"):  # values too large for float32 are out of range anyway
            return x.astype(np.float32, copy=False)
    if x.size and (x.min() < 0 or x.max() > 255):
        raise ValueError(f"{where}: whole-number inputs must lie in 0..255, got {x.min()}..{x.max()}")
    if binary:
        return x.astype(np.float32)
    return x.astype(np.uint8, copy=False) if x.ndim == 4 else x.astype(np.float32) / np.float32(255)


def _as_labels(given: Any, where: str) -> NDArray[np.int64]:
    y = np.asarray(given)
    if y.dtype.kind not in "iu":
        raise ValueError(f"{where}: labels must be whole numbers, got dtype {y.dtype}")
    return y.astype(np.int64, copy=False)


def single_sample(x: NDArray[Any]) -> str:
    """A hint for inputs that lack the batch axis, or nothing."""
    if x.ndim not in (0, 1):
        return ""
    return f"; a single sample is [1, {x.size}]: pass x[None]" if x.ndim else "; this is a single number"


def _check_split(where: str, split: Split, dataset: Dataset) -> None:
    x, y = split.x, split.y
    if len(x) == 0 or x.size == 0:
        raise ValueError(f"{where}: is empty, x has shape {list(x.shape)}")
    if y.shape != (len(x),):
        raise ValueError(f"{where}: {len(x)} inputs need labels of shape [{len(x)}], got {list(y.shape)}")
    if y.min() < 0 or y.max() >= len(dataset.classes):
        raise ValueError(f"{where}: labels must lie in 0..{len(dataset.classes) - 1}, got {y.min()}..{y.max()}")
    if x.ndim == 4 and dataset.feature_names:
        raise ValueError(f"{where}: images do not have feature names")
    if dataset.feature_names and len(dataset.feature_names) != x.shape[1]:
        raise ValueError(f"{where}: {len(dataset.feature_names)} feature names for {x.shape[1]} features")
    if x.dtype == np.float32:
        check_unit_range(x, where)
    if dataset.binary and not is_bits(x):
        raise ValueError(f"{where}: a binary data set holds only 0 and 1")


def _check_names(where: str, kind: str, names: tuple[str, ...]) -> None:
    for name in names:
        # Names are shown on terminals and in plots, so control characters and broken text are refused here.
        if not isinstance(name, str) or not name or not name.isprintable():
            raise ValueError(f"{where}: a {kind} name must be printable text, got {name!r:.60}")
    if len(set(names)) != len(names):
        raise ValueError(f"{where}: two {kind} names are the same")


def check_unit_range(x: NDArray[Any], where: str) -> None:
    """Raise ValueError unless all values are finite and within [0, 1]."""
    low, high = x.min(), x.max()
    if low >= 0 and high <= 1:
        return
    # A NaN anywhere makes both extremes NaN, so the comparison above is all that valid data needs.
    if not np.isfinite(x).all():
        row = int(np.argwhere(~np.isfinite(x))[0, 0])
        raise ValueError(f"{where}: inputs must be finite, row {row} holds {x[row][~np.isfinite(x[row])][0]}")
    raise ValueError(f"{where}: inputs must lie in [0, 1], got {low}..{high}")


def _describe(x: NDArray[Any]) -> str:
    return f"{x.dtype} {list(x.shape)}"
