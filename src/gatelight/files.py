"""Files: read up to a limit, and written so that a crash leaves the old one or the new one, never half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file next to ``path``; on success it is synced and renamed to ``path``, otherwise removed."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, "utf-8")


def read_limited(path: Path, limit: int, advice: str) -> bytes:
    """The bytes of a file.

    Args:
        path: The file.
        limit: No more than this many bytes are taken.
        advice: Ends the message about a file that has more.

    Raises:
        ValueError: If the file cannot be read or is larger.

    >>> read_limited(Path("no such file"), 100, "")
    Traceback (most recent call last):
    ValueError: cannot read no such file: No such file or directory
    """
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from error
    if len(data) > limit:
        raise ValueError(f"{path}: more than {limit} bytes{advice}")
    return data
