from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gatelight.data import Dataset, Split, validation_split
from gatelight.data.dataset import MAX_CLASSES


def images(count: int = 4) -> NDArray[np.uint8]:
    return np.zeros((count, 1, 3, 3), np.uint8)


def values(count: int = 4) -> NDArray[np.float32]:
    return np.full((count, 2), 0.5, np.float32)


def labels(count: int = 4) -> NDArray[np.int64]:
    return np.arange(count) % 2


def build(x: NDArray[Any], y: NDArray[Any], **changes: Any) -> Dataset:
    fields: dict[str, Any] = {
        "name": "toy",
        "train": Split(x, y),
        "test": Split(x, y),
        "classes": ("no", "yes"),
        "feature_names": (),
        "binary": False,
    }
    return Dataset(**{**fields, **changes})


def test_properties() -> None:
    dataset = build(images(), labels())
    assert dataset.input_shape == (1, 3, 3)
    assert dataset.num_classes == 2
    assert len(dataset.train) == 4
    assert build(values(), labels(), feature_names=("a", "b")).input_shape == (2,)


@pytest.mark.parametrize(
    ("x", "y", "changes", "message"),
    [
        (images() + 0.5 > 0, labels() > 0, {}, "labels must be whole numbers"),
        (images().astype(np.int32) + 256, labels(), {}, "must lie in 0..255, got 256..256"),
        (images().astype(np.int32) - 1, labels(), {}, "must lie in 0..255, got -1..-1"),
        (images()[:, 0, 0, 0], labels(), {}, r"a single sample is \[1, 4\]: pass x\[None\]"),
        (np.float32(1), labels(), {}, "this is a single number"),
        (images()[None], labels(), {}, r"x must be \[n, features\]"),
        (np.array(["a", "b"]), labels(), {}, "inputs must be numbers"),
        (values(0), labels(0), {}, "is empty"),
        (values()[:, :0], labels(), {}, "is empty"),
        (values(), labels(3), {}, r"4 inputs need labels of shape \[4\], got \[3\]"),
        (values(), labels()[:, None], {}, r"4 inputs need labels of shape \[4\], got \[4, 1\]"),
        (values(), labels() / 2, {}, "labels must be whole numbers"),
        (values(), labels() + 1, {}, r"labels must lie in 0..1, got 1..2"),
        (values(), labels() - 1, {}, r"labels must lie in 0..1, got -1..0"),
        (values() * np.float32(np.nan), labels(), {}, "row 0 holds nan"),
        (values() * np.float32(np.inf), labels(), {}, "row 0 holds inf"),
        (values() * 3, labels(), {}, r"must lie in \[0, 1\], got 1.5..1.5"),
        (values() - 1, labels(), {}, r"must lie in \[0, 1\], got -0.5..-0.5"),
        (values(), labels(), {"binary": True}, "only 0 and 1"),
        (values(), labels(), {"feature_names": ("a",)}, "1 feature names for 2 features"),
        (values(), labels(), {"feature_names": ("a", "a")}, "two feature names"),
        (values(), labels(), {"feature_names": ("a", "\x1b[2J")}, "printable"),
        (values(), labels(), {"classes": ("a", "")}, "printable"),
        (values(), labels(), {"classes": ("a",)}, "needs 2 to"),
        (values(), labels(), {"classes": tuple(map(str, range(MAX_CLASSES + 1)))}, "needs 2 to"),
        (images() + 0.5, labels(), {"binary": True}, "only 0 and 1"),
        (images(), labels(), {"feature_names": ("a",)}, "images do not have feature names"),
        (images() + 1.5, labels(), {}, r"must lie in \[0, 1\], got 1.5..1.5"),
        (values(), labels(), {"test": Split(images(), labels())}, "train and test inputs must agree"),
        (values(), labels(), {"test": Split(values()[:, :1], labels())}, "train and test inputs must agree"),
    ],
)
def test_broken_datasets_are_refused(x: Any, y: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        build(x, y, **changes)
    assert "\n" not in str(caught.value)
    assert "toy" in str(caught.value)


def test_one_bad_value_in_the_test_split_is_found() -> None:
    bad = values(50)
    bad[37, 1] = np.nan
    with pytest.raises(ValueError, match="toy, test split: inputs must be finite, row 37 holds nan"):
        build(values(50), labels(50), test=Split(bad, labels(50)))


def test_validation_split_divides_the_rows() -> None:
    split = Split(np.arange(100, dtype=np.float32)[:, None] / 100, np.arange(100))
    rest, validation = validation_split(split, 0.1, seed=3)
    assert (len(rest), len(validation)) == (90, 10)
    assert sorted([*rest.y, *validation.y]) == list(range(100))
    np.testing.assert_array_equal(rest.x[:, 0], split.x[rest.y, 0])
    np.testing.assert_array_equal(validation.x[:, 0], split.x[validation.y, 0])


def test_validation_split_depends_on_the_seed_alone() -> None:
    split = Split(np.zeros((100, 1), np.float32), np.arange(100))
    first, again, other = (validation_split(split, 0.1, seed)[1].y.tolist() for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_validation_split_has_a_row_in_each_part() -> None:
    split = Split(np.zeros((3, 1), np.float32), np.arange(3))
    assert [len(part) for part in validation_split(split, 0.001, 0)] == [2, 1]
    assert [len(part) for part in validation_split(split, 0.999, 0)] == [1, 2]


@pytest.mark.parametrize(
    ("fraction", "rows", "seed"), [(0, 9, 0), (1, 9, 0), (np.nan, 9, 0), (0.5, 1, 0), (0.5, 9, -1)]
)
def test_validation_split_refuses_nonsense(fraction: float, rows: int, seed: int) -> None:
    with pytest.raises(ValueError, match=r"between 0 and 1|cannot divide|negative"):
        validation_split(Split(np.zeros((rows, 1), np.float32), np.arange(rows)), fraction, seed)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, ">i4", np.uint8])
def test_whole_numbers_are_bytes_unless_they_are_bits(dtype: Any) -> None:
    pixels = np.arange(4 * 6).reshape(4, 2, 3).astype(dtype)
    dataset = build(pixels, labels().astype(np.uint8))
    assert dataset.train.x.dtype == np.uint8
    assert dataset.train.y.dtype == np.int64
    np.testing.assert_array_equal(dataset.train.x, pixels[:, None])
    np.testing.assert_array_equal(
        build(pixels[:, 0], labels()).train.x, pixels[:, 0].astype(np.float32) / np.float32(255)
    )
    bits = build(pixels % 2, labels(), binary=True)
    assert bits.train.x.dtype == np.float32
    np.testing.assert_array_equal(bits.train.x, pixels[:, None] % 2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f8", ">f4"])
def test_floats_stay_as_they_are(dtype: Any) -> None:
    x = np.random.default_rng(0).random((4, 1, 2, 3)).astype(dtype)
    dataset = build(x, labels())
    assert dataset.train.x.dtype == np.float32
    np.testing.assert_array_equal(dataset.train.x, x.astype(np.float32))
    assert dataset.input_shape == (1, 2, 3)


def test_lists_and_bools_are_fine() -> None:
    dataset = build([[0.5, 1], [0, 0.25]], [0, 1])  # type: ignore[arg-type]
    assert dataset.train.x.tolist() == [[0.5, 1], [0, 0.25]]
    assert build(values() > 0.1, labels()).train.x.tolist() == [[1, 1]] * 4


def test_the_fingerprint_is_that_of_the_training_data() -> None:
    x = np.arange(36, dtype=np.uint8).reshape(4, 1, 3, 3)
    one = build(x, labels())
    other = x.copy()
    other[3, 0, 2, 2] += 1
    assert build(np.asfortranarray(x), labels().astype(np.int32)).fingerprint == one.fingerprint
    assert build(x, labels(), name="other", test=Split(other, labels())).fingerprint == one.fingerprint
    different = [
        build(other, labels()),
        build(x, 1 - labels()),
        build(x, labels(), classes=("a", "b")),
        build(x.reshape(4, 1, 1, 9), labels()),
        build(x / 255, labels()),
        build(x.reshape(4, 9), labels()),
        build(x.reshape(4, 9), labels(), feature_names=tuple("abcdefghi")),
    ]
    assert len({one.fingerprint, *(dataset.fingerprint for dataset in different)}) == len(different) + 1


def test_classes_are_matched_by_name() -> None:
    dataset = build(values(), labels(), classes=("0", "1"))
    assert dataset.with_classes(("0", "1")) is dataset
    assert dataset.with_classes(("1", "2", "0")).train.y.tolist() == [2, 0, 2, 0]
    assert dataset.with_classes(("1.0", "0.0")).train.y.tolist() == [1, 0, 1, 0]
    for classes in (("0", "2"), ("1.0", "1", "0.0")):  # in the second, what is 1?
        with pytest.raises(ValueError, match="toy has the class"):
            dataset.with_classes(classes)
    assert build(values(), labels(), classes=("1", "1.0")).with_classes(("1.0", "1")).train.y.tolist() == [1, 0, 1, 0]
