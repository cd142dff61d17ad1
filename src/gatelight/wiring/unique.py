"""Random connections where no two gates read the same set of inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gatelight.wiring.base import Site, Wiring
from gatelight.wiring.deal import deal, shuffle_slots


@dataclass(frozen=True)
class Unique(Wiring):
    """Like :class:`~gatelight.wiring.Random`, but no two gates read the same set of inputs.

    >>> drawn = Unique().draw(Site(features=3, gates=3, arity=2), torch.Generator().manual_seed(0))
    >>> drawn.sort(1).values.sort(0).values.tolist()
    [[0, 1], [0, 2], [1, 2]]
    """

    any_order = True

    def draw(self, site: Site, generator: torch.Generator) -> Tensor:
        """Connections, int32 [gates, arity]."""
        features, gates, arity = site.features, site.gates, site.arity
        sets = math.comb(features, arity)
        if gates > sets:
            raise ValueError(
                f"wiring 'unique' has only {sets} sets of {arity} out of {features} inputs for {gates} gates; "
                f"use 'random'"
            )
        if 2 * gates <= sets or gates == 1:
            return deal(features, gates, arity, generator, unique=True).int()
        return self._all_but_a_few(site, generator).int()

    def _all_but_a_few(self, site: Site, generator: torch.Generator) -> Tensor:
        """All sets of inputs except a balanced few: the dense case, where swapping inputs would rarely succeed."""
        sets = torch.combinations(torch.arange(site.features), site.arity)
        left_out = len(sets) - site.gates
        keep = torch.ones(len(sets), dtype=torch.bool)
        if left_out:
            index = {tuple(s): i for i, s in enumerate(sets.tolist())}
            for row in self.draw(Site(site.features, left_out, site.arity), generator).sort(1).values.tolist():
                keep[index[tuple(row)]] = False
        return shuffle_slots(sets[keep][torch.randperm(site.gates, generator=generator)], generator)

    def __str__(self) -> str:
        return "unique"


NAMED = {"unique": Unique()}
