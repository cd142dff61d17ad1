"""Downloads the official files: several mirrors, checksums, resume, and an atomic rename at the end.

A file is downloaded under a private name in the same folder, hashed, and only then renamed, so that a file with
its proper name is always complete. Two processes that want the same file at once each write their own private
file; the last rename wins and both copies are the same bytes. An interrupted download becomes ``NAME.part``,
which the next one takes over (by renaming it, so only one can) and continues with an HTTP range request.

The packages pooch and platformdirs do not replace this: pooch neither resumes nor tries a second mirror, and fetching
must work if only the core is installed.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import secrets
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from gatelight.data.archive import Member, extract

#: Called with what is being fetched, the bytes done so far and the total if it is known.
Progress = Callable[[str, int, int | None], None]

TIMEOUT = 30.0
TRIES_PER_MIRROR = 3
_BLOCK = 1 << 18
_ABANDONED_AFTER = 2 * TIMEOUT


@dataclass(frozen=True)
class Remote:
    """A published file.

    Attributes:
        path: Its place in the data folder, with "/" between the parts.
        urls: Where it is published, best first.
        digest: "sha256:..." or "md5:..." of its bytes.
        size: Its size in bytes.
        aliases: Other places where an existing copy is accepted.
        members: For a tar.gz: the files to take out of it; the archive itself is not kept.
    """

    path: str
    urls: tuple[str, ...]
    digest: str
    size: int
    aliases: tuple[str, ...] = ()
    members: tuple[Member, ...] = ()


class _MirrorError(Exception):
    """A mirror did not deliver; ``again`` says whether a retry may help."""

    def __init__(self, reason: str, *, again: bool = False) -> None:
        super().__init__(reason)
        self.again = again


def default_folder() -> Path:
    """The folder for data: ``$GATELIGHT_DATA``, else ``gatelight`` in the user's cache folder."""
    named = os.environ.get("GATELIGHT_DATA")
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not Path(base).is_absolute():  # the XDG specification says to ignore relative paths
            base = str(Path.home() / ".cache")
    return Path(base) / "gatelight"


def locate(remote: Remote, folder: Path) -> Path | None:
    """The copy of a file that is already in the folder, or None."""
    for path in (remote.path, *remote.aliases):
        if (folder / path).is_file():
            return folder / path
    return None


def missing(files: Iterable[Remote], folder: Path) -> list[Remote]:
    """The files of which the folder lacks all or a part."""
    return [remote for remote in files if not _complete(remote, folder)]


def ensure(
    files: Iterable[Remote],
    folder: Path,
    *,
    download: bool = True,
    replace: bool = False,
    progress: Progress | None = None,
) -> None:
    """Make sure the folder holds the files; fetch those that are missing.

    Args:
        files: What is wanted.
        folder: The data folder; it is made if needed.
        download: False to raise an error for a missing file instead of fetching it.
        replace: True to also fetch files that are present, and replace them.
        progress: Called as bytes arrive.

    Raises:
        ValueError: If a file is missing and cannot be fetched, or the folder cannot be written.
    """
    files = list(files)
    for remote in files if replace else missing(files, folder):
        target = folder / remote.path
        own_archive = bool(remote.members) and not replace and target.is_file()
        if not own_archive:
            if not download:
                raise ValueError(_how_to_get(remote, folder, "downloading is off"))
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                _download(remote, target, folder, progress)
            except OSError as error:
                raise ValueError(f"cannot write to {target.parent}: {error.strerror or error}") from error
        if remote.members:
            extract(target, remote.members, folder)
            if not own_archive:
                target.unlink(missing_ok=True)


def altered(files: Iterable[Remote], folder: Path) -> list[Path]:
    """The files that are present under their own name but differ from the published bytes; compressed ones may."""
    there = [(folder / remote.path, remote) for remote in files if not remote.path.endswith(".gz")]
    return [path for path, remote in there if path.is_file() and _digest(path, remote.digest) != remote.digest]


def _complete(remote: Remote, folder: Path) -> bool:
    if remote.members:
        return all((folder / member.path).is_file() for member in remote.members)
    return locate(remote, folder) is not None


def _how_to_get(remote: Remote, folder: Path, why: str) -> str:
    if remote.members:
        lacking = next((m.path for m in remote.members if not (folder / m.path).is_file()), remote.path)
        do = f"put {remote.urls[0]} into that folder"
    else:
        lacking = remote.path
        do = f"get it from {remote.urls[0]}"
    return f"{lacking} is missing in {folder}: {why}; {do}"


def _download(remote: Remote, target: Path, folder: Path, progress: Progress | None) -> None:
    part = target.with_name(target.name + ".part")
    private = part.with_name(f"{part.name}.{os.getpid()}-{secrets.token_hex(4)}")
    _take_over(part, private)
    reasons = []
    try:
        for url in remote.urls:
            try:
                _from_mirror(url, remote, private, progress)
            except _MirrorError as error:
                reasons.append(f"{url}: {error}")
                continue
            private.replace(target)
            return
    finally:
        _hand_back(private, part)
    raise ValueError(_how_to_get(remote, folder, f"no mirror delivered it ({'; '.join(reasons)})"))


def _from_mirror(url: str, remote: Remote, private: Path, progress: Progress | None) -> None:
    """Complete the private file from one mirror, or raise; a file with a wrong checksum is removed."""
    for attempt in range(TRIES_PER_MIRROR):
        try:
            with private.open("ab") as out:
                resumed = _receive(url, remote, out, progress)
        except _MirrorError as error:
            if error.again and attempt + 1 < TRIES_PER_MIRROR:
                continue
            raise
        if _digest(private, remote.digest) == remote.digest:
            return
        private.unlink()
        # Bytes from an older download may be wrong, so the mirror gets a fresh start.
        if not resumed:
            break
    raise _MirrorError(f"checksum differs from {remote.digest}")


def _receive(url: str, remote: Remote, out: BinaryIO, progress: Progress | None) -> bool:
    """Append the rest of the file to ``out``; return whether earlier bytes were kept."""
    done = out.seek(0, os.SEEK_END)
    if done == remote.size:
        return True
    if done > remote.size:
        done = out.truncate(0)
    with _open(url, done, out) as response:
        if done and not _continues(response, done):
            done = out.truncate(0)
        start = done
        while block := _read(response, done > start):
            done += len(block)
            if done > remote.size:
                out.truncate(0)
                raise _MirrorError(f"more than the expected {remote.size} bytes")
            out.write(block)
            if progress is not None:
                progress(remote.path, done, remote.size)
    # Buffered bytes must reach the disk here, where a full disk is reported, and before the file is hashed.
    out.flush()
    os.fsync(out.fileno())
    if done < remote.size:
        raise _MirrorError(f"connection ended after {done} of {remote.size} bytes", again=done > start)
    return start > 0


def _open(url: str, start: int, out: BinaryIO) -> http.client.HTTPResponse:
    headers = {"User-Agent": "gatelight"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(url, headers=headers)
    try:
        response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        useless_range = error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and start > 0
        if useless_range:
            out.truncate(0)
        raise _MirrorError(f"HTTP {error.code}", again=useless_range) from error
    except (http.client.HTTPException, OSError) as error:
        raise _MirrorError(_reason(error)) from error
    return response


def _read(response: http.client.HTTPResponse, again: bool) -> bytes:
    try:
        return response.read(_BLOCK)
    except (http.client.HTTPException, OSError) as error:
        raise _MirrorError(f"connection broke ({_reason(error)})", again=again) from error


def _continues(response: http.client.HTTPResponse, start: int) -> bool:
    """Whether the answer is the rest of the file from ``start``, not the file from its beginning."""
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range") or "")
    return response.status == 206 and found is not None and int(found[1]) == start


def _take_over(part: Path, private: Path) -> None:
    """Continue an interrupted download, if there is one and no other process takes it first."""
    now = time.time()
    candidates = [part]
    for other in part.parent.glob(f"{part.name}.*-*"):
        with suppress(OSError):
            # Its owner would have given up by now; if it is only suspended, the checksum still protects us.
            if now - other.stat().st_mtime > _ABANDONED_AFTER:
                candidates.append(other)
    for candidate in candidates:
        with suppress(OSError):
            if candidate.is_file() and not candidate.is_symlink():
                candidate.rename(private)
                return


def _hand_back(private: Path, part: Path) -> None:
    """Leave the bytes of an unfinished download for the next one."""
    with suppress(OSError):
        if private.stat().st_size:
            private.replace(part)
        else:
            private.unlink()


def _digest(path: Path, like: str) -> str:
    kind = like.partition(":")[0]
    with path.open("rb") as file:
        return f"{kind}:{hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()}"


def _reason(error: BaseException) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return str(cause) or type(cause).__name__
