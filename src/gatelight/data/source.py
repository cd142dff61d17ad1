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
    """A data set that can be loaded by name. Those that stand in a file of ``data/sets/`` make up the catalog.

    Attributes:
        name: For :func:`gatelight.data.load` and the command.
        task: What it asks of a network; what ``load`` gives must agree with it.
        description: What it is, in a few words.
        load: Reads it from the data folder, where its files are by then.
        files: The published files, with checksums.
        package: For data that comes with a Python package: the name to import and the name to install.
        place: Where it stands in lists: ascending, and by file and line where equal.
    """

    name: str
    task: Task
    description: str
    load: Callable[[Path], Dataset]
    files: tuple[Remote, ...] = ()
    package: tuple[str, str] | None = None
    place: int = 100
