"""The official files, where they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from gatelight import data

FOLDER = os.environ.get("GATELIGHT_DATA", "")
FACTS = {
    "mnist": ((60_000, 1, 28, 28), (10_000, 1, 28, 28), 10),
    "mnist20": ((60_000, 1, 20, 20), (10_000, 1, 20, 20), 10),
    "fashion-mnist": ((60_000, 1, 28, 28), (10_000, 1, 28, 28), 10),
    "cifar10": ((50_000, 3, 32, 32), (10_000, 3, 32, 32), 10),
    "cifar100": ((50_000, 3, 32, 32), (10_000, 3, 32, 32), 100),
    "adult": ((30_162, 116), (15_060, 116), 2),
    "breast-cancer": ((207, 51), (70, 51), 2),
    "monk1": ((124, 17), (432, 17), 2),
    "monk2": ((169, 17), (432, 17), 2),
    "monk3": ((122, 17), (432, 17), 2),
}


def load(name: str) -> data.Dataset:
    if not FOLDER or data.check(name, FOLDER, deep=False).state != "present":
        pytest.skip(f"GATELIGHT_DATA has no {name}")
    return data.load(name, FOLDER, download=False)


@pytest.mark.parametrize("name", FACTS)
def test_shapes(name: str) -> None:
    dataset = load(name)
    train, test, classes = FACTS[name]
    assert dataset.train.x.shape == train
    assert dataset.test.x.shape == test
    assert dataset.num_classes == classes
    assert np.unique(dataset.train.y).tolist() == list(range(classes))


def test_monk_rules() -> None:
    columns = {"a1": 0, "a2": 3, "a3": 6, "a4": 8, "a5": 11, "a6": 15}
    ends = [*list(columns.values())[1:], 17]
    for name in ("monk1", "monk2", "monk3"):
        dataset = load(name)
        a1, a2, a3, a4, a5, a6 = (
            dataset.test.x[:, start:end].argmax(1) + 1 for start, end in zip(columns.values(), ends, strict=True)
        )
        rule = {
            "monk1": (a1 == a2) | (a5 == 1),
            "monk2": sum((a == 1).astype(int) for a in (a1, a2, a3, a4, a5, a6)) == 2,
            "monk3": ((a5 == 3) & (a4 == 1)) | ((a5 != 4) & (a2 != 3)),
        }[name]
        np.testing.assert_array_equal(rule, dataset.test.y == 1)


def test_breast_cancer_is_divided_as_in_earlier_work() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    dataset = load("breast-cancer")
    train, test = selection.train_test_split(np.arange(277), test_size=0.25, random_state=0)
    rows = np.empty((277, 51), np.float32)
    rows[train], rows[test] = dataset.train.x, dataset.test.x
    # In the file all rows of one class come before those of the other.
    labels = np.empty(277, np.int64)
    labels[train], labels[test] = dataset.train.y, dataset.test.y
    assert (np.diff(labels) >= 0).all()


def test_adult_rates() -> None:
    dataset = load("adult")
    assert dataset.train.y.mean() == pytest.approx(0.2489, abs=1e-4)
    assert (dataset.train.x.sum(1) == 12).all()


def test_folder_is_not_written(tmp_path: Path) -> None:
    if not FOLDER:
        pytest.skip("GATELIGHT_DATA is not set")
    before = sorted(Path(FOLDER).rglob("*"))
    data.available(FOLDER)
    assert sorted(Path(FOLDER).rglob("*")) == before
