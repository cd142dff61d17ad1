"""Catalogs without a list: what the files of a folder declare, so that one more file is all that an addition takes."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import TypeVar

Value = TypeVar("Value")


def values_in(package: ModuleType, wanted: type[Value]) -> list[Value]:
    """The values of a type that stand in the modules of a package, module by module in the order of their names.

    Args:
        package: Its modules are imported; those of its subpackages are not.
        wanted: The type.

    >>> import gatelight.data.sets
    >>> from gatelight.data.source import Source
    >>> [source.name for source in values_in(gatelight.data.sets, Source)][:2]
    ['cifar10', 'cifar100']
    """
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."))
    modules = [importlib.import_module(name) for name in names]
    return [value for module in modules for value in vars(module).values() if isinstance(value, wanted)]
