from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatelight.data.sets import mnist
from gatelight.data.sets.mnist import load_fashion, load_mnist, load_mnist20, read_idx

SMALL = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)


@pytest.mark.parametrize("packed", [True, False])
def test_loads_gzipped_and_plain_files(tmp_path: Path, make: Any, packed: bool) -> None:
    make.mnist(tmp_path / "mnist", packed=packed)
    dataset = load_mnist(tmp_path)
    assert dataset.train.x.shape == (6, 1, 28, 28)
    assert dataset.test.x.shape == (3, 1, 28, 28)
    assert dataset.train.y.tolist() == [0, 1, 2, 3, 4, 5]
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(dataset.train.x[:, 0], rng.integers(0, 256, (6, 28, 28), np.uint8))
    assert dataset.train.x.flags.writeable


def test_mnist20_is_the_centre(tmp_path: Path, make: Any) -> None:
    make.mnist(tmp_path / "mnist")
    full, centre = load_mnist(tmp_path), load_mnist20(tmp_path)
    assert centre.name == "mnist20"
    assert centre.input_shape == (1, 20, 20)
    np.testing.assert_array_equal(centre.test.x, full.test.x[:, :, 4:24, 4:24])
    assert centre.train.x.flags.c_contiguous


def test_fashion_has_its_own_folder_and_classes(tmp_path: Path, make: Any) -> None:
    make.mnist(tmp_path / "fashion-mnist")
    assert load_fashion(tmp_path).classes[9] == "Ankle boot"


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["idx", "idx.gz"])
def test_every_truncation_is_noticed(tmp_path: Path, make: Any, name: str) -> None:
    path = write(tmp_path / name, make.idx_bytes(SMALL))
    whole = path.read_bytes()
    np.testing.assert_array_equal(read_idx(path, (2, 3)), SMALL)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"damaged|shorter"):
            read_idx(path, (2, 3))


@pytest.mark.parametrize("name", ["idx", "idx.gz"])
def test_every_changed_header_byte_is_noticed(tmp_path: Path, make: Any, name: str) -> None:
    whole = make.idx_bytes(SMALL)
    for place in range(16):
        for flip in (1, 0x80):
            data = bytearray(whole)
            data[place] ^= flip
            with pytest.raises(ValueError, match="idx"):
                read_idx(write(tmp_path / name, bytes(data)), (2, 3))


def test_no_changed_byte_of_a_gzipped_file_changes_the_data(tmp_path: Path, make: Any) -> None:
    path = write(tmp_path / "idx.gz", make.idx_bytes(SMALL))
    whole = path.read_bytes()
    unnoticed = 0
    for place in range(10, len(whole)):  # the first ten bytes hold a date and the like
        data = bytearray(whole)
        data[place] ^= 0x10
        path.write_bytes(bytes(data))
        try:
            np.testing.assert_array_equal(read_idx(path, (2, 3)), SMALL)
        except ValueError:
            continue
        unnoticed += 1
    assert unnoticed <= 1  # the bits that fill up the last byte of the compressed data


@pytest.mark.parametrize("name", ["idx", "idx.gz"])
def test_extra_bytes_are_noticed(tmp_path: Path, make: Any, name: str) -> None:
    with pytest.raises(ValueError, match="more than 24 bytes"):
        read_idx(write(tmp_path / name, make.idx_bytes(SMALL) + b"\0"), (2, 3))


def test_trailing_rubbish_after_gzip_is_noticed(tmp_path: Path, make: Any) -> None:
    path = write(tmp_path / "idx.gz", make.idx_bytes(SMALL))
    path.write_bytes(path.read_bytes() + b"rubbish")
    with pytest.raises(ValueError, match="damaged gzip"):
        read_idx(path, (2, 3))


def test_no_entries_is_refused(tmp_path: Path, make: Any) -> None:
    with pytest.raises(ValueError, match=r"dimensions \[0, 2, 3\]"):
        read_idx(write(tmp_path / "idx", make.idx_bytes(SMALL[:0])), (2, 3))


@pytest.mark.parametrize("name", ["idx", "idx.gz"])
def test_a_header_cannot_make_us_allocate(tmp_path: Path, make: Any, name: str) -> None:
    data = bytearray(make.idx_bytes(SMALL))
    data[4:8] = b"\xff\xff\xff\xff"
    path = write(tmp_path / name, bytes(data))
    tracemalloc.start()
    with pytest.raises(ValueError, match="too short for its 4294967295 entries"):
        read_idx(path, (2, 3))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_a_bomb_is_not_unpacked(tmp_path: Path, make: Any) -> None:
    path = write(tmp_path / "idx.gz", make.idx_bytes(SMALL) + bytes(100_000_000))
    tracemalloc.start()
    with pytest.raises(ValueError, match="more than 24 bytes"):
        read_idx(path, (2, 3))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_labels_and_images_must_agree(tmp_path: Path, make: Any) -> None:
    make.mnist(tmp_path / "mnist")
    make.mnist(tmp_path / "other", counts=(5, 3))
    name = "train-labels-idx1-ubyte.gz"
    (tmp_path / "other" / name).replace(tmp_path / "mnist" / name)
    with pytest.raises(ValueError, match="5 labels for the 6 images"):
        load_mnist(tmp_path)


def test_labels_out_of_range_are_refused(tmp_path: Path, make: Any) -> None:
    make.mnist(tmp_path / "mnist")
    write(tmp_path / "mnist/t10k-labels-idx1-ubyte.gz", make.idx_bytes(np.array([1, 2, 10], np.uint8)))
    with pytest.raises(ValueError, match=r"t10k-labels.*0..9, got 10"):
        load_mnist(tmp_path)


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path, make: Any) -> None:
    make.mnist(tmp_path / "mnist")
    (tmp_path / "mnist/train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(ValueError, match=r"train-labels-idx1-ubyte\.gz is missing"):
        load_mnist(tmp_path)
    with pytest.raises(ValueError, match="cannot read"):
        read_idx(tmp_path, ())


def test_published_files_are_the_known_ones() -> None:
    for files in (mnist.MNIST_FILES, mnist.FASHION_FILES):
        assert [remote.path.split("/")[1] for remote in files] == [
            f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")
        ]
        assert all(len(remote.urls) >= 2 for remote in files)
