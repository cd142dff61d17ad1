"""The datasets by name: how to load each, what files it needs, whether they are there.

>>> from gatelight.data import names
>>> names()[:3]
('digits', 'mnist', 'mnist20')
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gatelight.data import cifar, mnist, uci
from gatelight.data.csvfile import load_csv
from gatelight.data.dataset import Dataset
from gatelight.data.digits import load_digits
from gatelight.data.encoding import Encoding
from gatelight.data.fetch import Progress, Remote, altered, default_folder, ensure, locate, missing
from gatelight.data.npz import load_npz


@dataclass(frozen=True)
class _Entry:
    description: str
    files: tuple[Remote, ...]
    load: Callable[[Path], Dataset]


_ENTRIES = {
    "digits": _Entry("handwritten digits, 8x8 (scikit-learn)", (), lambda folder: load_digits()),
    "mnist": _Entry("handwritten digits, 28x28", mnist.MNIST_FILES, mnist.load_mnist),
    "mnist20": _Entry("handwritten digits, central 20x20", mnist.MNIST_FILES, mnist.load_mnist20),
    "fashion-mnist": _Entry("clothing, 28x28", mnist.FASHION_FILES, mnist.load_fashion),
    "cifar10": _Entry("photographs, 3x32x32, 10 classes", cifar.CIFAR10_FILES, cifar.load_cifar10),
    "cifar100": _Entry("photographs, 3x32x32, 100 classes", cifar.CIFAR100_FILES, cifar.load_cifar100),
    "adult": _Entry("income of adults, 116 bits", uci.ADULT_FILES, uci.load_adult),
    "breast-cancer": _Entry("breast cancer (Ljubljana), 51 bits", uci.CANCER_FILES, uci.load_cancer),
    **{
        f"monk{n}": _Entry(f"the MONK's problem {n}, 17 bits", uci.MONK_FILES[n], partial(uci.load_monk, number=n))
        for n in (1, 2, 3)
    },
}


@dataclass(frozen=True)
class Status:
    """The state of one dataset in a data folder.

    Attributes:
        name: The dataset.
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
    """The names that :func:`load` knows, beside paths of .npz and .csv files."""
    return tuple(_ENTRIES)


def load(
    name: str,
    folder: str | Path | None = None,
    *,
    download: bool = True,
    progress: Progress | None = None,
    encoding: Encoding | None = None,
) -> Dataset:
    """Load a dataset; fetch its files first if they are missing.

    Args:
        name: One of :func:`names`, or the path of an ``.npz`` or ``.csv`` file.
        folder: The data folder; by default ``$GATELIGHT_DATA``, else ``gatelight`` in the user's cache folder.
        download: False to raise for a missing file rather than fetch it.
        progress: Called with what is fetched, the bytes done and the total.
        encoding: For a ``.csv`` file: that of another table, whose ranges, words and classes then hold for this one.

    Raises:
        ValueError: If the name is unknown, or files are missing or damaged.
        ImportError: If ``digits`` is wanted and scikit-learn is not installed.
    """
    if is_table(name):
        return load_csv(Path(name).expanduser(), encoding)
    if encoding is not None:
        raise ValueError(f"an encoding is for .csv files, and {name} is none")
    if Path(name).suffix.lower() == ".npz":
        return load_npz(Path(name).expanduser())
    entry = _entry(name)
    place = _folder(folder)
    ensure(entry.files, place, download=download, progress=progress)
    return entry.load(place)


def is_table(name: str) -> bool:
    """Whether a name is the path of a ``.csv`` file."""
    return Path(name).suffix.lower() == ".csv"


def available(folder: str | Path | None = None, *, deep: bool = True) -> list[Status]:
    """The state of every dataset in the folder.

    With ``deep`` each one that is there is loaded, which takes a few seconds for all of them; without it only
    the presence of its files is looked at.
    """
    return [check(name, folder, deep=deep) for name in _ENTRIES]


def check(name: str, folder: str | Path | None = None, *, deep: bool = True) -> Status:
    """The state of one dataset in the folder, see :func:`available`."""
    entry = _entry(name)
    place = _folder(folder)
    path = _first_path(entry, place)
    if not entry.files and importlib.util.find_spec("sklearn") is None:
        return Status(name, "missing", path, entry.description, "needs scikit-learn")
    lacking = missing(entry.files, place)
    if lacking:
        detail = f"needs {', '.join(remote.path for remote in lacking)}"
        return Status(name, "missing", path, entry.description, detail)
    if deep:
        try:
            entry.load(place)
        except ValueError as error:
            return Status(name, "damaged", path, entry.description, str(error))
        wrong = ", ".join(other.name for other in altered(entry.files, place))
        if wrong:
            return Status(name, "present", path, entry.description, f"differs from the published file: {wrong}")
    return Status(name, "present", path, entry.description)


def get(
    name: str,
    folder: str | Path | None = None,
    *,
    replace: bool = False,
    progress: Progress | None = None,
) -> Status:
    """Fetch the files of a dataset and check them.

    Args:
        name: One of :func:`names`.
        folder: The data folder, as for :func:`load`.
        replace: True to fetch files that are there as well (damaged ones, say).
        progress: Called as for :func:`load`.
    """
    ensure(_entry(name).files, _folder(folder), replace=replace, progress=progress)
    return check(name, folder)


def _entry(name: str) -> _Entry:
    if name not in _ENTRIES:
        near = difflib.get_close_matches(name.lower(), _ENTRIES, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(_ENTRIES)}"
        raise ValueError(f"no dataset is called {name!r}; {hint} (or give the path of an .npz or .csv file)")
    return _ENTRIES[name]


def _folder(folder: str | Path | None) -> Path:
    return default_folder() if folder is None else Path(folder).expanduser()


def _first_path(entry: _Entry, folder: Path) -> Path:
    if not entry.files:
        return folder
    remote = entry.files[0]
    if remote.members:
        return folder / remote.members[0].path
    return locate(remote, folder) or folder / remote.path
