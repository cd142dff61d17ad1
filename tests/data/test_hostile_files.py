"""Whatever happens to the bytes of a file, its reader gives a checked dataset or one line that names the cause."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatelight.data.archive import Member, extract
from gatelight.data.csvfile import load_csv
from gatelight.data.npz import load_npz
from gatelight.data.sets import cifar
from gatelight.data.sets.mnist import read_idx
from gatelight.data.sets.uci import load_adult, load_cancer, load_monk

CSV = b"a,colour,label\n" + b"0.5,red,x\n1,blue,y\n" * 4
IMAGES = np.arange(60, dtype=np.uint8).reshape(5, 3, 4)


def npz_bytes(compressed: bool) -> bytes:
    out = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(out, x=IMAGES, y=np.arange(5) % 2, classes=np.array(["a", "b"]))
    return out.getvalue()


def tar_bytes() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        info = tarfile.TarInfo("one.bin")
        info.size = 600
        tar.addfile(info, io.BytesIO(bytes(600)))
    return out.getvalue()


def read_cifar(path: Path) -> None:
    cifar.read_records(path, 3 * 3074, (20, 100), np.empty((3, 3, 32, 32), np.uint8), np.empty(3, np.int64))


def read_repacked(path: Path) -> None:
    """Damage beneath an intact compression."""
    path.write_bytes(gzip.compress(path.read_bytes(), 1))
    extract(path, (Member("one.bin", 600, ""),), path.parent)


FORMATS: dict[str, tuple[str, Callable[[Any], bytes], Callable[[Path], object]]] = {
    "idx": ("a", lambda make: make.idx_bytes(IMAGES), lambda path: read_idx(path, (3, 4))),
    "idx-gz": (
        "a.gz",
        lambda make: gzip.compress(make.idx_bytes(IMAGES), mtime=0),
        lambda path: read_idx(path, (3, 4)),
    ),
    "cifar": ("a.bin", lambda make: make.cifar_records(np.zeros((3, 2), np.uint8)), read_cifar),
    "adult": (
        "uci/adult.data",
        lambda make: "\n".join(make.adult_rows).encode(),
        lambda path: load_adult(path.parent.parent),
    ),
    "cancer": (
        "uci/breast-cancer.data",
        lambda make: "\n".join(make.cancer_rows).encode(),
        lambda path: load_cancer(path.parent.parent),
    ),
    "monk": (
        "uci/monks-1.train",
        lambda make: "\n".join(make.monk_rows).encode(),
        lambda path: load_monk(path.parent.parent, 1),
    ),
    "npz": ("a.npz", lambda make: npz_bytes(False), load_npz),
    "npz-packed": ("a.npz", lambda make: npz_bytes(True), load_npz),
    "csv": ("a.csv", lambda make: CSV, load_csv),
    "tar-gz": (
        "a.tar.gz",
        lambda make: tar_bytes(),
        lambda path: extract(path, (Member("one.bin", 600, "b0a9b8b1e1a0"),), path.parent),
    ),
    "tar-inside-gz": (
        "a.tar.gz",
        lambda make: gzip.decompress(tar_bytes()),
        read_repacked,
    ),
}


def mutate(data: bytes, edits: list[tuple[str, float, bytes]]) -> bytes:
    for kind, where, new in edits:
        place = int(where * len(data))
        if kind == "cut":
            data = data[:place]
        elif kind == "overwrite":
            data = data[:place] + new + data[place + len(new) :]
        elif kind == "insert":
            data = data[:place] + new + data[place:]
        else:
            data = data[:place] + data[place + len(new) :]
    return data


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["cut", "overwrite", "overwrite", "insert", "delete"]),
        st.floats(0, 1),
        st.one_of(
            st.binary(min_size=1, max_size=8), st.sampled_from([b",", b"\n", b"nan", b"\xff" * 4, b"\0" * 4, b'"'])
        ),
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize("name", FORMATS)
@given(edits=EDITS)
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_altered_bytes(tmp_path: Path, make: Any, few_rows: None, name: str, edits: list[Any]) -> None:
    file, valid, read = FORMATS[name]
    path = tmp_path / file
    if file.startswith("uci/"):
        make.adult(tmp_path / "uci")
        make.monk(tmp_path / "uci", 1)
    path.write_bytes(mutate(valid(make), edits))
    message = ""
    try:
        read(path)
    except ValueError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 600


@pytest.mark.parametrize("name", [name for name in FORMATS if not name.startswith("tar")])
def test_the_unaltered_file_is_read(tmp_path: Path, make: Any, few_rows: None, name: str) -> None:
    file, valid, read = FORMATS[name]
    make.adult(tmp_path / "uci")
    make.monk(tmp_path / "uci", 1)
    (tmp_path / file).write_bytes(valid(make))
    read(tmp_path / file)
