"""Random connections, every input used equally often."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatelight.wiring.base import Site, Wiring
from gatelight.wiring.deal import deal


@dataclass(frozen=True)
class Random(Wiring):
    """Every input is read equally often: counts differ by at most one.

    A layer with fewer slots than inputs leaves some inputs unread. A gate reads distinct inputs if there are enough.

    >>> Random().draw(Site(features=4, gates=2, arity=2), torch.Generator().manual_seed(0)).flatten().sort().values
    tensor([0, 1, 2, 3], dtype=torch.int32)
    """

    any_order = True

    def draw(self, site: Site, generator: torch.Generator) -> Tensor:
        """Connections, int32 [gates, arity]."""
        return deal(site.features, site.gates, site.arity, generator).int()

    def __str__(self) -> str:
        return "random"


NAMED = {"random": Random()}
