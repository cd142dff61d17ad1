from __future__ import annotations

import sys

import numpy as np
import pytest

from gatelight.data.sets.digits import load_digits


def test_split_is_fixed_and_stratified() -> None:
    pytest.importorskip("sklearn")
    dataset = load_digits()
    assert dataset.train.x.shape == (1437, 1, 8, 8)
    assert dataset.test.x.shape == (360, 1, 8, 8)
    train, test = np.bincount(dataset.train.y), np.bincount(dataset.test.y)
    assert (abs(test - (train + test) / 5) <= 1).all()
    assert dataset.test.y[:5].tolist() == load_digits().test.y[:5].tolist()


def test_all_images_are_there_once_and_span_the_range() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    dataset = load_digits()
    x = np.concatenate([dataset.train.x, dataset.test.x]).reshape(-1, 64)
    original = datasets.load_digits(return_X_y=True)[0]
    assert x.max() == 255
    back = np.round(x / (255 / 16))
    assert sorted(map(tuple, back)) == sorted(map(tuple, original))


def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"pip install gatelight\[train\]"):
        load_digits()
