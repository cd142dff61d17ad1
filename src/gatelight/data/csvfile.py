"""A user's own table in a ``.csv`` file.

The first row names the columns; one that looks like a row of data is refused. The label is the column called
``label``, ``class`` or ``target`` (in any case), else the last one; its values are the classes in sorted order, and
numbers that are equal (0 and 0.0) are one class. Every other column is a feature: one of numbers is kept if all of it
lies in [0, 1], else scaled by the smallest and largest value of the train split and clipped; one of words becomes a bit
for each word. A fifth of the rows (always the same) is the test split.

The dataset keeps this as its :class:`~gatelight.data.encoding.Encoding`. Another table that is read with it is encoded
by the same ranges, words and classes; its columns may be in any order.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gatelight.data.dataset import MAX_CLASSES, Dataset, Split, holdout, is_bits
from gatelight.data.encoding import NUMBER, Column, Encoding, class_name
from gatelight.files import read_limited
from gatelight.names import shorten

MAX_BYTES = 1 << 28
MAX_WORDS = 1_000
TEST_FRACTION = 0.2

_LABEL_NAMES = ("label", "class", "target")
_NUMBER = re.compile(rf"{NUMBER.pattern}|[+-]?(nan|inf|infinity)", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class _Table:
    """The cells by column, and the line each row ends on, for messages."""

    path: Path
    names: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    parsed: dict[int, NDArray[np.float64] | None] = field(default_factory=dict)

    def column(self, index: int) -> str:
        return f"{self.path}, column {self.names[index]!r:.60}"

    def cell(self, row: int, index: int) -> str:
        return f"{self.path}, line {self.lines[row]}, column {self.names[index]!r:.60}"

    def numbers(self, index: int) -> NDArray[np.float64] | None:
        """The numbers of a column, or None if it holds words; parsed once."""
        if index not in self.parsed:
            self.parsed[index] = _numbers(self, index) if _is_numeric(self, index) else None
        return self.parsed[index]


def load_csv(path: Path, encoding: Encoding | None = None) -> Dataset:
    """Read a data set from a ``.csv`` file, see the module's docstring for its layout.

    Args:
        path: The file.
        encoding: The encoding of an earlier dataset, used for this one too; None finds it from the train rows.

    Raises:
        ValueError: If the file is not such a table, or does not fit the encoding; the message says where.
    """
    table = _read_table(path)
    rest, held = holdout(len(table.lines), TEST_FRACTION, seed=0)
    if encoding is None:
        encoding = _find_encoding(table, rest)
    label, order = _match_columns(table, encoding)
    y = _labels(table, label, encoding.classes)
    parts = [_features(table, index, column) for index, column in zip(order, encoding.columns, strict=True)]
    x = np.concatenate(parts, 1)
    train, test = Split(x[rest], y[rest]), Split(x[held], y[held])
    names = encoding.feature_names
    return Dataset(path.stem, train, test, encoding.classes, names, binary=is_bits(x), encoding=encoding)


def all_rows(dataset: Dataset) -> Split:
    """Both splits of a table together, in the order of the file."""
    rest, held = holdout(len(dataset.train) + len(dataset.test), TEST_FRACTION, seed=0)
    order = np.argsort(np.concatenate([rest, held]))
    both = dataset.all_rows()
    return Split(both.x[order], both.y[order])


def _find_encoding(table: _Table, train: NDArray[np.int64]) -> Encoding:
    """The encoding found from a table itself."""
    label = _label_column(table)
    columns = []
    for index, name in enumerate(table.names):
        if index == label:
            continue
        values = table.numbers(index)
        if values is None:
            columns.append(Column(name, words=_words(table, index)))
            continue
        inside = values.min() >= 0 and values.max() <= 1
        seen = values[train]
        columns.append(Column(name) if inside else Column(name, float(seen.min()), float(seen.max())))
    return Encoding(table.names[label], tuple(columns), _classes(table, label))


def _match_columns(table: _Table, encoding: Encoding) -> tuple[int, list[int]]:
    """Where the label and each column of the encoding are in the table."""
    place = {name: index for index, name in enumerate(table.names)}
    wanted = dict.fromkeys([encoding.label, *(column.name for column in encoding.columns)])
    for name in wanted:
        if name not in place:
            raise ValueError(f"{table.path}: has no column {name!r:.60}, only {shorten(table.names)}")
    for name in table.names:
        if name not in wanted:
            raise ValueError(f"{table.path}: column {name!r:.60} was not in the table that was trained on")
    return place[encoding.label], [place[column.name] for column in encoding.columns]


def _features(table: _Table, index: int, column: Column) -> NDArray[np.float32]:
    """One column as features, float32 [n, its features]."""
    cells = table.columns[index]
    if column.words:
        place = {word: number for number, word in enumerate(column.words)}
        for row, cell in enumerate(cells):
            if cell not in place:
                raise ValueError(
                    f"{table.cell(row, index)}: unknown word {cell[:40]!r}; known: {shorten(column.words)}"
                )
        number = np.array([place[cell] for cell in cells])
        bits: NDArray[np.float32] = np.eye(len(place), dtype=np.float32)[number]
        return bits
    values = table.numbers(index)
    if values is None:
        raise ValueError(f"{table.cell(0, index)}: must be a number, got {cells[0][:40]!r}")
    return column.numbers(values)[:, None]


def _read_table(path: Path) -> _Table:
    data = read_limited(path, MAX_BYTES, "; an npz file can hold more")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}, line {line}: not UTF-8 text") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells) and len(cells) <= 1:
                continue
            if rows and len(cells) != len(rows[0]):
                raise ValueError(f"{path}, line {reader.line_num}: {len(cells)} values for {len(rows[0])} columns")
            if not rows:
                _check_separator(f"{path}, line {reader.line_num}", cells)
            rows.append(cells)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}") from error
    if not rows:
        raise ValueError(f"{path}: needs a row of names and at least 2 rows of data, got an empty file")
    names, columns = tuple(rows[0]), tuple(zip(*rows[1:], strict=True))
    _check_names(f"{path}, line {lines[0]}", names, columns)
    if len(rows) < 3:
        raise ValueError(f"{path}: needs a row of names and at least 2 rows of data, got {len(rows) - 1}")
    return _Table(path, names, columns, tuple(lines[1:]))


def _check_separator(where: str, cells: list[str]) -> None:
    if len(cells) > 1:
        return
    for sign, called in ((";", "semicolons"), ("\t", "tabs")):
        if sign in cells[0]:
            raise ValueError(f"{where}: columns must be separated by commas, this file seems to use {called}")
    raise ValueError(f"{where}: needs at least one feature and a label, separated by commas; got 1 column")


def _check_names(where: str, names: tuple[str, ...], columns: tuple[tuple[str, ...], ...]) -> None:
    why = _data_in(names, columns)
    if why:
        raise ValueError(f"{where}: must name the columns, but {why}; add a line of names (not numbers) above it")
    seen = set()
    for number, name in enumerate(names, 1):
        if not name:
            raise ValueError(f"{where}: column {number} has no name")
        if name in seen:
            raise ValueError(f"{where}: two columns are called {name[:40]!r}")
        seen.add(name)


def _data_in(names: tuple[str, ...], columns: tuple[tuple[str, ...], ...]) -> str:
    """Why the first row must be data, or nothing. As a header it would be dropped silently."""
    if all(_NUMBER.fullmatch(name) for name in names):
        return "holds only numbers"
    below = columns or ((),) * len(names)
    pairs = list(zip(names, below, strict=True))
    # Names may be numbers if one of them says which column is the label.
    if any(name.lower() in _LABEL_NAMES and name not in cells for name, cells in pairs):
        return ""
    for number, (name, cells) in enumerate(pairs, 1):
        if cells and all(_NUMBER.fullmatch(cell) for cell in (name, *cells)):
            return f"its column {number} holds the number {name[:40]!r} as if it were a row of data"
    if all(name in cells for name, cells in pairs):
        return "each of its values occurs again below as if it were a row of data"
    return ""


def _label_column(table: _Table) -> int:
    named = [i for i, name in enumerate(table.names) if name.lower() in _LABEL_NAMES]
    if len(named) > 1:
        both = " and ".join(repr(table.names[i]) for i in named)
        raise ValueError(f"{table.path}: only one column can be the label, got {both}")
    return named[0] if named else len(table.names) - 1


def _classes(table: _Table, label: int) -> tuple[str, ...]:
    """The classes that a table names, numbers in their order, words in theirs."""
    cells = table.columns[label]
    _check_cells(table, label)
    if all(NUMBER.fullmatch(cell) for cell in cells):
        found = sorted({class_name(cell) for cell in cells}, key=Decimal)
    else:
        found = sorted(set(cells))
    if not 2 <= len(found) <= MAX_CLASSES:
        raise ValueError(f"{table.column(label)}: the label needs 2 to {MAX_CLASSES} classes, got {len(found)}")
    return tuple(found)


def _labels(table: _Table, label: int, classes: tuple[str, ...]) -> NDArray[np.int64]:
    """The class of each row; numbers are compared by value if all classes are numbers."""
    cells = table.columns[label]
    _check_cells(table, label)
    key = class_name if all(NUMBER.fullmatch(name) for name in classes) else str
    place = {key(name): number for number, name in enumerate(classes)}
    for row, cell in enumerate(cells):
        if key(cell) not in place:
            raise ValueError(f"{table.cell(row, label)}: unknown class {cell[:40]!r}; known: {shorten(classes)}")
    return np.array([place[key(cell)] for cell in cells], np.int64)


def _check_cells(table: _Table, index: int) -> None:
    """Refuse cells that are empty, and columns of decimal commas, which would be taken for words."""
    cells = table.columns[index]
    if "" in cells:
        raise ValueError(f"{table.cell(cells.index(''), index)}: empty")
    commas = [cell for cell in cells if "," in cell and _DECIMAL_COMMA.fullmatch(cell)]
    if commas and all(_NUMBER.fullmatch(cell) or _DECIMAL_COMMA.fullmatch(cell) for cell in cells):
        row = cells.index(commas[0])
        dotted = commas[0].replace(",", ".")
        raise ValueError(
            f"{table.cell(row, index)}: numbers need a decimal point, {dotted[:40]} for {commas[0][:40]!r}"
        )


def _is_numeric(table: _Table, index: int) -> bool:
    """Whether a column holds numbers; one that mixes them with words is an error."""
    cells = table.columns[index]
    _check_cells(table, index)
    numeric = [_NUMBER.fullmatch(cell) is not None for cell in cells]
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


def _words(table: _Table, index: int) -> tuple[str, ...]:
    words = sorted(set(table.columns[index]))
    if len(words) > MAX_WORDS:
        raise ValueError(
            f"{table.column(index)}: {len(words)} different words, at most {MAX_WORDS} become bits; "
            f"leave the column out"
        )
    return tuple(words)
