from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatelight.data.fetch import Remote
from gatelight.data.sets import cifar

FINE = np.array([[0, 99], [19, 0], [3, 42]], np.uint8)
COARSE = np.array([[9], [0], [4]], np.uint8)


def shrink(files: tuple[Remote, ...], size: int) -> tuple[Remote, ...]:
    (remote,) = files
    return (replace(remote, members=tuple(replace(member, size=size) for member in remote.members)),)


@pytest.fixture
def folder(tmp_path: Path, make: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both datasets with three records in each file."""
    for name, labels in (("CIFAR10_FILES", COARSE), ("CIFAR100_FILES", FINE)):
        (remote,) = files = getattr(cifar, name)
        monkeypatch.setattr(cifar, name, shrink(files, 3 * (3072 + labels.shape[1])))
        for seed, member in enumerate(remote.members):
            path = tmp_path / member.path
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(make.cifar_records(labels, seed))
    return tmp_path


def test_cifar10(folder: Path) -> None:
    dataset = cifar.load_cifar10(folder)
    assert dataset.train.x.shape == (15, 3, 32, 32)
    assert dataset.test.x.shape == (3, 3, 32, 32)
    assert dataset.train.y.tolist() == [9, 0, 4] * 5
    last = np.random.default_rng(4).integers(0, 256, (3, 3, 32, 32), np.uint8)
    np.testing.assert_array_equal(dataset.train.x[12:], last)
    assert dataset.classes[3] == "cat"


def test_cifar100_has_fine_labels(folder: Path) -> None:
    dataset = cifar.load_cifar100(folder)
    assert dataset.train.y.tolist() == [99, 0, 42]
    assert dataset.num_classes == 100
    assert dataset.classes[99] == "worm"
    np.testing.assert_array_equal(dataset.test.x, np.random.default_rng(1).integers(0, 256, (3, 3, 32, 32), np.uint8))


@pytest.mark.parametrize("change", [-1, -3073, 1, 3073, -3 * 3073])
def test_another_length_is_refused(folder: Path, change: int) -> None:
    path = folder / "cifar-10-batches-bin/data_batch_4.bin"
    data = path.read_bytes()
    path.write_bytes(data[:change] if change < 0 else data + bytes(change))
    with pytest.raises(ValueError, match=rf"data_batch_4.*{len(data) + change} bytes, expected {len(data)}"):
        cifar.load_cifar10(folder)


@pytest.mark.parametrize(("label", "record", "message"), [(0, 1, "0..19, got 20"), (1, 2, "0..99, got 100")])
def test_labels_out_of_range_are_refused(folder: Path, label: int, record: int, message: str) -> None:
    path = folder / "cifar-100-binary/test.bin"
    data = bytearray(path.read_bytes())
    data[record * 3074 + label] = (20, 100)[label]
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError, match=message):
        cifar.load_cifar100(folder)


def test_missing_file_is_named(folder: Path) -> None:
    (folder / "cifar-10-batches-bin/test_batch.bin").unlink()
    with pytest.raises(ValueError, match=r"cannot read .*test_batch.bin: No such file"):
        cifar.load_cifar10(folder)


def test_a_folder_in_place_of_a_file_is_refused(folder: Path) -> None:
    path = folder / "cifar-10-batches-bin/test_batch.bin"
    path.unlink()
    path.mkdir()
    with pytest.raises(ValueError, match=r"test_batch\.bin"):
        cifar.load_cifar10(folder)
