"""A user's own arrays in an ``.npz`` file, read without pickle and without trusting its headers.

The file holds ``x_train``, ``y_train``, ``x_test`` and ``y_test``, or ``x`` and ``y``, of which a fifth is then held
out as the test split (always the same rows). ``classes`` and ``feature_names``, arrays of strings, are optional.

======================  =======================================================================================
x                       becomes
======================  =======================================================================================
[n, features]           float32 [n, features]: floats in [0, 1] as they are, whole numbers 0..255 divided by 255
[n, height, width] or   images [n, channels, height, width]: whole numbers 0..255 as uint8, floats in [0, 1] as
[n, channels, h, w] or  float32, as they are
[n, h, w, channels]
either                  bools and arrays of only 0 and 1 become bits: float32, a binary dataset
======================  =======================================================================================

Images with the channels last are recognized by a last axis of 1, 3 or 4 if the first is not, and noted.
If the shape does not decide, the file is refused, unless it holds ``layout``, the string ``channels-first`` or
``channels-last``. ``y`` holds whole numbers from 0. :func:`load_samples` reads samples to label.
"""

from __future__ import annotations

import ast
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatelight.data.dataset import Dataset, Split, check_unit_range, class_labels, holdout, is_bits, single_sample
from gatelight.names import check_name

#: What the arrays of one file may take in memory, together.
MAX_BYTES = 1 << 32
TEST_FRACTION = 0.2

_MAX_HEADER = 1 << 14
_DTYPE = re.compile(r"[<>|=](b1|[iu][1248]|f[248]|U[1-9]\d{0,5})")
_PARTS = ("x_train", "y_train", "x_test", "y_test")
_NAMES = ("classes", "feature_names", "layout")
LAYOUTS = ("channels-first", "channels-last")
ROWS = ("all", "test", "train")
_CHANNELS = (1, 3, 4)
#: What zipfile raises on files that are damaged, encrypted or of a kind it does not know.
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, EOFError, struct.error,
    RuntimeError, NotImplementedError, OverflowError, IndexError, KeyError,
)  # fmt: skip


def load_npz(path: Path) -> Dataset:
    """Read a data set from an ``.npz`` file, see the module's docstring for its layout.

    Raises:
        ValueError: If the file is damaged, lacks an array or holds values that break the rules.
    """
    arrays = read_arrays(path)
    if all(part in arrays for part in _PARTS):
        x_train, y_train, x_test, y_test = (arrays[part] for part in _PARTS)
        _check_rows(x_train, y_train, f"{path}, x_train and y_train")
        _check_rows(x_test, y_test, f"{path}, x_test and y_test")
    elif "x" in arrays and "y" in arrays:
        x, y = arrays["x"], arrays["y"]
        _check_rows(x, y, f"{path}, x and y")
        if len(x) < 2:
            raise ValueError(f"{path}: needs at least 2 rows, one of them to test, got {len(x)}")
        rest, held = holdout(len(x), TEST_FRACTION, seed=0)
        x_train, y_train, x_test, y_test = x[rest], y[rest], x[held], y[held]
    else:
        known = ", ".join(sorted(arrays)) or "nothing usable"
        raise ValueError(f"{path}: must hold x_train, y_train, x_test, y_test, or x and y; found {known}")
    if x_train.shape[1:] != x_test.shape[1:]:
        raise ValueError(f"{path}: train and test inputs have shapes {list(x_train.shape)} and {list(x_test.shape)}")
    train_labels = class_labels(y_train, f"{path}, train split")
    test_labels = class_labels(y_test, f"{path}, test split")
    classes = _names(arrays, "classes", path)
    if not classes:
        highest = max(int(train_labels.max()), int(test_labels.max()))
        classes = tuple(str(i) for i in range(highest + 1))
    _check_numbers({f"{path}, train split": x_train, f"{path}, test split": x_test})
    layout = _layout(arrays, path)
    train, note = _channels_first(x_train, layout, str(path))
    test, _ = _channels_first(x_test, layout, str(path))
    return Dataset(
        path.stem,
        Split(train, train_labels),
        Split(test, test_labels),
        classes,
        _names(arrays, "feature_names", path),
        # Whole numbers mean 0..255, unless all are 0 or 1; one rule for all parts.
        binary=is_bits(train, test),
        notes=(note,) if note else (),
    )


class Samples(NamedTuple):
    """What :func:`load_samples` finds.

    Attributes:
        x: Inputs as they are in the file, but images as [n, channels, height, width].
        y: Labels, int64 [n], or None.
        classes: Names of the classes, or ().
        rows: Which rows these are: ``all``, ``test`` or ``train``.
        total: How many rows the file has.
        notes: Decisions made while reading, in lines that a user should see.
    """

    x: NDArray[Any]
    y: NDArray[np.int64] | None
    classes: tuple[str, ...]
    rows: str
    total: int
    notes: tuple[str, ...] = ()


def load_samples(path: Path, rows: str | None = None) -> Samples:
    """Read inputs, and labels if there are any, from an ``.npz`` file, or the array of an ``.npy`` file.

    Numbers stay as they are in the file, whatever their range: the caller decides what they mean.

    Args:
        path: The file.
        rows: ``test`` or ``train``, the rows that :func:`load_npz` puts there, or ``all`` in the order of the file (the
            train rows first if it has both). None means ``test`` if the file has such a split, else ``all``.

    Raises:
        ValueError: If the file is damaged, has no inputs or not these rows, or breaks the rules.
    """
    if rows is not None:
        check_name("choice of rows", rows, ROWS)
    arrays = _read_npy(path) if path.suffix.lower() == ".npy" else read_arrays(path)
    parts = {key: arrays[key] for key in _sources(arrays, path)}
    for key, x in parts.items():
        _check_dimensions(x, f"{path}, {key}")
    labels = {key: arrays.get(key.replace("x", "y", 1)) for key in parts}
    for key, given in labels.items():
        if given is not None:
            _check_labels(parts[key], given, f"{path}, {key}")
            labels[key] = class_labels(given, f"{path}, {key.replace('x', 'y', 1)}")
    _check_dtypes({f"{path}, {key}": x for key, x in parts.items()})
    total = sum(len(x) for x in parts.values())
    x, y, chosen = _choose(path, parts, labels, rows)
    x, note = _channels_first(x, _layout(arrays, path), str(path))
    return Samples(x, y, _names(arrays, "classes", path), chosen, total, (note,) if note else ())


def _sources(arrays: dict[str, NDArray[Any]], path: Path) -> tuple[str, ...]:
    """Which arrays are the inputs, by the same order of preference as :func:`load_npz`."""
    if all(part in arrays for part in _PARTS):
        return "x_train", "x_test"
    if "x" in arrays and ("y" in arrays or "x_test" not in arrays):
        return ("x",)
    if "x_test" in arrays:
        return ("x_test",)
    raise ValueError(f"{path}: has no array x or x_test, only {', '.join(sorted(arrays)) or 'nothing usable'}")


def _choose(
    path: Path, parts: dict[str, NDArray[Any]], labels: dict[str, NDArray[Any] | None], rows: str | None
) -> tuple[NDArray[Any], NDArray[np.int64] | None, str]:
    """The inputs and labels of the rows that are wanted, and which these are."""
    if len(parts) == 2:
        rows = rows or "test"
        keys = ["x_train", "x_test"] if rows == "all" else [f"x_{rows}"]
        if len(keys) == 2 and parts["x_train"].shape[1:] != parts["x_test"].shape[1:]:
            raise ValueError(f"{path}: x_train and x_test have different shapes, choose one of them")
        return np.concatenate([parts[key] for key in keys]), np.concatenate([_given(labels[key]) for key in keys]), rows
    ((key, x),) = parts.items()
    y = labels[key]
    if key == "x_test":
        if rows == "train":
            raise ValueError(f"{path}: has no train rows, only x_test")
        return x, y, "test"
    if y is None or len(x) < 2:
        if rows in ("test", "train"):
            raise ValueError(f"{path}: has no {rows} rows: nothing is held out of a file without labels")
        return x, y, "all"
    if rows == "all":
        return x, y, rows
    rest, held = holdout(len(x), TEST_FRACTION, seed=0)
    picked = rest if rows == "train" else held
    return x[picked], y[picked], rows or "test"


def _given(labels: NDArray[Any] | None) -> NDArray[Any]:
    assert labels is not None
    return labels


def _read_npy(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file:
            return {"x": _read_array(file, path.stat().st_size, str(path))}
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error


def _check_rows(x: NDArray[Any], y: NDArray[Any], where: str) -> None:
    _check_dimensions(x, where)
    if x.size == 0:
        raise ValueError(f"{where}: empty, x has shape {list(x.shape)}")
    _check_labels(x, y, where)


def _check_dimensions(x: NDArray[Any], where: str) -> None:
    if x.ndim not in (2, 3, 4):
        raise ValueError(
            f"{where}: x must be [n, features], [n, height, width] or [n, channels, height, width], "
            f"got shape {list(x.shape)}{single_sample(x)}"
        )


def _check_labels(x: NDArray[Any], y: NDArray[Any], where: str) -> None:
    if y.ndim != 1 or len(y) != len(x):
        raise ValueError(f"{where}: {len(x)} inputs need labels of shape [{len(x)}], got {list(y.shape)}")


def _check_numbers(parts: dict[str, NDArray[Any]]) -> None:
    """Refuse inputs, given by where they are from, that are not numbers in range or mix floats with whole numbers."""
    _check_dtypes(parts)
    for where, x in parts.items():
        if x.size and x.dtype.kind == "f":
            check_unit_range(x, where)
        elif x.size and (x.min() < 0 or x.max() > 255):
            raise ValueError(f"{where}: whole-number inputs must lie in 0..255, got {x.min()}..{x.max()}")


def _check_dtypes(parts: dict[str, NDArray[Any]]) -> None:
    for where, x in parts.items():
        if x.dtype.kind not in "fiub":
            raise ValueError(f"{where}: inputs must be numbers, got dtype {x.dtype}")
    if len({x.dtype.kind == "f" for x in parts.values()}) > 1:
        dtypes = " and ".join(str(x.dtype) for x in parts.values())
        raise ValueError(f"{' and '.join(parts)}: inputs have dtypes {dtypes}")


def _layout(arrays: dict[str, NDArray[Any]], path: Path) -> str | None:
    given = arrays.get("layout")
    if given is None:
        return None
    if given.ndim != 0 or given.dtype.kind != "U":
        raise ValueError(f"{path}: layout must be one string, got {given.dtype} of shape {list(given.shape)}")
    return check_name(f"layout in {path}", str(given), LAYOUTS)


def _channels_first(x: NDArray[Any], layout: str | None, where: str) -> tuple[NDArray[Any], str]:
    """Images as [n, channels, height, width], and a line on what was done, if anything."""
    if x.ndim == 3:
        return x[:, None], ""
    if x.ndim != 4 or not _channels_are_last(x.shape[1:], layout, where):
        return x, ""
    height, width, channels = x.shape[1:]
    note = f"{where} holds images with the channels last, {height} x {width} x {channels}; they are put first"
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2)), note


def _channels_are_last(shape: tuple[int, ...], layout: str | None, where: str) -> bool:
    """Whether images of a shape (a, b, c) have their channels last; refused if that is unclear.

    One of a and c is 1, 3 or 4; or both are, and the other two axes form a square in only one of the two readings.
    """
    if layout is not None:
        return layout == "channels-last"
    first, middle, last = shape
    could_be_first, could_be_last = first in _CHANNELS, last in _CHANNELS
    squares = middle == last, first == middle
    if could_be_first and could_be_last and first != last and squares[0] != squares[1]:
        return squares[1]
    if could_be_first and not could_be_last:
        return False
    if could_be_last and not could_be_first:
        return True
    # A square followed by another axis is more likely an image than that many channels.
    if not could_be_first and not (squares[1] and last < first):
        return False
    # With one channel, and one pixel high or wide, both readings give the same numbers.
    if first == last == 1:
        return False
    raise ValueError(
        f"{where}: images of shape {list(shape)} could have their channels first or last; bring them to "
        f"[n, channels, height, width] and add an array layout, the string 'channels-first'"
    )


def _names(arrays: dict[str, NDArray[Any]], key: str, path: Path) -> tuple[str, ...]:
    values = arrays.get(key)
    if values is None:
        return ()
    if values.ndim != 1 or values.dtype.kind != "U":
        raise ValueError(f"{path}: {key} must be a list of strings, got {values.dtype} of shape {list(values.shape)}")
    try:
        return tuple(values.tolist())
    except ValueError as error:
        raise ValueError(f"{path}: damaged: {key} is not text") from error


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays with names that matter here; others are not read."""
    arrays: dict[str, NDArray[Any]] = {}
    left = MAX_BYTES
    try:
        with zipfile.ZipFile(path) as archive:
            present = set(archive.namelist())
            for key in (*_PARTS, "x", "y", *_NAMES):
                if f"{key}.npy" not in present:
                    continue
                info = archive.getinfo(f"{key}.npy")
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError(f"{path}: {key} is compressed in a way that numpy does not use")
                left -= info.file_size
                if left < 0:
                    raise ValueError(f"{path}: its arrays take more than {MAX_BYTES} bytes")
                with archive.open(info) as file:
                    arrays[key] = _read_array(file, info.file_size, f"{path}, {key}")
    except _DAMAGE as error:
        raise ValueError(f"{path}: damaged or not an npz file: {error!s:.80}") from error
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error
    return arrays


def _read_array(file: IO[bytes], size: int, where: str) -> NDArray[Any]:
    """Read one array of ``size`` bytes, including the header; allocate only what the header and the size agree on.

    Zipfile compares the checksum at the last byte, so all of ``size`` must be read.
    """
    start = file.read(8)
    if start[:6] != b"\x93NUMPY" or start[6:7] not in (b"\x01", b"\x02", b"\x03"):
        raise ValueError(f"{where}: not an npy array, starts with {start.hex()}")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(file.read(width), "little")
    if length > _MAX_HEADER:
        raise ValueError(f"{where}: header of {length} bytes, far too long")
    dtype, fortran, shape = _parse_header(file.read(length), where)
    count = 1
    for dim in shape:
        count *= dim
    if count * dtype.itemsize != size - 8 - width - length:
        raise ValueError(
            f"{where}: damaged: shape {list(shape)} of {dtype} does not fit its {size - 8 - width - length} bytes"
        )
    values = np.empty(count, dtype)
    view = values.view(np.uint8).data if count else memoryview(b"")
    filled = 0
    while filled < values.nbytes:
        block = file.read(min(values.nbytes - filled, 1 << 22))
        if not block:
            raise ValueError(f"{where}: damaged: {filled} of {values.nbytes} bytes of data")
        view[filled : filled + len(block)] = block
        filled += len(block)
    return values.reshape(shape, order="F" if fortran else "C")


def _parse_header(header: bytes, where: str) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
    try:
        fields = ast.literal_eval(header.decode("utf-8").strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"{where}: damaged: its header cannot be read") from error
    if not isinstance(fields, dict) or set(fields) != {"descr", "fortran_order", "shape"}:
        raise ValueError(f"{where}: damaged: its header must name descr, fortran_order and shape")
    descr, fortran, shape = fields["descr"], fields["fortran_order"], fields["shape"]
    if not isinstance(descr, str) or not _DTYPE.fullmatch(descr):
        raise ValueError(f"{where}: must hold numbers or strings, got dtype {str(descr)[:40]!r}")
    if not isinstance(fortran, bool) or not isinstance(shape, tuple) or len(shape) > 8:
        raise ValueError(f"{where}: damaged: its header has no proper shape")
    if any(type(dim) is not int or not 0 <= dim < 1 << 48 for dim in shape):
        raise ValueError(f"{where}: damaged: shape {str(shape)[:60]}")
    return np.dtype(descr), fortran, shape
