from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatelight.data import fetch
from gatelight.data.fetch import Remote, default_folder, ensure, locate, missing

DATA = np.random.default_rng(0).bytes(100_000)
SHA = f"sha256:{hashlib.sha256(DATA).hexdigest()}"
MD5 = f"md5:{hashlib.md5(DATA).hexdigest()}"


def remote(server: Any, *behaviours: str, digest: str = SHA, **more: Any) -> Remote:
    server.files["file.bin"] = DATA
    urls = tuple(server.url(behaviour, "file.bin") for behaviour in behaviours)
    return Remote("sub/file.bin", urls, digest, len(DATA), **more)


def ranges(server: Any) -> list[str | None]:
    return [wanted for _, wanted in server.requests]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("digest", [SHA, MD5])
def test_downloads_once(server: Any, tmp_path: Path, digest: str) -> None:
    file = remote(server, "ok", digest=digest)
    ensure([file], tmp_path / "new" / "folder")
    ensure([file], tmp_path / "new" / "folder")
    assert content(tmp_path) == {"file.bin": DATA}
    assert len(server.requests) == 1


def test_progress_counts_up_to_the_total(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_BLOCK", 30_000)
    calls: list[tuple[str, int, int | None]] = []
    ensure([remote(server, "ok")], tmp_path, progress=lambda *call: calls.append(call))
    assert calls[0][0] == "sub/file.bin"
    done = [call[1] for call in calls]
    assert len(done) > 2
    assert done == sorted(done)
    assert calls[-1] == ("sub/file.bin", len(DATA), len(DATA))


@pytest.mark.parametrize("first", ["gone", "wrong", "cut-at-once", "more"])
def test_the_second_mirror_helps(server: Any, tmp_path: Path, first: str) -> None:
    ensure([remote(server, first, "ok")], tmp_path)
    assert content(tmp_path) == {"file.bin": DATA}
    assert [path.split("/")[1] for path, _ in server.requests] == [first, "ok"]


def test_a_mirror_that_does_not_answer(server: Any, tmp_path: Path) -> None:
    file = remote(server, "ok")
    dead = Remote(file.path, ("http://127.0.0.1:9/file.bin", *file.urls), SHA, len(DATA))
    ensure([dead], tmp_path)
    assert content(tmp_path) == {"file.bin": DATA}


def test_a_cut_connection_is_continued(server: Any, tmp_path: Path) -> None:
    ensure([remote(server, "cut", "ok")], tmp_path)
    assert content(tmp_path) == {"file.bin": DATA}
    third = len(DATA) // 3
    assert ranges(server) == [None, f"bytes={third}-", f"bytes={2 * third}-", f"bytes={3 * third}-"]


def test_a_partial_file_is_continued(server: Any, tmp_path: Path) -> None:
    part = tmp_path / "sub/file.bin.part"
    part.parent.mkdir()
    part.write_bytes(DATA[:40_000])
    seen: list[int] = []
    ensure([remote(server, "ok")], tmp_path, progress=lambda what, done, total: seen.append(done))
    assert ranges(server) == ["bytes=40000-"]
    assert min(seen) > 40_000
    assert content(tmp_path) == {"file.bin": DATA}


@pytest.mark.parametrize("behaviour", ["no-range", "unsatisfiable"])
def test_a_server_without_ranges_starts_over(server: Any, tmp_path: Path, behaviour: str) -> None:
    part = tmp_path / "sub/file.bin.part"
    part.parent.mkdir()
    part.write_bytes(DATA[:40_000])
    ensure([remote(server, behaviour)], tmp_path)
    assert content(tmp_path) == {"file.bin": DATA}
    assert ranges(server)[0] == "bytes=40000-"


@pytest.mark.parametrize("size", [40_000, len(DATA), len(DATA) + 1])
def test_a_wrong_partial_file_is_given_up(server: Any, tmp_path: Path, size: int) -> None:
    part = tmp_path / "sub/file.bin.part"
    part.parent.mkdir()
    part.write_bytes(bytes(size))
    ensure([remote(server, "ok")], tmp_path)
    assert content(tmp_path) == {"file.bin": DATA}
    assert ranges(server)[-1] is None


def test_a_complete_partial_file_needs_no_server(server: Any, tmp_path: Path) -> None:
    part = tmp_path / "sub/file.bin.part"
    part.parent.mkdir()
    part.write_bytes(DATA)
    ensure([remote(server, "gone")], tmp_path)
    assert content(tmp_path) == {"file.bin": DATA}
    assert server.requests == []


def test_an_abandoned_private_file_is_continued_but_not_a_fresh_one(server: Any, tmp_path: Path) -> None:
    old, fresh = (tmp_path / f"sub/file.bin.part.{name}" for name in ("1-old", "2-new"))
    old.parent.mkdir()
    old.write_bytes(DATA[:50_000])
    fresh.write_bytes(DATA[:60_000])
    os.utime(old, (time.time() - 3600,) * 2)
    ensure([remote(server, "ok")], tmp_path)
    assert ranges(server) == ["bytes=50000-"]
    assert content(tmp_path) == {"file.bin": DATA, fresh.name: DATA[:60_000]}


def test_a_link_is_not_written_through(server: Any, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(DATA[:10])
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/file.bin.part").symlink_to(victim)
    ensure([remote(server, "ok")], tmp_path)
    assert victim.read_bytes() == DATA[:10]


@pytest.mark.parametrize("behaviour", ["wrong", "more"])
def test_wrong_bytes_leave_nothing_behind(server: Any, tmp_path: Path, behaviour: str) -> None:
    with pytest.raises(ValueError, match=r"checksum differs from sha256|more than the expected 100000 bytes"):
        ensure([remote(server, behaviour)], tmp_path)
    assert content(tmp_path) == {}


def test_the_rest_of_a_failed_download_is_kept(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "TRIES_PER_MIRROR", 1)
    with pytest.raises(ValueError, match="connection ended after 33333 of 100000 bytes"):
        ensure([remote(server, "cut")], tmp_path)
    assert content(tmp_path) == {"file.bin.part": DATA[:33_333]}


def test_an_interrupt_keeps_what_has_arrived(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_BLOCK", 30_000)

    def interrupt(what: str, done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure([remote(server, "ok")], tmp_path, progress=interrupt)
    assert content(tmp_path) == {"file.bin.part": DATA[:30_000]}
    ensure([remote(server, "ok")], tmp_path)
    assert content(tmp_path) == {"file.bin": DATA}


def test_two_at_once_both_succeed(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_BLOCK", 10_000)
    file = remote(server, "ok")
    meet = threading.Barrier(2, timeout=10)
    failures: list[BaseException] = []

    def run() -> None:
        waited: list[int] = []

        def wait_once(what: str, done: int, total: int | None) -> None:
            if not waited:
                waited.append(meet.wait())

        try:
            ensure([file], tmp_path, progress=wait_once)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert content(tmp_path) == {"file.bin": DATA}


def test_the_message_says_what_is_missing_where_and_how_to_get_it(server: Any, tmp_path: Path) -> None:
    file = remote(server, "gone", "wrong")
    with pytest.raises(ValueError, match="downloading is off") as off:
        ensure([file], tmp_path, download=False)
    with pytest.raises(ValueError, match=r"HTTP 404.*checksum differs") as failed:
        ensure([file], tmp_path)
    for caught in (off, failed):
        message = str(caught.value)
        assert f"sub/file.bin is missing in {tmp_path}" in message
        assert f"get it from {file.urls[0]}" in message
        assert "\n" not in message


def test_an_unwritable_folder_is_named(server: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"cannot write to .*file/sub: Not a directory"):
        ensure([remote(server, "ok")], tmp_path / "file")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file sizes")
def test_a_full_disk_is_reported(server: Any, tmp_path: Path) -> None:
    import resource

    file = remote(server, "ok")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(ValueError, match=r"cannot write to .*sub: File too large"):
            ensure([file], tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    ensure([file], tmp_path)
    assert content(tmp_path) == {"file.bin": DATA}


def test_files_there_are_used_unless_replaced(server: Any, tmp_path: Path) -> None:
    file = remote(server, "ok", aliases=("sub/plain",))
    assert missing([file], tmp_path) == [file]
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/plain").write_bytes(b"mine")
    ensure([file], tmp_path)
    assert server.requests == []
    assert locate(file, tmp_path) == tmp_path / "sub/plain"
    ensure([file], tmp_path, replace=True)
    assert locate(file, tmp_path) == tmp_path / "sub/file.bin"
    (tmp_path / "sub/file.bin").write_bytes(b"mine")
    ensure([file], tmp_path)
    assert (tmp_path / "sub/file.bin").read_bytes() == b"mine"
    ensure([file], tmp_path, replace=True)
    assert (tmp_path / "sub/file.bin").read_bytes() == DATA


def test_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GATELIGHT_DATA", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("GATELIGHT_DATA")
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        assert default_folder() == tmp_path / "cache" / "gatelight"
        for ignored in ("", "relative/path"):
            monkeypatch.setenv("XDG_CACHE_HOME", ignored)
            assert default_folder() == Path.home() / ".cache" / "gatelight"
