"""Which inputs each gate reads: int32 [gates, arity].

A layer takes a wiring by name, as a value (see :class:`~gatelight.wiring.base.Wiring`), or as the connections
themselves. A file in this folder with a dictionary ``NAMED`` of wirings gives them names, which the command also takes.
"""

from __future__ import annotations

from typing import Any

from gatelight.listing import named_in
from gatelight.names import check_name
from gatelight.wiring.base import Placed, Site, Wiring
from gatelight.wiring.clustered import Clustered, ClusteredPairs
from gatelight.wiring.given import Given
from gatelight.wiring.leaves import Leaves, TreeSite
from gatelight.wiring.random import Random
from gatelight.wiring.unique import Unique

#: Wirings by name.
NAMED: dict[str, Wiring] = named_in(__name__, __path__)

__all__ = [
    "NAMED",
    "Clustered",
    "ClusteredPairs",
    "Given",
    "Leaves",
    "Placed",
    "Random",
    "Site",
    "TreeSite",
    "Unique",
    "Wiring",
    "make",
]


def make(wiring: Any) -> Wiring:
    """The wiring of a name, the value itself, or connections as a wiring.

    >>> make("random"), make(Unique())
    (Random(), Unique())
    """
    if isinstance(wiring, str):
        return NAMED[check_name("wiring", wiring, NAMED)]
    if isinstance(wiring, type):
        raise ValueError(f"a wiring is a value: {wiring.__name__}(), not the class {wiring.__name__}")
    if hasattr(wiring, "draw"):
        for name in ("any_order", "keeps_places"):
            if not hasattr(wiring, name):
                raise ValueError(f"a wiring is a gatelight.wiring.Wiring, got {wiring!r}, which has no {name}")
        drawn: Wiring = wiring
        return drawn
    return Given(wiring)
