"""Connections inside clusters of inputs, which make wide layers faster to train."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gatelight.wiring.base import Site, Wiring
from gatelight.wiring.random import Random

#: Gates of a cluster, and the fewest gates of a layer that the kernels process in clusters (csrc).
CLUSTER = 1024
WIDE = 32 * CLUSTER


@dataclass(frozen=True)
class Clustered(Wiring):
    """Gates read inside clusters of :data:`CLUSTER` inputs; the last cluster also gets the remainder.

    After a layer with other connections this is hardly a restriction: which inputs form a cluster is random already.
    The two layers then train cluster by cluster, inside the cache. In the last layer of a network the gates are listed
    in one part for each class, each part with gates of all clusters.

    >>> drawn = Clustered().draw(Site(4096, 4096, 2), torch.Generator().manual_seed(0))
    >>> drawn[1024:2048].aminmax()
    torch.return_types.aminmax(
    min=tensor(1024, dtype=torch.int32),
    max=tensor(2047, dtype=torch.int32))

    Attributes:
        inside: The wiring inside a cluster.
    """

    inside: Wiring = Random()  # noqa: RUF009 - a frozen value

    keeps_places = True

    def draw(self, site: Site, generator: torch.Generator) -> Tensor:
        """Connections, int32 [gates, arity]; a part reads no input twice unless it must."""
        features, gates = site.features, site.gates
        begins = [*range(0, max(features - CLUSTER, 0) + 1, CLUSTER), features]
        clusters, part_of = [], []
        for first, end in itertools.pairwise(begins):
            own = torch.arange(gates * first // features, gates * end // features)
            if len(own):
                cluster = replace(site, features=end - first, gates=len(own))
                clusters.append(self.inside.draw(cluster, generator) + first)
                # Equal parts of each cluster. Consecutive gates were dealt different inputs.
                part_of.append((own % site.groups).sort().values)
        return torch.cat(clusters)[torch.cat(part_of).argsort(stable=True)]

    def __str__(self) -> str:
        return f"{self.inside} in clusters"


@dataclass(frozen=True)
class ClusteredPairs(Wiring):
    """Random, but every second layer of those with at least :data:`WIDE` inputs is clustered.

    Layers of networks in which gates are copied by their position stay random.
    """

    any_order = True

    def draw(self, site: Site, generator: torch.Generator) -> Tensor:
        """Connections, int32 [gates, arity]."""
        clustered = site.index % 2 == 1 and site.features >= WIDE and not site.passes_on
        wiring: Wiring = Clustered() if clustered else Random()
        return wiring.draw(site, generator)

    def __str__(self) -> str:
        return "clustered"


NAMED = {"clustered": ClusteredPairs()}
