from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gatelight.data import csvfile, encoding
from gatelight.data.csvfile import load_csv
from gatelight.data.dataset import Dataset, holdout


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def table(tmp_path: Path, names: str, rows: list[str]) -> Dataset:
    return load_csv(write(tmp_path / "mine.csv", "\n".join([names, *rows]) + "\n"))


def column(dataset: Dataset, name: str) -> list[float]:
    """The column in the order of the file."""
    rest, held = holdout(len(dataset.train) + len(dataset.test), 0.2, 0)
    values = np.empty(len(rest) + len(held))
    index = dataset.feature_names.index(name)
    values[rest] = dataset.train.x[:, index]
    values[held] = dataset.test.x[:, index]
    return values.tolist()


def test_numbers_words_and_label(tmp_path: Path) -> None:
    rows = ["0.5,10,red,yes", "0.25,20,blue,no", "1,30,red,no", "0,30,red,no", "0,10,green,yes"]
    dataset = table(tmp_path, "a,b,colour,answer", rows)
    assert dataset.name == "mine"
    assert dataset.classes == ("no", "yes")
    assert dataset.feature_names == ("a", "b", "colour=blue", "colour=green", "colour=red")
    assert not dataset.binary
    assert column(dataset, "a") == [0.5, 0.25, 1, 0, 0]
    assert column(dataset, "b") == [0, 0.5, 1, 1, 0]
    assert column(dataset, "colour=red") == [1, 0, 1, 1, 0]
    assert (len(dataset.train), len(dataset.test)) == (4, 1)


@pytest.mark.parametrize("name", ["label", "Class", "TARGET"])
def test_a_named_label_may_stand_anywhere(tmp_path: Path, name: str) -> None:
    dataset = table(tmp_path, f"{name},a", ["10,0", "9,1", "9,0", "10,1"])
    assert dataset.classes == ("9", "10")  # as numbers, not as words
    assert dataset.binary
    assert dataset.feature_names == ("a",)


def test_scaling_looks_at_the_train_split_only(tmp_path: Path) -> None:
    rest, held = holdout(10, 0.2, 0)
    values = np.zeros(10)
    values[rest] = np.linspace(10, 20, 8)
    values[held] = [-5, 99]
    dataset = table(tmp_path, "a,label", [f"{v},{i % 2}" for i, v in enumerate(values)])
    np.testing.assert_allclose(dataset.train.x[:, 0], np.linspace(0, 1, 8), atol=1e-6)
    assert dataset.test.x[:, 0].tolist() == [0, 1]  # clipped


def test_extreme_columns(tmp_path: Path) -> None:
    rows = [f"{v},7,{i % 2}" for i, v in enumerate(["-1.7e308", "1.7e308", "0", "0", "1.7e308", "-1.7e308"])]
    dataset = table(tmp_path, "huge,constant,label", rows)
    assert column(dataset, "huge") == [0, 1, 0.5, 0.5, 1, 0]
    assert column(dataset, "constant") == [0] * 6


def test_spaces_quotes_blank_lines_and_a_mark_are_fine(tmp_path: Path) -> None:
    text = '\ufeff"a, b",label\r\n 1 ,x\r\n\r\n"0",y\r\n0.5,"x"\r\n'
    dataset = load_csv(write(tmp_path / "mine.csv", text))
    assert dataset.feature_names == ("a, b",)
    assert dataset.classes == ("x", "y")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least 2 rows"),
        ("\n\n", "at least 2 rows"),
        ("a,label\n", "at least 2 rows of data, got 0"),
        ("a,label\n1,0\n", "at least 2 rows of data, got 1"),
        ("a\n1\n2\n", "at least one feature and a label"),
        ("1,2\n3,4\n5,6\n", "line 1: must name the columns"),
        (
            "5.1,3.5,Iris-setosa\n4.9,3,Iris-setosa\n6,2,Iris-virginica\n",
            "line 1: must name.*'5.1'.*add a line of names",
        ),
        ("\n\n5,5,a\n4,3,b\n6,2,c\n", "line 3: must name the columns.*'5' as if it were a row of data"),
        ("red,big,yes\nred,big,yes\nblue,small,no\n", "line 1: must name the columns.*occurs again below"),
        ("0.3,0.5,target\n0.1,0.2,noise\n0.3,0.1,target\n", "line 1: must name the columns"),
        ("a;b;label\n1;2;x\n3;4;y\n", "line 1: columns must be separated by commas, this file seems to use semicolons"),
        ("a\tb\n1\t2\n", "seems to use tabs"),
        ('a,label\n"3,14",x\n"2,71",y\n', "line 2, column 'a': numbers need a decimal point, 3.14 for '3,14'"),
        ('a,label\n3,x\n"-2,71",y\n', "line 3, column 'a': numbers need a decimal point, -2.71 for '-2,71'"),
        ('a,label\n1,"0,5"\n2,"1,5"\n', "line 2, column 'label': numbers need a decimal point"),
        ("a,,label\n1,2,3\n", "line 1: column 2 has no name"),
        ("a,a,label\n1,2,3\n", "line 1: two columns are called 'a'"),
        ("class,a,label\n1,2,3\n1,2,4\n", "only one column can be the label, got 'class' and 'label'"),
        ("a,label\n1,0\n1\n", "line 3: 1 values for 2 columns"),
        ("a,label\n1,0,7\n1,1\n", "line 2: 3 values for 2 columns"),
        ("a,label\n1,0\n,1\n", "line 3, column 'a': empty"),
        ("a,label\n1,0\n2,\n", "line 3, column 'label': empty"),
        ("a,label\n1,0\nx,1\n2,1\n", "line 3, column 'a': 'x' is a word among numbers"),
        ("a,label\n?,0\n1,1\n2,1\n", r"line 2, column 'a': '\?' is a word among numbers"),
        ("a,label\nx,0\ny,1\n2,1\n", "line 4, column 'a': '2' is a number among words"),
        ("a,label\n1,0\nnan,1\n", "line 3, column 'a': 'nan' is not a finite number"),
        ("a,label\n-inf,0\n1,1\n", "line 2, column 'a': '-inf' is not a finite number"),
        ("a,label\n1e999,0\n1,1\n", "line 2, column 'a': '1e999' is not a finite number"),
        ("a,label\n1,0\n2,0\n", "needs 2 to 10000 classes, got 1"),
        ('a,label\n"1,0\n2,0\n', "line 3"),
        ('a,label\n"1"x,0\n2,0\n', "line 2"),
        (f"a,label\n{'1' * 200_000},0\n2,0\n", "line 2: field larger"),
        ('a,label\n"x\ny",0\nz,1\n', "a feature name must be printable"),
    ],
)
def test_wrong_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        load_csv(write(tmp_path / "mine.csv", text))
    assert "\n" not in str(caught.value)
    assert "mine" in str(caught.value)
    assert len(str(caught.value)) < 400


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(b"a,label\n1,0\n\xff,1\n")
    with pytest.raises(ValueError, match="line 3: not UTF-8"):
        load_csv(path)
    path.write_bytes(b"a,label\n\0,0\n\0,1\n")
    with pytest.raises(ValueError, match=r"printable|NUL"):
        load_csv(path)


def test_absurd_tables_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"w{i},{i % 2}" for i in range(csvfile.MAX_WORDS + 1)]
    with pytest.raises(ValueError, match="column 'a': 1001 different words"):
        table(tmp_path, "a,label", rows)
    monkeypatch.setattr(csvfile, "MAX_BYTES", 100)
    with pytest.raises(ValueError, match="more than 100 bytes"):
        table(tmp_path, "a,label", rows)
    with pytest.raises(ValueError, match="cannot read"):
        load_csv(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("cells", "classes", "labels"),
    [
        ("0 0.0 1 1.0 00 1e0", ("0", "1"), [0, 0, 1, 1, 0, 1]),
        ("10 9 9.0 +10 1e1 2", ("2", "9", "10"), [2, 1, 1, 2, 2, 0]),
        ("0.5 .50 1.5 1.50 0.5 1.5", ("0.5", "1.5"), [0, 0, 1, 1, 0, 1]),
        ("-1 1 -1.0 1 0 -0", ("-1", "0", "1"), [0, 2, 0, 2, 1, 1]),
        ("1 1.0 one 1 one 1.0", ("1", "1.0", "one"), [0, 1, 2, 0, 2, 1]),  # words, however they look
    ],
)
def test_labels_that_are_equal_numbers_are_one_class(
    tmp_path: Path, cells: str, classes: tuple[str, ...], labels: list[int]
) -> None:
    dataset = table(tmp_path, "a,label", [f"{i},{cell}" for i, cell in enumerate(cells.split())])
    assert dataset.classes == classes
    assert csvfile.all_rows(dataset).y.tolist() == labels


def test_names_may_be_numbers_where_the_label_is_named(tmp_path: Path) -> None:
    dataset = table(tmp_path, "0,1,label", ["0.5,1,x", "0.25,0,y", "1,1,x"])
    assert dataset.feature_names == ("0", "1")
    assert len(dataset.train) + len(dataset.test) == 3


def test_a_header_of_words_over_words_is_a_header(tmp_path: Path) -> None:
    assert table(tmp_path, "colour,size", ["red,big", "blue,small", "size,big"]).classes == ("big", "small")


def test_another_table_is_read_by_the_encoding_of_the_first(tmp_path: Path) -> None:
    rows = [f"{10 + i},{['red', 'blue', 'green'][i % 3]},{i / 20},{['no', 'yes'][i % 2]}" for i in range(20)]
    first = table(tmp_path, "age,colour,share,answer", rows)
    assert first.encoding is not None
    other = write(tmp_path / "other.csv", "answer,share,colour,age\nyes,0.5,red,99\nyes,2,blue,15\nyes,0,red,10\n")
    second = csvfile.all_rows(load_csv(other, first.encoding))
    low, high = first.encoding.columns[0].low, first.encoding.columns[0].high
    assert second.x[:, 0].tolist() == [1, np.float32((15 - low) / (high - low)), max(0, (10 - low) / (high - low))]
    assert second.x[:, 1:].tolist() == [[0, 0, 1, 0.5], [1, 0, 0, 1], [0, 0, 1, 0]]
    assert second.y.tolist() == [1, 1, 1]
    again = load_csv(
        tmp_path / "mine.csv", encoding.from_dict(json.loads(json.dumps(first.encoding.to_dict())), "here")
    )
    assert again.fingerprint == first.fingerprint
    assert again.encoding == first.encoding


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age,colour\n10,red\n11,red\n", "has no column 'answer', only age, colour"),
        ("age,answer\n10,no\n11,no\n", "has no column 'colour'"),
        (
            "age,colour,size,answer\n10,red,1,no\n11,red,2,no\n",
            "column 'size' was not in the table that was trained on",
        ),
        (
            "age,colour,answer\n10,red,no\n11,pink,no\n",
            "line 3, column 'colour': unknown word 'pink'; known: blue, red",
        ),
        (
            "age,colour,answer\n10,red,no\n11,red,maybe\n",
            "line 3, column 'answer': unknown class 'maybe'; known: no, yes",
        ),
        ("age,colour,answer\nold,red,no\nyoung,red,no\n", "line 2, column 'age': must be a number, got 'old'"),
        ("age,colour,answer\n1,7,no\n2,8,no\n", "line 2, column 'colour': unknown word '7'"),
    ],
)
def test_tables_that_do_not_fit_the_encoding_are_refused(tmp_path: Path, text: str, message: str) -> None:
    columns = (encoding.Column("age", 10, 20), encoding.Column("colour", words=("blue", "red")))
    known = encoding.Encoding("answer", columns, ("no", "yes"))
    with pytest.raises(ValueError, match=message):
        load_csv(write(tmp_path / "other.csv", text), known)


@pytest.mark.parametrize(
    "values",
    [
        None,
        {},
        {"label": "a", "columns": 3, "classes": []},
        {"label": "a", "columns": [{"name": "b"}], "classes": []},
        {"label": "a", "columns": [{"name": "b", "low": "x", "high": 1}], "classes": []},
        {"label": "a", "columns": [{"name": "b", "low": float("nan"), "high": 1}], "classes": []},
    ],
)
def test_broken_encodings_are_refused(values: object) -> None:
    with pytest.raises(ValueError, match="here: how its table was encoded cannot be read"):
        encoding.from_dict(values, "here")
