"""Collects named values from the files of a folder, so that a new value needs only a new file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, Protocol, TypeVar


class Named(Protocol):
    """What has a name."""

    @property
    def name(self) -> str:
        """Its name."""


Value = TypeVar("Value")
NamedValue = TypeVar("NamedValue", bound=Named)


def named_in(package: str, folder: Iterable[str]) -> dict[str, Any]:
    """The dictionaries ``NAMED`` of all modules in a package, as one.

    >>> import gatelight.wiring
    >>> named_in("gatelight.wiring", gatelight.wiring.__path__)["random"]
    Random()

    Args:
        package: Name of the package.
        folder: Its ``__path__``.
    """
    modules = _modules(package, folder)
    return _once(package, (pair for module in modules for pair in getattr(module, "NAMED", {}).items()))


def declared_in(package: ModuleType, wanted: type[NamedValue]) -> dict[str, NamedValue]:
    """The values of :func:`values_in` by their names, in the order of their ``place`` where they have one.

    >>> import gatelight.data.sets
    >>> from gatelight.data.source import Source
    >>> list(declared_in(gatelight.data.sets, Source))[:2]
    ['digits', 'mnist']

    Args:
        package: As for :func:`values_in`.
        wanted: The type, which has a ``name``.

    Raises:
        ValueError: If two values have one name.
    """
    values = sorted(values_in(package, wanted), key=lambda value: getattr(value, "place", 0))
    return _once(package.__name__, ((value.name, value) for value in values))


def values_in(package: ModuleType, wanted: type[Value]) -> list[Value]:
    """The values of a type that the modules of a package define, module by module in the order of their names.

    >>> import gatelight.data.sets
    >>> from gatelight.data.source import Source
    >>> "cifar100" in [source.name for source in values_in(gatelight.data.sets, Source)]
    True

    Args:
        package: Its modules are imported; those of its subpackages are not.
        wanted: The type.
    """
    modules = _modules(package.__name__, package.__path__)
    return [value for module in modules for value in vars(module).values() if isinstance(value, wanted)]


def _modules(package: str, folder: Iterable[str]) -> Iterator[ModuleType]:
    for name in sorted(found.name for found in pkgutil.iter_modules(list(folder))):
        yield importlib.import_module(f"{package}.{name}")


def _once(package: str, pairs: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, value in pairs:
        if found.setdefault(name, value) is not value:
            raise ValueError(f"two files of {package} give the name {name!r} to different things")
    return found
