"""Running a circuit on data: results, labels, files."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gatelight import data, engine, inference
from gatelight.circuit import Circuit, evaluate
from gatelight.circuit.random import layered_circuit


@pytest.fixture(scope="module")
def circuit() -> Circuit:
    return replace(layered_circuit(64, (200, 100), classes=10), feature_shape=(1, 8, 8))


def test_results_are_the_circuits(circuit: Circuit) -> None:
    test = data.load("digits").test
    result = inference.run(circuit, test.x, test.y, threads=2)
    scores = evaluate.scores(circuit, test.x)
    np.testing.assert_array_equal(result.scores, scores)
    np.testing.assert_array_equal(result.labels, scores.argmax(1))
    assert result.accuracy == float((scores.argmax(1) == test.y).mean())
    assert result.seconds > 0


def test_accuracy_needs_labels_and_samples(circuit: Circuit) -> None:
    x = np.zeros((3, 64), np.uint8)
    assert inference.run(circuit, x).accuracy is None
    empty = inference.run(circuit, x[:0], np.zeros(0, np.int64))
    assert empty.accuracy is None
    assert empty.labels.shape == (0,)


def test_the_engine_is_not_needed(circuit: Circuit, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).integers(0, 256, (50, 64), np.uint8)
    expected = inference.run(circuit, x).scores
    monkeypatch.setattr(engine, "available", lambda: False)
    np.testing.assert_array_equal(inference.run(circuit, x).scores, expected)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (None, "the 360 test rows of digits (of 1,797)"),
        ("train", "the 1,437 train rows of digits (of 1,797)"),
        ("all", "all 1,797 rows of digits"),
    ],
)
def test_samples_of_a_data_set(circuit: Circuit, rows: str | None, text: str) -> None:
    samples = inference.load(circuit, "digits", rows=rows)
    assert str(samples) == text
    assert samples.y is not None
    assert len(samples.x) == len(samples.y)


def test_samples_of_files(circuit: Circuit, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 256, (20, 64), np.uint8)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "dark.npz", x=x // 128)
    samples = inference.load(circuit, str(tmp_path / "x.npy"))
    np.testing.assert_array_equal(samples.x, x)
    assert samples.y is None
    assert samples.notes == ()
    assert "nearly black" in inference.load(circuit, str(tmp_path / "dark.npz")).notes[0]


def test_labels_are_matched_by_name(tmp_path: Path) -> None:
    circuit = replace(layered_circuit(4, (9, 9), classes=3), class_names=("red", "green", "blue"))
    x, y = np.zeros((3, 4), np.uint8), np.array([0, 1, 2])
    x[0] = 255
    np.savez(tmp_path / "some.npz", x=x, y=y, classes=np.array(["blue", "red", "green"]))
    samples = inference.load(circuit, str(tmp_path / "some.npz"), rows="all")
    assert samples.y is not None
    assert samples.y.tolist() == [2, 0, 1]


def test_results_are_written_by_name_or_as_arrays(tmp_path: Path) -> None:
    circuit = replace(layered_circuit(4, (9, 9), classes=3), class_names=("red", "green", "blue"))
    result = inference.run(circuit, np.random.default_rng(0).integers(0, 256, (5, 4), np.uint8))
    result.save(tmp_path / "labels.csv")
    result.save(tmp_path / "labels.npz")
    with (tmp_path / "labels.csv").open(newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header == ["label", "score red", "score green", "score blue"]
    assert [row[0] for row in rows] == [circuit.class_names[label] for label in result.labels]
    assert [[int(n) for n in row[1:]] for row in rows] == result.scores.tolist()
    with np.load(tmp_path / "labels.npz") as written:
        np.testing.assert_array_equal(written["labels"], result.labels)
        np.testing.assert_array_equal(written["scores"], result.scores)
    with pytest.raises(ValueError, match=r"must end in \.csv or \.npz"):
        result.save(tmp_path / "labels.txt")
