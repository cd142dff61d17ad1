from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from gatelight.data import archive
from gatelight.data.archive import Member, extract
from gatelight.data.fetch import Remote, ensure

ONE, TWO = os.urandom(5_000), os.urandom(3_000)


def member(path: str, data: bytes) -> Member:
    return Member(path, len(data), hashlib.md5(data).hexdigest())


MEMBERS = (member("sub/one.bin", ONE), member("sub/two.bin", TWO))


def pack(path: Path, files: dict[str, bytes], *, links: dict[str, str] | None = None) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type = tarfile.SYMTYPE
            info.linkname = target
            tar.addfile(info)
    return path


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_takes_the_members_and_nothing_else(tmp_path: Path) -> None:
    files = {
        "../evil": b"1",
        "/etc/evil": b"2",
        "sub/readme.html": b"3",
        "./sub/one.bin": b"4",
        "sub/one.bin": ONE,
        "sub/two.bin": TWO,
    }
    out = tmp_path / "out"
    extract(pack(tmp_path / "a.tar.gz", files), MEMBERS, out)
    assert content(out) == {"sub/one.bin": ONE, "sub/two.bin": TWO}
    assert not (tmp_path / "evil").exists()


def test_a_link_in_place_of_a_member_is_ignored(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.tar.gz", {"sub/two.bin": TWO}, links={"sub/one.bin": "/etc/passwd"})
    with pytest.raises(ValueError, match=r"a\.tar\.gz: damaged archive: it lacks sub/one\.bin"):
        extract(path, MEMBERS, tmp_path / "out")
    assert content(tmp_path / "out") == {"sub/two.bin": TWO}


@pytest.mark.parametrize(
    ("one", "message"), [(ONE[:-1], "has 4999 bytes, expected 5000"), (ONE[::-1], "sub/one.bin has MD5")]
)
def test_another_content_is_refused(tmp_path: Path, one: bytes, message: str) -> None:
    path = pack(tmp_path / "a.tar.gz", {"sub/one.bin": one, "sub/two.bin": TWO})
    with pytest.raises(ValueError, match=message):
        extract(path, MEMBERS, tmp_path / "out")
    assert content(tmp_path / "out") == {}


def test_truncations_are_noticed(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.tar.gz", {"sub/one.bin": ONE, "sub/two.bin": TWO})
    whole = path.read_bytes()
    for length in [*range(40), *range(40, len(whole) - 300, 211)]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="damaged archive"):
            extract(path, MEMBERS, tmp_path / "out")


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_SLACK", 10_000)
    path = tmp_path / "a.tar.gz"
    info = tarfile.TarInfo("sub/huge")
    info.size = 1 << 34
    path.write_bytes(gzip.compress(info.tobuf() + bytes(50_000_000)))
    tracemalloc.start()
    with pytest.raises(ValueError, match="unpacks to more than it should"):
        extract(path, MEMBERS, tmp_path / "out")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_a_chain_of_long_names_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type = tarfile.GNUTYPE_LONGNAME
    info.size = 0
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(info.tobuf() * 1900))
    with pytest.raises(ValueError, match="damaged archive"):
        extract(path, MEMBERS, tmp_path / "out")


def test_an_unwritable_place_is_named(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.tar.gz", {"sub/one.bin": ONE, "sub/two.bin": TWO})
    (tmp_path / "out").write_text("")
    with pytest.raises(ValueError, match="cannot unpack"):
        extract(path, MEMBERS, tmp_path / "out")


def test_ensure_downloads_unpacks_and_forgets_the_archive(server: Any, tmp_path: Path) -> None:
    data = pack(tmp_path / "a.tar.gz", {"sub/one.bin": ONE, "sub/two.bin": TWO}).read_bytes()
    server.files["a.tar.gz"] = data
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    file = Remote("a.tar.gz", (server.url("ok", "a.tar.gz"),), digest, len(data), members=MEMBERS)
    folder = tmp_path / "data"
    with pytest.raises(ValueError, match=r"sub/one\.bin is missing in .*; put http.*a\.tar\.gz into that folder"):
        ensure([file], folder, download=False)
    ensure([file], folder)
    ensure([file], folder)
    assert content(folder) == {"sub/one.bin": ONE, "sub/two.bin": TWO}
    assert len(server.requests) == 1
    (folder / "sub/two.bin").unlink()
    ensure([file], folder)
    assert content(folder) == {"sub/one.bin": ONE, "sub/two.bin": TWO}


def test_an_archive_put_into_the_folder_is_unpacked_and_kept(server: Any, tmp_path: Path) -> None:
    pack(tmp_path / "a.tar.gz", {"sub/one.bin": ONE, "sub/two.bin": TWO})
    file = Remote("a.tar.gz", (server.url("gone", "a.tar.gz"),), "sha256:-", 1, members=MEMBERS)
    ensure([file], tmp_path, download=False)
    assert set(content(tmp_path)) == {"a.tar.gz", "sub/one.bin", "sub/two.bin"}
    assert server.requests == []
