"""CIFAR-10 and CIFAR-100 in the binary version: records of one or two label bytes and 3 x 32 x 32 values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gatelight.data.archive import Member
from gatelight.data.dataset import Dataset, Split
from gatelight.data.fetch import Remote
from gatelight.data.source import Source
from gatelight.data.task import Task

SHAPE = (3, 32, 32)
_VALUES = 3 * 32 * 32
_HOME = "https://www.cs.toronto.edu/~kriz"
_HOME_TOO = "https://cave.cs.toronto.edu/kriz"

_CLASSES_10 = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
_CLASSES_100 = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle", "bowl",
    "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle", "chair",
    "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur", "dolphin",
    "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp",
    "lawn_mower", "leopard", "lion", "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain",
    "mouse", "mushroom", "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear", "pickup_truck",
    "pine_tree", "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon", "ray", "road",
    "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail", "snake", "spider",
    "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone", "television",
    "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf",
    "woman", "worm",
)  # fmt: skip
_COARSE_CLASSES = 20


def _batch(name: str, md5: str) -> Member:
    return Member(f"cifar-10-batches-bin/{name}.bin", 10_000 * (1 + _VALUES), md5)


CIFAR10_FILES = (
    Remote(
        "cifar-10-binary.tar.gz",
        (f"{_HOME}/cifar-10-binary.tar.gz", f"{_HOME_TOO}/cifar-10-binary.tar.gz"),
        "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        170_052_171,
        members=(
            _batch("data_batch_1", "5dd7e06a14cb22eb9f671a540d1b7c25"),
            _batch("data_batch_2", "5ea93a67294ea407fff1d09f752e9692"),
            _batch("data_batch_3", "942cd6a4bcdd0dd3c604fbe906cb4421"),
            _batch("data_batch_4", "ae636b3ba5c66a11e91e8cb52e771fcb"),
            _batch("data_batch_5", "53f37980c15c3d472c316c40844f3f0d"),
            _batch("test_batch", "803d5f7f4d78ea53de84dbe85f74fb6d"),
        ),
    ),
)

CIFAR100_FILES = (
    Remote(
        "cifar-100-binary.tar.gz",
        (f"{_HOME}/cifar-100-binary.tar.gz", f"{_HOME_TOO}/cifar-100-binary.tar.gz"),
        "md5:03b5dce01913d631647c71ecec9e9cb8",
        168_513_733,
        members=(
            Member("cifar-100-binary/train.bin", 50_000 * (2 + _VALUES), "6172c7755cfe09b2fe270c85cebc1b15"),
            Member("cifar-100-binary/test.bin", 10_000 * (2 + _VALUES), "4499cfba6c016c1be1438163640a0898"),
        ),
    ),
)


def load_cifar10(folder: Path) -> Dataset:
    """CIFAR-10: color photographs in 10 classes, uint8 [n, 3, 32, 32]."""
    *train, test = CIFAR10_FILES[0].members
    return _load("cifar10", folder, tuple(train), (test,), (len(_CLASSES_10),), _CLASSES_10)


def load_cifar100(folder: Path) -> Dataset:
    """CIFAR-100 with its fine labels: 100 classes, uint8 [n, 3, 32, 32]."""
    train, test = CIFAR100_FILES[0].members
    return _load("cifar100", folder, (train,), (test,), (_COARSE_CLASSES, len(_CLASSES_100)), _CLASSES_100)


def read_records(path: Path, size: int, ranges: tuple[int, ...], x: NDArray[np.uint8], y: NDArray[np.int64]) -> None:
    """Read one file of records into ``x`` [n, 3, 32, 32] and ``y`` [n], the last of the label bytes.

    Args:
        path: The file.
        size: The size it must have.
        ranges: For each label byte of a record, the number of its classes.
        x: Receives the images.
        y: Receives the labels.

    Raises:
        ValueError: If the file has another size or a label is out of range.
    """
    try:
        found = path.stat().st_size
        if found != size:
            raise ValueError(f"{path}: damaged: {found} bytes, expected {size}")
        records = np.fromfile(path, np.uint8, size)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error
    if len(records) != size:
        raise ValueError(f"{path}: damaged: {len(records)} bytes, expected {size}")
    records = records.reshape(len(y), -1)
    for column, classes in enumerate(ranges):
        highest = records[:, column].max()
        if highest >= classes:
            raise ValueError(f"{path}: labels must lie in 0..{classes - 1}, got {highest}")
    y[:] = records[:, len(ranges) - 1]
    x[:] = records[:, len(ranges) :].reshape(-1, *SHAPE)


def _load(
    name: str,
    folder: Path,
    train: tuple[Member, ...],
    test: tuple[Member, ...],
    ranges: tuple[int, ...],
    classes: tuple[str, ...],
) -> Dataset:
    splits = []
    for members in (train, test):
        counts = [member.size // (len(ranges) + _VALUES) for member in members]
        x = np.empty((sum(counts), *SHAPE), np.uint8)
        y = np.empty(sum(counts), np.int64)
        start = 0
        for member, count in zip(members, counts, strict=True):
            rows = slice(start, start + count)
            read_records(folder / member.path, member.size, ranges, x[rows], y[rows])
            start += count
        splits.append(Split(x, y))
    return Dataset(name, splits[0], splits[1], classes, (), binary=False)


CIFAR10 = Source(
    name="cifar10",
    task=Task(SHAPE, len(_CLASSES_10)),
    description="photographs, 3x32x32, 10 classes",
    load=load_cifar10,
    files=CIFAR10_FILES,
    place=30,
)
CIFAR100 = Source(
    name="cifar100",
    task=Task(SHAPE, len(_CLASSES_100)),
    description="photographs, 3x32x32, 100 classes",
    load=load_cifar100,
    files=CIFAR100_FILES,
    place=30,
)
