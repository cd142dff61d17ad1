"""How a data set is declared: one value that says what it is, where its files are published and what reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gatelight.data.dataset import Dataset
from gatelight.data.fetch import Remote
from gatelight.data.task import Task


@dataclass(frozen=True)
class Source:
    """A data set that can be loaded by name. Those in the files of ``data/sets/`` make up the catalog.

    Attributes:
        name: Its name in :func:`gatelight.data.load` and the command.
        task: Its shape and classes; the result of ``load`` must agree with it.
        description: What it is, in a few words.
        load: Reads it from the data folder, to which its files have been fetched.
        files: The published files, with checksums.
        package: For data that comes with a Python package: the name to import and the name to install.
        place: Its position in lists: ascending; equal ones by file and line.
    """

    name: str
    task: Task
    description: str
    load: Callable[[Path], Dataset]
    files: tuple[Remote, ...] = ()
    package: tuple[str, str] | None = None
    place: int = 100
