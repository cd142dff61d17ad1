"""What every wiring is: a value that draws the connections of a layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gatelight import truthtable


@dataclass(frozen=True)
class Site:
    """The layer that is to be wired.

    Attributes:
        features: Inputs of the layer.
        gates: Gates of the layer.
        arity: Inputs of a gate.
        index: Position of the layer in its network, from 0.
        groups: Equal parts whose gates are counted: the number of classes for the last layer, else 1.
        passes_on: Whether some gates of the network copy the gate at their position, whatever the wiring.
    """

    features: int
    gates: int
    arity: int
    index: int = 0
    groups: int = 1
    passes_on: bool = False

    def __post_init__(self) -> None:
        truthtable.check_arity(self.arity)
        if self.features < 1 or self.gates < 1:
            raise ValueError(f"a layer needs at least one input and one gate, got {self.features} and {self.gates}")


class Wiring(ABC):
    """Draws which inputs each gate reads.

    >>> class Shifted(Wiring):
    ...     '''Gate j reads inputs j, j + 1, ...'''
    ...
    ...     def draw(self, site, generator):
    ...         return (torch.arange(site.gates).unsqueeze(1) + torch.arange(site.arity)) % site.features
    >>> from gatelight.nn import LogicDense
    >>> LogicDense(8, 3, wiring=Shifted()).fanin.tolist()
    [[0, 1], [1, 2], [2, 3]]

    Attributes:
        any_order: Whether the order of the gates is random, so that a stack may change it.
        keeps_places: Whether gates read neighbors, so that the previous layer should keep the order of its gates.
    """

    any_order: bool = False
    keeps_places: bool = False

    @abstractmethod
    def draw(self, site: Site, generator: torch.Generator) -> Tensor:
        """Connections, whole numbers [gates, arity] from 0 to features - 1."""

    def __str__(self) -> str:
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Placed(Wiring):
    """A wiring for a layer at a certain position in a network.

    Attributes:
        wiring: Draws the connections.
        index: As in :class:`Site`; so are the next two.
        groups: Parts whose gates are counted.
        passes_on: Whether some gates are copied by their position.
    """

    wiring: Wiring
    index: int = 0
    groups: int = 1
    passes_on: bool = False

    def draw(self, site: Site, generator: torch.Generator) -> Tensor:
        """Connections, whole numbers [gates, arity]."""
        placed = replace(site, index=self.index, groups=self.groups, passes_on=self.passes_on)
        return self.wiring.draw(placed, generator)

    def __str__(self) -> str:
        return str(self.wiring)
