"""Runs a circuit on data: a data set by name, a file, or arrays.

>>> from gatelight.circuit.random import layered_circuit
>>> circuit = layered_circuit(4, (8, 6), classes=2)
>>> result = run(circuit, np.zeros((3, 4), np.uint8), np.array([0, 0, 0]))
>>> result.labels.tolist(), result.accuracy
([0, 0, 0], 1.0)
"""

from __future__ import annotations

import csv
import math
import time
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatelight import engine
from gatelight.circuit import Circuit
from gatelight.engine.automatic import CODE_PAYS
from gatelight.files import replacing
from gatelight.names import shorten

#: Allowed endings of a file of labels.
SUFFIXES = (".csv", ".npz")


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples for a circuit.

    Attributes:
        x: Features as they are in the data, [rows, ...].
        y: Labels, numbered as the circuit's classes are, int64 [rows]; None if they are not known.
        source: The data set's name or the file.
        rows: Which rows these are: ``train``, ``test`` or ``all``.
        total: How many rows there are in all.
        notes: What a user should know about how the data was read, one line each.
    """

    x: NDArray[Any]
    y: NDArray[np.int64] | None
    source: str
    rows: str
    total: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if len(self.x) == self.total:
            return f"all {self.total:,} rows of {self.source}"
        return f"the {len(self.x):,} {self.rows} rows of {self.source} (of {self.total:,})"


@dataclass(frozen=True, eq=False)
class Result:
    """What a circuit says about samples.

    Attributes:
        labels: The class of each sample, int64 [samples].
        scores: The scores, int32 [samples, classes].
        accuracy: Share of correct labels; None if the true labels are unknown or there are no samples.
        seconds: How long it took, including the time to prepare the engine.
        names: Names of the classes.
    """

    labels: NDArray[np.int64]
    scores: NDArray[np.int32]
    accuracy: float | None
    seconds: float
    names: tuple[str, ...]

    def save(self, path: str | PathLike[str]) -> None:
        """Write labels and scores to a .csv file, by name, or to a .npz file, as arrays."""
        target = check_suffix(Path(path))
        with replacing(target) as temporary:
            if target.suffix == ".npz":
                with temporary.open("wb") as file:
                    np.savez(file, labels=self.labels, scores=self.scores)
                return
            with temporary.open("w", encoding="utf-8", newline="") as text:
                writer = csv.writer(text)
                writer.writerow(["label", *(f"score {name}" for name in self.names)])
                for label, row in zip(self.labels.tolist(), self.scores.tolist(), strict=True):
                    writer.writerow([self.names[label], *row])


def run(circuit: Circuit, x: ArrayLike, y: ArrayLike | None = None, *, threads: int = 1) -> Result:
    """Label samples, on the native engine if it is installed.

    Args:
        circuit: The circuit.
        x: Features, as :meth:`gatelight.Circuit.scores` takes them.
        y: The true labels, if they are known, [samples].
        threads: Threads that share the work.
    """
    begun = time.perf_counter()
    rows = circuit.encoder.rows(x)
    runner: Circuit | engine.Engine = circuit
    if engine.available():
        runner = engine.Engine(circuit, threads=threads, code=len(rows) >= CODE_PAYS)
    scores = runner.scores(rows)
    labels = np.asarray(scores.argmax(1), np.int64) if len(scores) else np.zeros(0, np.int64)
    seconds = time.perf_counter() - begun
    accuracy = None if y is None or not len(labels) else float((labels == np.asarray(y)).mean())
    names = circuit.class_names or tuple(map(str, range(circuit.classes)))
    return Result(labels, scores, accuracy, seconds, names)


def load(circuit: Circuit, source: str, *, rows: str | None = None, folder: Path | None = None) -> Samples:
    """Read samples for a circuit, and match their classes with the circuit's by name.

    Args:
        circuit: The circuit.
        source: A data set's name, or a .npz, .npy or .csv file.
        rows: ``test`` (held out by training), ``train`` or ``all``; None means ``test`` if there are labels.
        folder: The folder of the data sets.
    """
    path = Path(source).expanduser()
    if path.suffix.lower() in (".npz", ".npy"):
        from gatelight.data.npz import load_samples

        x, y, classes, rows, total, notes = load_samples(path, rows)
        notes = (*_check_samples(x, circuit, source), *notes)
    else:
        x, y, classes, rows, total, notes = _load_dataset(source, rows, folder)
    return Samples(x, None if y is None else _matched(y, classes, circuit, source), source, rows, total, notes)


def check_suffix(path: Path) -> Path:
    """Return a path that labels can be written to; raise a ValueError otherwise."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"the output must end in .csv or .npz, got {path}")
    return path


def _load_dataset(
    source: str, rows: str | None, folder: Path | None
) -> tuple[NDArray[Any], NDArray[np.int64], tuple[str, ...], str, int, tuple[str, ...]]:
    """Features, labels, classes, which rows, how many there are, and notes."""
    from gatelight import data
    from gatelight.data.csvfile import all_rows

    dataset = data.load(source, folder)
    rows, total = rows or "test", len(dataset.train) + len(dataset.test)
    if rows == "all":
        split = all_rows(dataset) if data.is_table(source) else dataset.all_rows()
    else:
        split = dataset.train if rows == "train" else dataset.test
    notes = tuple(dataset.notes)
    if data.is_table(source):
        own = f"columns are encoded by the ranges and words of {Path(source).expanduser()} itself"
        notes = (*notes, f"{own}: right for the table that the circuit was trained on, wrong for any other")
    return split.x, split.y, dataset.classes, rows, total, notes


def _check_samples(x: NDArray[Any], circuit: Circuit, source: str) -> tuple[str, ...]:
    """Report samples that are wrong or odd in ways that the circuit cannot notice."""
    if math.prod(x.shape[1:]) != circuit.features and x.size == circuit.features:
        raise ValueError(f"{source}: holds a single sample; add the batch axis: x[None]")
    if x.dtype == np.uint8 and circuit.feature_kind == "bytes" and x.size and x.max() <= 1:
        return ("x holds no value above 1 and is read as bytes, so it is nearly black; pass bool or float for bits",)
    return ()


def _matched(y: NDArray[np.int64], classes: tuple[str, ...], circuit: Circuit, source: str) -> NDArray[np.int64]:
    """Labels numbered as the circuit's classes are, matched by name if both have names."""
    from gatelight.data.dataset import class_order

    named = bool(classes and circuit.class_names)
    highest = int(y.max()) if len(y) else -1
    if classes and highest >= len(classes):
        raise ValueError(f"{source} has labels up to {highest}, but names only {len(classes)} classes")
    if not named and highest >= circuit.classes:
        raise ValueError(f"{source} has labels up to {highest}, but the circuit only {circuit.classes} classes")
    if not named:
        return y
    try:
        order = class_order(classes, circuit.class_names, source)
    except ValueError:
        order = np.zeros(0, np.int64)
    if len(order) != circuit.classes:
        raise ValueError(
            f"{source} has the classes {shorten(classes)}, the circuit {shorten(circuit.class_names)}: not the same"
        )
    return order[y]
