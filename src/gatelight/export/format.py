"""What an export format is: one value, ``FORMAT``, in a file of this folder.

:mod:`gatelight.export` lists the folder. So a new format is one new file: its name becomes a function of
``gatelight.export`` and a choice of ``gatelight export --to``, its options become options of the command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """A choice that a format offers: a keyword argument of its functions and an option of the command.

    Attributes:
        name: Its name, such as ``pipeline`` for ``--pipeline``.
        default: Its default: False for a flag, else a whole number.
        help: One line.
    """

    name: str
    default: bool | int
    help: str


@dataclass(frozen=True)
class Format:
    """An export format.

    Attributes:
        name: Its name in ``gatelight.export`` and on the command line.
        title: Its name in a sentence.
        description: One line: what is written.
        suffix: The ending of the main file's name.
        function: Takes a circuit and what the format needs; returns text, bytes or several texts by file name.
        files: Takes a circuit, a name for it and the options as keywords; returns the contents by file name.
        options: What users can choose.
    """

    name: str
    title: str
    description: str
    suffix: str
    function: Callable[..., Any]
    files: Callable[..., Mapping[str, bytes]]
    options: tuple[Option, ...] = ()
