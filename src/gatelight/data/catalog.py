"""The data sets by name: what the files of ``data/sets/`` declare, loaded, fetched and checked.

>>> from gatelight.data import names
>>> names()[:3]
('digits', 'mnist', 'mnist20')
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from gatelight.data import sets
from gatelight.data.csvfile import load_csv
from gatelight.data.dataset import Dataset
from gatelight.data.encoding import Encoding
from gatelight.data.fetch import Progress, altered, default_folder, ensure, locate, missing
from gatelight.data.npz import load_npz
from gatelight.data.source import Source
from gatelight.data.task import Task
from gatelight.listing import declared_in
from gatelight.names import nearest

#: Every data set that a file of ``data/sets/`` declares, by name.
SOURCES: dict[str, Source] = declared_in(sets, Source)
#: What each of them asks of a network.
TASKS: Mapping[str, Task] = MappingProxyType({name: source.task for name, source in SOURCES.items()})


@dataclass(frozen=True)
class Status:
    """The state of one data set in a data folder.

    Attributes:
        name: The data set.
        state: "present", "missing" or "damaged".
        path: Where its first file is or belongs; the folder itself if it needs none.
        description: What it is, in a few words.
        detail: For "missing" and "damaged", what is wrong; for "present", files that differ from the published.
    """

    name: str
    state: str
    path: Path
    description: str
    detail: str = ""


def names() -> tuple[str, ...]:
    """The names that :func:`load` knows, besides paths of .npz and .csv files."""
    return tuple(SOURCES)


def task(name: str) -> Task:
    """The task of a data set: shape, classes, and whether its inputs are bits.

    >>> task("cifar100")
    Task(shape=(3, 32, 32), classes=100, binary=False)
    """
    return find(name).task


def load(
    name: str,
    folder: str | Path | None = None,
    *,
    download: bool = True,
    progress: Progress | None = None,
    encoding: Encoding | None = None,
) -> Dataset:
    """Load a data set; fetch its files first if they are missing.

    Args:
        name: One of :func:`names`, or the path of an ``.npz`` or ``.csv`` file.
        folder: The data folder; by default ``$GATELIGHT_DATA``, else ``gatelight`` in the user's cache folder.
        download: False to raise an error for a missing file instead of fetching it.
        progress: Called with what is fetched, the bytes done and the total.
        encoding: For a ``.csv`` file: that of another table, whose ranges, words and classes are used here.

    Raises:
        ValueError: If the name is unknown, or files are missing or damaged.
        ImportError: If ``digits`` is wanted and scikit-learn is not installed.
    """
    if is_table(name):
        return load_csv(Path(name).expanduser(), encoding)
    if encoding is not None:
        raise ValueError(f"an encoding applies only to .csv files, and {name} is not one")
    if Path(name).suffix.lower() == ".npz":
        return load_npz(Path(name).expanduser())
    source = find(name)
    place = _folder(folder)
    ensure(source.files, place, download=download, progress=progress)
    return source.load(place)


def is_table(name: str) -> bool:
    """Whether a name is the path of a ``.csv`` file."""
    return Path(name).suffix.lower() == ".csv"


def available(folder: str | Path | None = None, *, deep: bool = True) -> list[Status]:
    """The state of every data set in the folder.

    With ``deep`` each data set that is present is loaded, which takes a few seconds for all of them; otherwise
    only the presence of its files is checked.
    """
    return [check(name, folder, deep=deep) for name in SOURCES]


def check(name: str, folder: str | Path | None = None, *, deep: bool = True) -> Status:
    """The state of one data set in the folder, see :func:`available`."""
    source = find(name)
    place = _folder(folder)
    path = _first_path(source, place)
    if source.package is not None and importlib.util.find_spec(source.package[0]) is None:
        return Status(name, "missing", path, source.description, f"needs {source.package[1]}")
    lacking = missing(source.files, place)
    if lacking:
        detail = f"needs {', '.join(remote.path for remote in lacking)}"
        return Status(name, "missing", path, source.description, detail)
    if deep:
        try:
            source.load(place)
        except ValueError as error:
            return Status(name, "damaged", path, source.description, str(error))
        wrong = ", ".join(other.name for other in altered(source.files, place))
        if wrong:
            return Status(name, "present", path, source.description, f"differs from the published file: {wrong}")
    return Status(name, "present", path, source.description)


def get(
    name: str,
    folder: str | Path | None = None,
    *,
    replace: bool = False,
    progress: Progress | None = None,
) -> Status:
    """Fetch the files of a data set and check them.

    Args:
        name: One of :func:`names`.
        folder: The data folder, as for :func:`load`.
        replace: True to also fetch files that are present (for example damaged ones).
        progress: Called as for :func:`load`.
    """
    ensure(find(name).files, _folder(folder), replace=replace, progress=progress)
    return check(name, folder)


def find(name: str) -> Source:
    """The declaration of a data set.

    Raises:
        ValueError: If no data set has this name; it suggests the nearest.

    >>> find("digits").description
    'handwritten digits, 8x8 (scikit-learn)'
    """
    if name not in SOURCES:
        near = nearest(name.lower(), SOURCES)
        hint = f"did you mean {near!r}?" if near else f"known are {', '.join(SOURCES)}"
        raise ValueError(f"no data set is called {name!r}; {hint} (or give the path of an .npz or .csv file)")
    return SOURCES[name]


def _folder(folder: str | Path | None) -> Path:
    return default_folder() if folder is None else Path(folder).expanduser()


def _first_path(source: Source, folder: Path) -> Path:
    if not source.files:
        return folder
    remote = source.files[0]
    if remote.members:
        return folder / remote.members[0].path
    return locate(remote, folder) or folder / remote.path
