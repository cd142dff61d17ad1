"""Values that the files of a folder give names to: a new file is all that a new one takes."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Any


def named_in(package: str, folder: Iterable[str]) -> dict[str, Any]:
    """The dictionaries ``NAMED`` of all modules in a package, as one.

    >>> import gatelight.wiring
    >>> sorted(named_in("gatelight.wiring", gatelight.wiring.__path__))
    ['clustered', 'random', 'unique']

    Args:
        package: Name of the package.
        folder: Its ``__path__``.
    """
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(list(folder)):
        for name, value in getattr(importlib.import_module(f"{package}.{module.name}"), "NAMED", {}).items():
            if found.setdefault(name, value) is not value:
                raise ValueError(f"two files of {package} give the name {name!r} to different things")
    return found
