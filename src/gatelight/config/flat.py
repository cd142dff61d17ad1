"""Nested values as flat dictionaries: what files hold and command-line options set."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from gatelight.names import check_name

T = TypeVar("T")


@dataclass(frozen=True)
class Leaf:
    """A plain value somewhere inside a configuration.

    Attributes:
        name: The name of its field, and so of its option.
        key: Its name in files.
        path: The fields that lead to it, such as ``("model", "gates", "arity")``.
        type: Its type, without None.
        default: Its default.
        help: A description of it.
    """

    name: str
    key: str
    path: tuple[str, ...]
    type: type
    default: Any
    help: str

    def of(self, value: Any) -> Any:
        """Its value in a configuration.

        >>> from gatelight.config import RunConfig
        >>> [leaf.of(RunConfig(seed=3)) for leaf in leaves(RunConfig) if leaf.name in ("arity", "seed")]
        [2, 3]
        """
        for name in self.path:
            value = getattr(value, name)
        return value


def leaves(kind: type) -> tuple[Leaf, ...]:
    """All leaves of a dataclass of values, in the order of the fields.

    >>> from gatelight.config import Gates
    >>> [leaf.name for leaf in leaves(Gates)]
    ['arity', 'parametrization', 'estimator', 'init', 'init_strength', 'init_std']
    """
    if kind not in _leaves_of:
        _leaves_of[kind] = tuple(_leaves(kind, ()))
    return _leaves_of[kind]


_leaves_of: dict[type, tuple[Leaf, ...]] = {}


def _leaves(kind: type, path: tuple[str, ...]) -> Iterator[Leaf]:
    for item in dataclasses.fields(kind):
        its = next(t for t in types_of(kind, item.name) if t is not type(None))
        if dataclasses.is_dataclass(its):
            yield from _leaves(its, (*path, item.name))
        else:
            key = item.metadata["in_files"] or item.name
            yield Leaf(item.name, key, (*path, item.name), its, item.default, item.metadata["help"])


def types_of(kind: type, name: str) -> tuple[type, ...]:
    """The types that a field may have."""
    if kind not in _hints_of:
        _hints_of[kind] = typing.get_type_hints(kind)
    hint = _hints_of[kind][name]
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


_hints_of: dict[type, dict[str, Any]] = {}


def fits(value: Any, allowed: tuple[type, ...]) -> bool:
    """Whether a value is of one of the types; a whole number is allowed for a real one."""
    if isinstance(value, bool):
        return bool in allowed
    if isinstance(value, int) and float in allowed:
        return True
    return isinstance(value, allowed)


def to_flat(value: Any) -> dict[str, Any]:
    """The leaves of a nested value by their names in files."""
    return {leaf.key: leaf.of(value) for leaf in leaves(type(value))}


def replace(value: T, /, **changes: Any) -> T:
    """A copy with other leaves, each given by its own name or by its name in files, however deeply nested.

    >>> from gatelight.config import RunConfig
    >>> replace(RunConfig(), arity=3, steps=7, seed=1).model.gates.arity
    3
    """
    nested: dict[tuple[str, ...], Any] = {}
    found = {name: leaf for leaf in leaves(type(value)) for name in (leaf.name, leaf.key)}
    for name, change in changes.items():
        leaf = found[check_name("setting", name, found)]
        if leaf.path in nested:
            raise ValueError(f"{leaf.name} and {leaf.key} are two names of one value: give only one")
        nested[leaf.path] = change
    return _replaced(value, nested)


def _replaced(value: T, changes: dict[tuple[str, ...], Any]) -> T:
    made: dict[str, Any] = {}
    for name in dict.fromkeys(path[0] for path in changes):
        inner = {path[1:]: change for path, change in changes.items() if path[0] == name}
        made[name] = inner[()] if () in inner else _replaced(getattr(value, name), inner)
    return dataclasses.replace(value, **made) if made else value  # type: ignore[type-var]
