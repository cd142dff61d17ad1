"""Names in messages: errors that suggest the nearest name, and lists that stay short."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def nearest(given: str, known: Iterable[str]) -> str | None:
    """The known name that a mistyped one probably means, if one is near.

    >>> nearest("minst", ["digits", "mnist"])
    'mnist'
    >>> nearest("photographs", ["digits", "mnist"]) is None
    True
    """
    return next(iter(difflib.get_close_matches(given, list(known), 1, cutoff=0.5)), None)


def check_name(what: str, given: str, known: Iterable[str]) -> str:
    """Return ``given`` if it is one of ``known``; raise a ValueError that suggests the nearest otherwise.

    >>> check_name("estimator", "sni", ["sin", "sigmoid"])
    Traceback (most recent call last):
    ValueError: unknown estimator 'sni'; did you mean 'sin'? (known: sin, sigmoid)
    """
    options = list(known)
    if given in options:
        return given
    near = nearest(str(given), options)
    hint = f"; did you mean {near!r}?" if near else ""
    raise ValueError(f"unknown {what} {given!r}{hint} (known: {', '.join(options)})")


def shorten(names: Sequence[str], most: int = 6) -> str:
    """The first of many names, for messages.

    >>> shorten(["a", "b", "c"], most=2)
    'a, b, ...'
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
