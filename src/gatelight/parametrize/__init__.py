"""Maps from parameters to truth tables: the input-wise (IWP) and the original (OP) parametrization."""

from gatelight.names import check_name
from gatelight.parametrize.base import Parametrization
from gatelight.parametrize.iwp import ESTIMATORS, IWP
from gatelight.parametrize.op import OP

NAMES = ("iwp", "op")

__all__ = ["ESTIMATORS", "IWP", "NAMES", "OP", "Parametrization", "make", "of_kind"]


def make(parametrization: str = "iwp", arity: int = 2, estimator: str = "sin") -> Parametrization:
    """The parametrization of a name; ``estimator`` matters for ``iwp`` alone.

    >>> make("op", arity=2).parameters, make("iwp", arity=2).parameters
    (16, 4)
    """
    check_name("parametrization", parametrization, NAMES)
    return OP(arity) if parametrization == "op" else IWP(arity, estimator)


def of_kind(kind: str, arity: int) -> Parametrization:
    """The parametrization whose ``kind`` this is.

    >>> of_kind("iwp-sigmoid", 3)
    IWP(arity=3, estimator='sigmoid')
    """
    return OP(arity) if kind == "op" else IWP(arity, kind.removeprefix("iwp-"))
