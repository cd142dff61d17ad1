from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gatelight.data import npz
from gatelight.data.npz import load_npz

Y = np.arange(10) % 2
BITS = np.random.default_rng(0).integers(0, 2, (10, 3))
VALUES = np.random.default_rng(0).random((10, 3))
IMAGES = np.random.default_rng(0).integers(0, 256, (10, 4, 5), np.uint8)


def save(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def four(x: NDArray[Any], y: NDArray[Any] = Y) -> dict[str, NDArray[Any]]:
    return {"x_train": x[:7], "y_train": y[:7], "x_test": x[7:], "y_test": y[7:]}


def test_given_splits(tmp_path: Path) -> None:
    dataset = load_npz(save(tmp_path / "mine.npz", **four(VALUES)))
    assert dataset.name == "mine"
    assert dataset.classes == ("0", "1")
    assert not dataset.binary
    np.testing.assert_array_equal(dataset.train.x, VALUES[:7].astype(np.float32))
    np.testing.assert_array_equal(dataset.test.y, Y[7:])


def test_one_array_is_divided_always_alike(tmp_path: Path) -> None:
    x = np.arange(50)[:, None] / 50
    y = np.arange(50) % 3
    first = load_npz(save(tmp_path / "a.npz", x=x, y=y))
    again = load_npz(save(tmp_path / "b.npz", x=x, y=y))
    assert (len(first.train), len(first.test)) == (40, 10)
    np.testing.assert_array_equal(first.test.x, again.test.x)
    both = np.concatenate([first.train.x, first.test.x])[:, 0]
    np.testing.assert_array_equal(np.sort(both), x[:, 0].astype(np.float32))


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "<f2"])
def test_storage_does_not_matter(tmp_path: Path, compressed: bool, order: Any, dtype: str) -> None:
    x = np.asarray(np.round(VALUES * 16) / 16, dtype)
    write: Any = np.savez_compressed if compressed else np.savez
    write(tmp_path / "a.npz", **{key: np.asarray(part, order=order) for key, part in four(x).items()})
    np.testing.assert_array_equal(load_npz(tmp_path / "a.npz").test.x, np.round(VALUES[7:] * 16) / 16)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
def test_bits(tmp_path: Path, dtype: Any) -> None:
    dataset = load_npz(save(tmp_path / "a.npz", **four(BITS.astype(dtype))))
    assert dataset.binary
    np.testing.assert_array_equal(dataset.train.x, BITS[:7])


def test_bytes_are_divided_by_255(tmp_path: Path) -> None:
    x = BITS.astype(np.uint8) * 51
    dataset = load_npz(save(tmp_path / "a.npz", **four(x)))
    assert not dataset.binary
    np.testing.assert_allclose(dataset.train.x, BITS[:7] * 0.2, rtol=1e-6)


def test_images(tmp_path: Path) -> None:
    for x in (IMAGES, IMAGES[:, None], IMAGES.astype(np.int32), IMAGES.astype(">u2")):
        dataset = load_npz(save(tmp_path / "a.npz", **four(x)))
        assert dataset.train.x.dtype == np.uint8
        np.testing.assert_array_equal(dataset.train.x, IMAGES[:7, None])
        assert not dataset.binary


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "<f2"])
def test_float_images_are_not_rounded(tmp_path: Path, dtype: str) -> None:
    x = np.random.default_rng(0).random((10, 4, 5)).astype(dtype)
    dataset = load_npz(save(tmp_path / "a.npz", **four(x)))
    assert dataset.train.x.dtype == np.float32
    np.testing.assert_array_equal(dataset.train.x, x[:7, None].astype(np.float32))


@pytest.mark.parametrize("dtype", ["bool", "uint8", ">i8", "float16", "float64"])
def test_images_of_bits_are_binary(tmp_path: Path, dtype: str) -> None:
    dataset = load_npz(save(tmp_path / "a.npz", **four((IMAGES > 100).astype(dtype))))
    assert dataset.binary
    assert dataset.train.x.dtype == np.float32
    np.testing.assert_array_equal(dataset.test.x, IMAGES[7:, None] > 100)
    # One rule for all parts: a test split that happens to hold only 0 and 1 is no exception.
    x = (IMAGES > 100).astype(np.uint8)
    x[0, 0, 0] = 2
    assert not load_npz(save(tmp_path / "a.npz", **four(x))).binary


@pytest.mark.parametrize("shape", [(32, 32, 3), (5, 7, 1), (28, 28, 4), (4, 4, 3), (3, 3, 1), (2, 9, 3)])
def test_channels_last_are_recognised(tmp_path: Path, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 256, (10, *shape), np.uint8)
    dataset = load_npz(save(tmp_path / "a.npz", x=x, y=Y))
    assert dataset.input_shape == (shape[2], *shape[:2])
    both = npz.load_samples(tmp_path / "a.npz", "all")
    np.testing.assert_array_equal(both.x, x.transpose(0, 3, 1, 2))
    for notes in (dataset.notes, both.notes):
        assert "channels last" in notes[0]
        assert " x ".join(map(str, shape)) in notes[0]


@pytest.mark.parametrize(
    "shape", [(3, 32, 32), (1, 28, 28), (1, 4, 4), (3, 4, 4), (4, 9, 7), (2, 5, 5), (1, 9, 1), (10, 8, 8)]
)
def test_channels_first_stay(tmp_path: Path, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 256, (10, *shape), np.uint8)
    dataset = load_npz(save(tmp_path / "a.npz", x=x, y=Y))
    assert dataset.input_shape == shape
    assert dataset.notes == ()


@pytest.mark.parametrize("shape", [(3, 32, 3), (4, 4, 4), (1, 28, 3), (3, 5, 1), (28, 28, 2)])
def test_layouts_that_could_be_either_are_asked_for(tmp_path: Path, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 256, (10, *shape), np.uint8)
    for read in (load_npz, npz.load_samples):
        with pytest.raises(ValueError, match=r"could have their channels first or last.*add an array layout"):
            read(save(tmp_path / "a.npz", x=x, y=Y))
    for layout, expected in (("channels-first", shape), ("channels-last", (shape[2], *shape[:2]))):
        assert load_npz(save(tmp_path / "a.npz", x=x, y=Y, layout=layout)).input_shape == expected
    with pytest.raises(ValueError, match="did you mean 'channels-last'"):
        load_npz(save(tmp_path / "a.npz", x=x, y=Y, layout="channel-last"))
    with pytest.raises(ValueError, match="layout must be one string"):
        load_npz(save(tmp_path / "a.npz", x=x, y=Y, layout=["channels-last"]))


def test_samples_are_the_rows_that_training_has(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((10, 3))
    dataset = load_npz(save(tmp_path / "a.npz", x=x, y=Y))
    for rows, split in ((None, dataset.test), ("test", dataset.test), ("train", dataset.train)):
        found = npz.load_samples(tmp_path / "a.npz", rows)
        np.testing.assert_array_equal(found.x.astype(np.float32), split.x)
        np.testing.assert_array_equal(found.y, split.y)
        assert (found.rows, found.total) == (rows or "test", 10)
    found = npz.load_samples(tmp_path / "a.npz", "all")
    np.testing.assert_array_equal(found.x, x)
    np.testing.assert_array_equal(found.y, Y)
    save(tmp_path / "a.npz", **four(x))
    assert [len(npz.load_samples(tmp_path / "a.npz", rows).x) for rows in (None, "train", "all")] == [3, 7, 10]
    np.testing.assert_array_equal(npz.load_samples(tmp_path / "a.npz", "all").x, x)
    save(tmp_path / "a.npz", x_test=x, y_test=Y)
    assert len(npz.load_samples(tmp_path / "a.npz").x) == 10
    save(tmp_path / "a.npz", x=x)
    assert npz.load_samples(tmp_path / "a.npz").rows == "all"
    np.save(tmp_path / "a.npy", x)
    assert npz.load_samples(tmp_path / "a.npy").rows == "all"
    for name, rows in (("a.npz", "test"), ("a.npy", "train")):
        with pytest.raises(ValueError, match=f"has no {rows} rows"):
            npz.load_samples(tmp_path / name, rows)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "<i2", ">i8", "<f2", "<f4", ">f8"])
@pytest.mark.parametrize("shape", [(6,), (2, 5), (1, 2, 5), (5, 5, 3)])
def test_samples_stay_as_they_are(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 2, (7, *shape)).astype(dtype)
    np.save(tmp_path / "a.npy", x)
    found = npz.load_samples(tmp_path / "a.npy")
    assert found.x.dtype == x.dtype
    expected = x[:, None] if x.ndim == 3 else x.transpose(0, 3, 1, 2) if shape == (5, 5, 3) else x
    np.testing.assert_array_equal(found.x, expected)


@pytest.mark.parametrize("shape", [(64,), ()])
def test_a_single_sample_is_named_as_such(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "a.npy", np.zeros(shape))
    with pytest.raises(ValueError, match="single"):
        npz.load_samples(tmp_path / "a.npy")


def test_names(tmp_path: Path) -> None:
    names = {"classes": ["no", "yes", "perhaps"], "feature_names": ["a", "b", "c"]}
    dataset = load_npz(save(tmp_path / "a.npz", **four(VALUES), **names))
    assert dataset.classes == ("no", "yes", "perhaps")
    assert dataset.feature_names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "must hold x_train"),
        ({"x": VALUES}, "must hold x_train.*found x"),
        ({"x": VALUES, "y": Y[:9]}, r"10 inputs need labels of shape \[10\], got \[9\]"),
        ({"x": VALUES, "y": Y[:, None]}, "need labels of shape"),
        ({"x": VALUES, "y": Y / 2}, "labels must be whole numbers, got dtype float64"),
        ({"x": VALUES, "y": Y - 1}, "labels must lie in"),
        ({"x": VALUES, "y": Y * 10**12}, "labels must lie in"),
        ({"x": VALUES, "y": Y * 0}, "needs 2 to"),
        ({"x": VALUES[:0], "y": Y[:0]}, "empty"),
        ({"x": VALUES[:1], "y": Y[:1]}, "needs at least 2 rows"),
        ({"x": VALUES[:, :0], "y": Y}, "empty"),
        ({"x": VALUES[:, 0], "y": Y}, "x must be"),
        ({"x": np.float64(1), "y": Y}, "x must be"),
        ({"x": VALUES * np.nan, "y": Y}, "must be finite"),
        ({"x": VALUES * np.inf, "y": Y}, "must be finite"),
        ({"x": VALUES + 1, "y": Y}, r"must lie in \[0, 1\]"),
        ({"x": BITS * 256, "y": Y}, "must lie in 0..255"),
        ({"x": BITS - 1, "y": Y}, "must lie in 0..255"),
        ({"x": BITS.astype(str), "y": Y}, "inputs must be numbers"),
        ({"x": VALUES.astype(complex), "y": Y}, "must hold numbers or strings"),
        ({"x": VALUES, "y": Y, "classes": ["a"]}, "needs 2 to"),
        ({"x": VALUES, "y": Y + 1, "classes": ["a", "b"]}, "labels must lie in 0..1"),
        ({"x": VALUES, "y": Y, "classes": [1, 2]}, "classes must be a list of strings"),
        ({"x": VALUES, "y": Y, "feature_names": ["a"]}, "1 feature names for 3"),
        ({**four(VALUES), "x_test": VALUES[7:, :2]}, "have shapes"),
        ({**four(VALUES), "x_test": BITS[7:]}, "have dtypes"),
    ],
)
def test_wrong_arrays_are_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        load_npz(save(tmp_path / "a.npz", **arrays))
    assert "\n" not in str(caught.value)


def test_objects_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npz", x=np.array([{}, []], object), y=Y)
    with pytest.raises(ValueError, match=r"x: must hold numbers or strings, got dtype '\|O'"):
        load_npz(path)


def with_header(path: Path, header: bytes, data: bytes = b"", version: int = 1) -> Path:
    """A file whose array x has this header."""
    y = io.BytesIO()
    np.save(y, Y)
    width = 2 if version == 1 else 4
    with zipfile.ZipFile(path, "w") as archive:
        start = b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(width, "little")
        archive.writestr("x.npy", start + header + data)
        archive.writestr("y.npy", y.getvalue())
    return path


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (-10, 3)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (10, 3.0)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (True, 3)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': 10}",
        b"{'descr': '<f8', 'fortran_order': 0, 'shape': (10, 3)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776, 1099511627776)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999, 3)}",
        b"{'descr': '<U0', 'fortran_order': False, 'shape': (100000000000, 3)}",
        b"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (10,)}",
        b"{'descr': '|V8', 'fortran_order': False, 'shape': (10, 3)}",
        b"{'descr': '<f8', 'shape': (10, 3)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (10, 3)",
        b"{[]: 1}",
        b"(" * 9000,
        b"-" * 9000 + b"1",
        b"\xff\xfe",
        b"",
        b"__import__('os').getcwd()",
        b" " * 20_000,
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_hostile_headers_are_refused(tmp_path: Path, header: bytes, version: int) -> None:
    with pytest.raises(ValueError, match=r"a\.npz, x: "):
        load_npz(with_header(tmp_path / "a.npz", header, b"\0" * 240, version))


def test_shape_and_data_must_agree(tmp_path: Path) -> None:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10, 3)}"
    assert load_npz(with_header(tmp_path / "a.npz", header, bytes(240))).input_shape == (3,)
    for size in (0, 239, 241):
        with pytest.raises(ValueError, match=f"does not fit its {size} bytes"):
            load_npz(with_header(tmp_path / "a.npz", header, bytes(size)))


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npz", x=VALUES, y=Y)
    whole = path.read_bytes()
    for length in range(0, len(whole), 3):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"a\.npz"):
            load_npz(path)


def test_changed_data_is_noticed(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npz", x=VALUES, y=Y)
    data = bytearray(path.read_bytes())
    place = data.index(VALUES.tobytes())
    data[place + 5] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError, match="Bad CRC-32"):
        load_npz(path)


def test_absurd_sizes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros((1000, 1000), np.uint8), y=np.zeros(1000, int))
    monkeypatch.setattr(npz, "MAX_BYTES", 1_000_000)
    with pytest.raises(ValueError, match="more than 1000000 bytes"):
        load_npz(path)


def test_strange_zip_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", bytes(100))
        archive.writestr("y.npy", bytes(100))
    with pytest.raises(ValueError, match="compressed in a way"):
        load_npz(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="not an npz file"):
        load_npz(path)
    with pytest.raises(ValueError, match="No such file"):
        load_npz(tmp_path / "none.npz")
    with pytest.raises(ValueError, match="cannot read"):
        load_npz(tmp_path)


def test_broken_text_is_refused(tmp_path: Path) -> None:
    names = np.array(["no", "yes"]).view(np.uint32) | 0x7F000000
    path = save(tmp_path / "a.npz", x=VALUES, y=Y, classes=names.view("<U3"))
    with pytest.raises(ValueError, match=r"classes is not text|must be printable"):
        load_npz(path)
