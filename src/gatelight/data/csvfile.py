"""A user's own table in a ``.csv`` file.

The first row names the columns. The label is the column called ``label``, ``class`` or ``target`` (in any case), else
the last one; its values, words or whole numbers, are the classes in sorted order. Every other column is a feature:
one of numbers is kept if all of it lies in [0, 1], else scaled by the least and greatest value of the train split and
clipped; one of words becomes a bit for each word. A fifth of the rows (always the same) is the test split.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gatelight.data.dataset import MAX_CLASSES, Dataset, Split, holdout, is_bits

MAX_BYTES = 1 << 28
MAX_WORDS = 1_000
TEST_FRACTION = 0.2

_LABEL_NAMES = ("label", "class", "target")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True)
class _Table:
    """The cells by column, and the line each row ends on, for messages."""

    path: Path
    names: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]

    def cell(self, row: int, column: int) -> str:
        return f"{self.path}, line {self.lines[row]}, column {self.names[column]!r}"


def load_csv(path: Path) -> Dataset:
    """Read a dataset from a ``.csv`` file, see the module's text for its layout.

    Raises:
        ValueError: If the file is no such table; the message names file, line and column.
    """
    table = _read_table(path)
    label = _label_column(table)
    classes, y = _classes(table, label)
    rest, held = holdout(len(table.lines), TEST_FRACTION, seed=0)
    names: list[str] = []
    features: list[NDArray[np.float32]] = []
    for index, name in enumerate(table.names):
        if index == label:
            continue
        if _is_numeric(table, index):
            names.append(name)
            features.append(_scaled(_numbers(table, index), rest)[:, None])
        else:
            words = _words(table, index)
            names.extend(f"{name}={word}" for word in words)
            cells = np.array(table.columns[index])
            features.append((cells[:, None] == np.array(words)).astype(np.float32))
    x = np.concatenate(features, 1)
    return Dataset(
        path.stem, Split(x[rest], y[rest]), Split(x[held], y[held]), classes, tuple(names), binary=is_bits(x)
    )


def _read_table(path: Path) -> _Table:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error
    if len(data) > MAX_BYTES:
        raise ValueError(f"{path}: more than {MAX_BYTES} bytes; an npz file can hold more")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}, line {line}: not UTF-8 text") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    names: tuple[str, ...] = ()
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells) and len(cells) <= 1:
                continue
            if not names:
                names = tuple(cells)
                _check_names(path, names)
                continue
            if len(cells) != len(names):
                raise ValueError(f"{path}, line {reader.line_num}: {len(cells)} values for {len(names)} columns")
            rows.append(cells)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from error
    if len(rows) < 2:
        raise ValueError(f"{path}: needs a row of names and at least 2 rows of data, got {len(rows)}")
    return _Table(path, names, tuple(zip(*rows, strict=True)), tuple(lines))


def _check_names(path: Path, names: tuple[str, ...]) -> None:
    if len(names) < 2:
        raise ValueError(
            f"{path}: needs at least one feature and a label, separated by commas; got {len(names)} column"
        )
    seen = set()
    for number, name in enumerate(names, 1):
        if not name:
            raise ValueError(f"{path}, line 1: column {number} has no name")
        if name in seen:
            raise ValueError(f"{path}, line 1: two columns are called {name[:40]!r}")
        seen.add(name)
    if all(_NUMBER.fullmatch(name) for name in names):
        raise ValueError(f"{path}, line 1: must name the columns, but holds only numbers")


def _label_column(table: _Table) -> int:
    named = [i for i, name in enumerate(table.names) if name.lower() in _LABEL_NAMES]
    if len(named) > 1:
        both = " and ".join(repr(table.names[i]) for i in named)
        raise ValueError(f"{table.path}: only one column can be the label, got {both}")
    return named[0] if named else len(table.names) - 1


def _classes(table: _Table, label: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    cells = table.columns[label]
    if "" in cells:
        raise ValueError(f"{table.cell(cells.index(''), label)}: empty")
    if all(_WHOLE.fullmatch(cell) for cell in cells):
        whole = [int(cell) for cell in cells]
        found: list[int] | list[str] = sorted(set(whole))
        y = np.searchsorted(np.array(found), np.array(whole))
    else:
        found = sorted(set(cells))
        number = {name: i for i, name in enumerate(found)}
        y = np.array([number[cell] for cell in cells])
    if not 2 <= len(found) <= MAX_CLASSES:
        raise ValueError(
            f"{table.path}, column {table.names[label]!r}: the label needs 2 to {MAX_CLASSES} classes, got {len(found)}"
        )
    return tuple(str(name) for name in found), y.astype(np.int64)


def _is_numeric(table: _Table, index: int) -> bool:
    """Whether a column holds numbers; one that mixes them with words is an error."""
    cells = table.columns[index]
    numeric = [_NUMBER.fullmatch(cell) is not None for cell in cells]
    if "" in cells:
        raise ValueError(f"{table.cell(cells.index(''), index)}: empty")
    if any(numeric) and not all(numeric):
        rarer = sum(numeric) * 2 < len(cells)
        row = numeric.index(rarer)
        kind = "number among words" if rarer else "word among numbers"
        raise ValueError(f"{table.cell(row, index)}: {cells[row][:40]!r} is a {kind}")
    return numeric[0]


def _numbers(table: _Table, index: int) -> NDArray[np.float64]:
    values = np.array([float(cell) for cell in table.columns[index]])
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        row = int(bad[0])
        raise ValueError(f"{table.cell(row, index)}: {table.columns[index][row][:40]!r} is not a finite number")
    return values


def _scaled(values: NDArray[np.float64], train: NDArray[np.int64]) -> NDArray[np.float32]:
    if values.min() < 0 or values.max() > 1:
        low, high = values[train].min(), values[train].max()
        # Halves, because the difference of two finite numbers may not be finite.
        span = high / 2 - low / 2
        values = (values / 2 - low / 2) / span if span > 0 else np.zeros_like(values)
    return np.clip(values, 0, 1).astype(np.float32)


def _words(table: _Table, index: int) -> list[str]:
    words = sorted(set(table.columns[index]))
    if len(words) > MAX_WORDS:
        raise ValueError(
            f"{table.path}, column {table.names[index]!r}: {len(words)} different words, at most {MAX_WORDS} "
            f"become bits; leave the column out"
        )
    return words
