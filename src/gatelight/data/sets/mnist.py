"""MNIST and Fashion-MNIST: images of 28 x 28 gray values in the idx format, gzipped or not.

An idx file is two zero bytes, a type (8: unsigned byte), the number of dimensions, each dimension as a
big-endian 32-bit number, then the values.
"""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gatelight.data.dataset import Dataset, Split
from gatelight.data.fetch import Remote, locate
from gatelight.data.source import Source
from gatelight.data.task import Task

SIDE = 28
#: Deflate cannot shrink data by more than this factor.
_MAX_RATIO = 1032

_DIGITS = tuple("0123456789")
_CLOTHES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip


def _remotes(folder: str, mirrors: tuple[str, ...], table: dict[str, tuple[int, str]]) -> tuple[Remote, ...]:
    return tuple(
        Remote(
            f"{folder}/{name}.gz",
            tuple(f"{mirror}/{name}.gz" for mirror in mirrors),
            digest,
            size,
            aliases=(f"{folder}/{name}",),
        )
        for name, (size, digest) in table.items()
    )


MNIST_FILES = _remotes(
    "mnist",
    ("https://ossci-datasets.s3.amazonaws.com/mnist", "https://storage.googleapis.com/cvdf-datasets/mnist"),
    {
        "train-images-idx3-ubyte": (
            9_912_422, "sha256:440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        "train-labels-idx1-ubyte": (
            28_881, "sha256:3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        "t10k-images-idx3-ubyte": (
            1_648_877, "sha256:8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        "t10k-labels-idx1-ubyte": (
            4_542, "sha256:f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    },
)  # fmt: skip

FASHION_FILES = _remotes(
    "fashion-mnist",
    (
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets",
    ),
    {
        "train-images-idx3-ubyte": (26_421_880, "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        "train-labels-idx1-ubyte": (29_515, "md5:25c81989df183df01b3e8a0aad5dffbe"),
        "t10k-images-idx3-ubyte": (4_422_102, "md5:bef4ecab320f06d8554ea6380940ec79"),
        "t10k-labels-idx1-ubyte": (5_148, "md5:bb300cfdad3c16e7a12a480ee83cd310"),
    },
)


def load_mnist(folder: Path) -> Dataset:
    """MNIST: handwritten digits, uint8 [n, 1, 28, 28]."""
    return _load("mnist", folder, MNIST_FILES, _DIGITS)


def load_mnist20(folder: Path) -> Dataset:
    """MNIST without its border: the central 20 x 20 values of each image, uint8 [n, 1, 20, 20]."""
    border = (SIDE - 20) // 2
    inner = slice(border, SIDE - border)
    full = load_mnist(folder)
    train, test = (
        Split(np.ascontiguousarray(split.x[:, :, inner, inner]), split.y) for split in (full.train, full.test)
    )
    return Dataset("mnist20", train, test, full.classes, (), binary=False)


def load_fashion(folder: Path) -> Dataset:
    """Fashion-MNIST: pieces of clothing, uint8 [n, 1, 28, 28]."""
    return _load("fashion-mnist", folder, FASHION_FILES, _CLOTHES)


def read_idx(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Read an idx file of unsigned bytes, gzipped if its name ends in ``.gz``.

    At most as much is unpacked as the header announces, and at most as much is allocated as the file can hold.

    Args:
        path: The file.
        shape: The dimensions after the first, which may be anything but 0.

    Raises:
        ValueError: If the file is cut short, too long, altered or not of this shape.
    """
    packed = path.suffix == ".gz"
    try:
        size = path.stat().st_size
        with gzip.open(path) if packed else path.open("rb") as file:
            values = _read_stream(file, path, shape, size * _MAX_RATIO if packed else size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: damaged gzip file: {error}") from error
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error
    return values


def _read_stream(
    file: gzip.GzipFile | io.BufferedReader, path: Path, shape: tuple[int, ...], most: int
) -> NDArray[np.uint8]:
    dims = 1 + len(shape)
    header = file.read(4 + 4 * dims)
    if len(header) < 4 + 4 * dims:
        raise ValueError(f"{path}: damaged idx file: {len(header)} bytes, shorter than its header")
    magic = bytes((0, 0, 8, dims))
    if header[:4] != magic:
        raise ValueError(
            f"{path}: not an idx file of this kind: starts with {header[:4].hex()}, expected {magic.hex()}"
        )
    count, *rest = struct.unpack(f">{dims}I", header[4:])
    if tuple(rest) != shape or count == 0:
        raise ValueError(f"{path}: has dimensions {[count, *rest]}, expected {['1 or more', *shape]}")
    total = count * int(np.prod(shape, dtype=np.int64))
    if total > most:
        raise ValueError(f"{path}: damaged idx file: too short for its {count} entries")
    values = np.empty(total, np.uint8)
    view = values.data
    filled = 0
    while filled < total and (got := file.readinto(view[filled:])):
        filled += got
    if filled < total:
        raise ValueError(f"{path}: damaged idx file: {filled} of {total} bytes of data")
    # Reading past the end also makes gzip compare its own checksum.
    if file.read(1):
        raise ValueError(f"{path}: damaged idx file: more than {total} bytes of data")
    return values.reshape(count, *shape)


def _load(name: str, folder: Path, files: tuple[Remote, ...], classes: tuple[str, ...]) -> Dataset:
    found = []
    for remote in files:
        path = locate(remote, folder)
        if path is None:
            raise ValueError(f"{remote.path} is missing in {folder}")
        found.append(path)
    splits = []
    for images, labels in (found[:2], found[2:]):
        x = read_idx(images, (SIDE, SIDE))
        y = read_idx(labels, ())
        if len(x) != len(y):
            raise ValueError(f"{labels}: {len(y)} labels for the {len(x)} images of {images.name}")
        if y.max() >= len(classes):
            raise ValueError(f"{labels}: labels must lie in 0..{len(classes) - 1}, got {y.max()}")
        splits.append(Split(x[:, None], y.astype(np.int64)))
    return Dataset(name, splits[0], splits[1], classes, (), binary=False)


MNIST = Source(
    name="mnist",
    task=Task((1, SIDE, SIDE), 10),
    description="handwritten digits, 28x28",
    load=load_mnist,
    files=MNIST_FILES,
    place=20,
)
MNIST20 = Source(
    name="mnist20",
    task=Task((1, 20, 20), 10),
    description="handwritten digits, central 20x20",
    load=load_mnist20,
    files=MNIST_FILES,
    place=20,
)
FASHION_MNIST = Source(
    name="fashion-mnist",
    task=Task((1, SIDE, SIDE), 10),
    description="clothing, 28x28",
    load=load_fashion,
    files=FASHION_FILES,
    place=20,
)
