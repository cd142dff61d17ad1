"""Takes named files out of a tar.gz, and nothing else."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import secrets
import tarfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

_BLOCK = 1 << 18
#: Room for tar headers, padding and the small text files that come with the data.
_SLACK = 1 << 20
#: What gzip and tarfile raise on altered bytes; BadGzipFile is an OSError, but one about the content.
_DAMAGE = (
    tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError,
    ValueError, OverflowError, IndexError, KeyError, RecursionError,
)  # fmt: skip


@dataclass(frozen=True)
class Member:
    """A file inside an archive: its path there and in the data folder, its size and its MD5 sum."""

    path: str
    size: int
    md5: str


class _Bounded(io.RawIOBase):
    """A stream that refuses to give more than a number of bytes, as a guard against archives that unpack endlessly."""

    def __init__(self, stream: gzip.GzipFile, limit: int) -> None:
        self._stream = stream
        self._left = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(min(len(buffer), self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise tarfile.ReadError("it unpacks to more than it should")
        buffer[: len(data)] = data
        return len(data)


def extract(archive: Path, members: Sequence[Member], folder: Path) -> None:
    """Write the named members below the folder, each checked and renamed into place when it is complete.

    Only regular files whose path is exactly that of a member are read, so links, absolute paths and ".."
    in the archive have no effect.

    Raises:
        ValueError: If the archive is damaged, lacks a member or holds one that differs from what is published.
    """
    wanted = {member.path: member for member in members}
    limit = sum(member.size for member in members) + _SLACK
    try:
        with gzip.open(archive) as raw, tarfile.open(fileobj=_bounded(raw, limit), mode="r|") as tar:
            for entry in tar:
                member = wanted.get(entry.name)
                if member is None or not entry.isreg():
                    continue
                stream = tar.extractfile(entry)
                if stream is None or entry.size != member.size:
                    raise tarfile.ReadError(f"{member.path} has {entry.size} bytes, expected {member.size}")
                _write(stream, member, folder)
                del wanted[member.path]
                if not wanted:
                    return
    except _DAMAGE as error:
        raise ValueError(f"{archive}: damaged archive: {error!s:.160}") from error
    except OSError as error:
        raise ValueError(f"cannot unpack {archive} in {folder}: {error.strerror or error}") from error
    raise ValueError(f"{archive}: damaged archive: it lacks {', '.join(wanted)}")


def _bounded(stream: gzip.GzipFile, limit: int) -> io.BufferedReader:
    return io.BufferedReader(_Bounded(stream, limit))


def _write(stream: IO[bytes], member: Member, folder: Path) -> None:
    target = folder / member.path
    private = target.with_name(f"{target.name}.{os.getpid()}-{secrets.token_hex(4)}")
    target.parent.mkdir(parents=True, exist_ok=True)
    md5 = hashlib.md5(usedforsecurity=False)
    try:
        with private.open("wb") as out:
            while block := stream.read(_BLOCK):
                md5.update(block)
                out.write(block)
        if md5.hexdigest() != member.md5:
            raise tarfile.ReadError(f"{member.path} has MD5 {md5.hexdigest()}, expected {member.md5}")
        private.replace(target)
    finally:
        with suppress(OSError):
            private.unlink()
