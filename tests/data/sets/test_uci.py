from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatelight.data.dataset import Dataset
from gatelight.data.sets import uci

pytestmark = pytest.mark.usefixtures("few_rows")


def bits(dataset: Dataset, row: int) -> set[str]:
    return {dataset.feature_names[i] for i in np.flatnonzero(dataset.train.x[row])}


@pytest.fixture
def folder(tmp_path: Path, make: Any) -> Path:
    make.adult(tmp_path / "uci")
    make.cancer(tmp_path / "uci")
    make.monk(tmp_path / "uci", 2)
    return tmp_path


def test_adult(folder: Path) -> None:
    dataset = uci.load_adult(folder)
    assert dataset.input_shape == (116,)
    assert dataset.binary
    assert dataset.train.y.tolist() == dataset.test.y.tolist() == [0, 1]  # the third row has unknowns
    np.testing.assert_array_equal(dataset.train.x, dataset.test.x)
    assert bits(dataset, 0) == {
        "age=30-44",
        "workclass=State-gov",
        "education=Bachelors",
        "marital-status=Never-married",
        "occupation=Adm-clerical",
        "relationship=Not-in-family",
        "race=White",
        "sex=Male",
        "capital-gain=1-4999",
        "capital-loss<1",
        "hours-per-week=26-40",
        "native-country=United-States",
    }
    assert {"age=45-59", "capital-loss>=5000", "hours-per-week=13-25"} < bits(dataset, 1)


def test_ranges_have_their_limits_where_they_say(folder: Path, make: Any) -> None:
    path = folder / "uci/adult.data"
    row = make.adult_rows[0]
    for age, name in ((0, "age<21"), (20, "age<21"), (21, "age=21-29"), (59, "age=45-59"), (60, "age>=60")):
        path.write_text("\n".join([row.replace("39,", f"{age},")] * 3))
        assert name in bits(uci.load_adult(folder), 0)


def test_breast_cancer(folder: Path) -> None:
    dataset = uci.load_cancer(folder)
    assert dataset.input_shape == (51,)
    assert (len(dataset.train), len(dataset.test)) == (3, 1)  # of five rows one has an unknown
    assert (dataset.train.x.sum(1) == 9).all()
    assert sorted([*dataset.train.y, *dataset.test.y]) == [0, 0, 1, 1]


def test_monk(folder: Path) -> None:
    dataset = uci.load_monk(folder, 2)
    assert dataset.input_shape == (17,)
    assert dataset.train.y.tolist() == [1, 0, 1]
    assert bits(dataset, 1) == {"a1=3", "a2=2", "a3=2", "a4=3", "a5=4", "a6=2"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Bachelors", "Bachelor", "line 1: education 'Bachelor' is not a known value"),
        ("39,", "39.5,", "line 1: age '39.5' is not a whole number"),
        ("39,", "-1,", "line 1: age '-1' is not a whole number"),
        ("39,", "\u0663,", "byte 0 is not text"),
        ("39,", f"{'9' * 5000},", "is not a whole number"),
        ("39,", "", "line 1: 14 values, expected 15"),
        ("<=50K", "<=50K, 1", "line 1: 16 values, expected 15"),
        ("<=50K", "rich", "line 1: class 'rich', expected one of <=50K, >50K"),
        ("State-gov", "\0", r"workclass '\\x00' is not a known value"),
    ],
)
def test_altered_adult_rows_are_refused(folder: Path, old: str, new: str, message: str) -> None:
    path = folder / "uci/adult.data"
    path.write_text(path.read_text().replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        uci.load_adult(folder)
    assert "adult.data" in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(("row", "message"), [(" 1 1 1 1 1 5 1 data_5", "a5 '5'"), (" 2 1 1 1 1 3 1 x", "class '2'")])
def test_altered_monk_rows_are_refused(folder: Path, make: Any, row: str, message: str) -> None:
    (folder / "uci/monks-2.test").write_text("\n".join([*make.monk_rows[:2], row]))
    with pytest.raises(ValueError, match=f"monks-2.test, line 3: {message}"):
        uci.load_monk(folder, 2)


def test_missing_and_doubled_rows_are_noticed(folder: Path) -> None:
    path = folder / "uci/monks-2.train"
    rows = path.read_text()
    for text, count in (("", 0), (rows + rows, 6), ("\n".join(rows.split("\n")[:2]), 2)):
        path.write_text(text)
        with pytest.raises(ValueError, match=f"{count} rows, expected 3"):
            uci.load_monk(folder, 2)


def test_truncations_never_change_the_data(folder: Path) -> None:
    path = folder / "uci/breast-cancer.data"
    whole = path.read_bytes()
    expected = uci.load_cancer(folder)
    intact = 0
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        try:
            dataset = uci.load_cancer(folder)
        except ValueError:
            continue
        intact += 1
        np.testing.assert_array_equal(dataset.train.x, expected.train.x)
    assert intact == 1  # without the last line's end


def test_all_rows_unknown_is_an_empty_dataset(folder: Path, make: Any) -> None:
    (folder / "uci/adult.test").write_text("\n".join([make.adult_rows[2]] * 3))
    with pytest.raises(ValueError, match="adult, test split: is empty"):
        uci.load_adult(folder)


def test_absurd_files_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uci, "_MAX_BYTES", 100)
    with pytest.raises(ValueError, match="more than 100 bytes"):
        uci.load_adult(folder)
    with pytest.raises(ValueError, match="cannot read"):
        uci.load_monk(folder, 3)
