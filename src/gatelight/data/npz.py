"""A user's own arrays in an ``.npz`` file, read without pickle and without trusting its headers.

The file holds ``x_train``, ``y_train``, ``x_test`` and ``y_test``, or ``x`` and ``y``, of which a fifth is then held
out as the test split (always the same rows). ``classes`` and ``feature_names``, arrays of strings, are optional.

======================  =======================================================================================
x                       becomes
======================  =======================================================================================
[n, features]           float32 [n, features]: floats in [0, 1] as they are, whole numbers 0..255 divided by 255,
                        bools and arrays of only 0 and 1 as bits
[n, height, width] or   uint8 images [n, channels, height, width]: whole numbers 0..255 as they are, floats in
[n, channels, h, w]     [0, 1] rounded to 255ths, bools and arrays of only 0 and 1 as 0 and 255
======================  =======================================================================================

``y`` holds whole numbers from 0. :func:`load_samples` reads samples to label by the same rules.
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

from gatelight.data.dataset import Dataset, Split, check_unit_range, class_labels, holdout, is_bits

#: What the arrays of one file may take in memory, together.
MAX_BYTES = 1 << 32
TEST_FRACTION = 0.2

_MAX_HEADER = 1 << 14
_DTYPE = re.compile(r"[<>|=](b1|[iu][1248]|f[248]|U[1-9]\d{0,5})")
_PARTS = ("x_train", "y_train", "x_test", "y_test")
_NAMES = ("classes", "feature_names")
#: What zipfile raises on files that are damaged, encrypted or of a kind it does not know.
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, EOFError, struct.error,
    RuntimeError, NotImplementedError, OverflowError, IndexError, KeyError,
)  # fmt: skip


def load_npz(path: Path) -> Dataset:
    """Read a dataset from an ``.npz`` file, see the module's text for its layout.

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
        known = ", ".join(sorted(arrays)) or "nothing of use"
        raise ValueError(f"{path}: must hold x_train, y_train, x_test, y_test, or x and y; found {known}")
    if x_train.shape[1:] != x_test.shape[1:]:
        raise ValueError(f"{path}: train and test inputs have shapes {list(x_train.shape)} and {list(x_test.shape)}")
    train_labels = class_labels(y_train, f"{path}, train split")
    test_labels = class_labels(y_test, f"{path}, test split")
    classes = _names(arrays, "classes", path)
    if not classes:
        highest = max(int(train_labels.max()), int(test_labels.max()))
        classes = tuple(str(i) for i in range(highest + 1))
    train, test = _inputs({f"{path}, train split": x_train, f"{path}, test split": x_test})
    binary = train.ndim == 2 and is_bits(train, test)
    return Dataset(
        path.stem,
        Split(train, train_labels),
        Split(test, test_labels),
        classes,
        _names(arrays, "feature_names", path),
        binary=binary,
    )


class Samples(NamedTuple):
    """What :func:`load_samples` finds.

    Attributes:
        x: Inputs as a :class:`Dataset` has them.
        y: Labels, int64 [n], or None.
        classes: Names of the classes, or ().
        as_bits: Whether ``x`` was whole numbers and, being only 0 and 1, was taken for bits.
    """

    x: NDArray[Any]
    y: NDArray[np.int64] | None
    classes: tuple[str, ...]
    as_bits: bool


def load_samples(path: Path) -> Samples:
    """Read all of ``x`` (or ``x_test``, if there is one) and the labels beside it; of an ``.npy`` file its array.

    Raises:
        ValueError: If the file is damaged, has no inputs or holds values that break the rules.
    """
    arrays = _read_npy(path) if path.suffix.lower() == ".npy" else read_arrays(path)
    part = next((part for part in ("_test", "") if f"x{part}" in arrays), None)
    if part is None:
        raise ValueError(f"{path}: has no array x or x_test, only {', '.join(sorted(arrays)) or 'nothing of use'}")
    given, y = arrays[f"x{part}"], arrays.get(f"y{part}")
    where = f"{path}, x{part}"
    _check_dimensions(given, where)
    if y is not None:
        _check_labels(given, y, where)
        y = class_labels(y, f"{path}, y{part}")
    (x,) = _inputs({where: given})
    return Samples(
        x, y, _names(arrays, "classes", path), given.dtype.kind in "iu" and given.size > 0 and is_bits(given)
    )


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
            f"got shape {list(x.shape)}"
        )


def _check_labels(x: NDArray[Any], y: NDArray[Any], where: str) -> None:
    if y.ndim != 1 or len(y) != len(x):
        raise ValueError(f"{where}: {len(x)} inputs need labels of shape [{len(x)}], got {list(y.shape)}")


def _inputs(parts: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Bring inputs, given by where they are from, to float32 [n, features] or uint8 [n, channels, height, width]."""
    arrays = [x[:, None] if x.ndim == 3 else x for x in parts.values()]
    for where, x in zip(parts, arrays, strict=True):
        if x.dtype.kind not in "fiub":
            raise ValueError(f"{where}: inputs must be numbers, got dtype {x.dtype}")
        if x.size and x.dtype.kind == "f":
            check_unit_range(x, where)
        elif x.size and (x.min() < 0 or x.max() > 255):
            raise ValueError(f"{where}: whole-number inputs must lie in 0..255, got {x.min()}..{x.max()}")
    floats = {x.dtype.kind == "f" for x in arrays}
    if len(floats) > 1:
        raise ValueError(f"{' and '.join(parts)}: inputs have dtypes {' and '.join(str(x.dtype) for x in arrays)}")
    # Whole numbers mean 0..255, unless there is nothing but 0 and 1; one rule for all parts.
    unit = floats == {True} or is_bits(*arrays)
    return [(_as_images if x.ndim == 4 else _as_values)(x, unit) for x in arrays]


def _as_images(x: NDArray[Any], unit: bool) -> NDArray[np.uint8]:
    return np.rint(x * np.float32(255)).astype(np.uint8) if unit else x.astype(np.uint8)


def _as_values(x: NDArray[Any], unit: bool) -> NDArray[np.float32]:
    return x.astype(np.float32) if unit else x.astype(np.float32) / np.float32(255)


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
    """The arrays with names that matter here; others are not even looked at."""
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
    """Read one array of ``size`` bytes, header included; allocate only what the header and the size agree on.

    With the last byte zipfile compares the checksum, so the whole of ``size`` must be read.
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
