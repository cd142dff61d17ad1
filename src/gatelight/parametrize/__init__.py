"""Maps from parameters to truth tables: the input-wise (IWP) and the original (OP) parametrization, and any other.

A layer takes a parametrization by name or as a value, see :class:`~gatelight.parametrize.base.Parametrization`.
"""

from __future__ import annotations

import dataclasses

from gatelight.names import check_name
from gatelight.parametrize.base import Parametrization, check
from gatelight.parametrize.inits import Init
from gatelight.parametrize.iwp import ESTIMATORS, IWP
from gatelight.parametrize.op import OP

#: Parametrizations by the names that the command and configurations use.
NAMED: dict[str, type[Parametrization]] = {"iwp": IWP, "op": OP}
NAMES = tuple(NAMED)

__all__ = ["ESTIMATORS", "IWP", "NAMED", "NAMES", "OP", "Init", "Parametrization", "make", "of_map"]


def make(parametrization: str | Parametrization = "iwp", **options: object) -> Parametrization:
    """The parametrization of a name with its options, or the value itself.

    >>> make("op", arity=2).parameters, make("iwp", arity=2, estimator="sigmoid").parameters
    (16, 4)
    >>> make("op", estimator="sigmoid")
    Traceback (most recent call last):
    ValueError: the parametrization 'op' has no estimator

    Args:
        parametrization: A name in :data:`NAMED`, or a parametrization.
        options: Fields of the named parametrization, such as ``arity``; None is its default.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if not isinstance(parametrization, str):
        check(parametrization)
        for name, value in given.items():
            if getattr(parametrization, name, None) != value:
                raise ValueError(f"{name} {value!r} is given, but the parametrization is {parametrization!r}")
        return parametrization
    kind = NAMED[check_name("parametrization", parametrization, NAMED)]
    for name in given:
        if name not in {field.name for field in dataclasses.fields(kind)}:  # type: ignore[arg-type]
            raise ValueError(f"the parametrization {parametrization!r} has no {name}")
    return kind(**given)


def of_map(name: str, arity: int) -> Parametrization:
    """The parametrization whose ``native_map`` this is.

    >>> of_map("iwp-sigmoid", 3)
    IWP(arity=3, estimator='sigmoid')
    """
    return OP(arity) if name == "op" else IWP(arity, name.removeprefix("iwp-"))
