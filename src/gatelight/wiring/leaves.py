"""Which values of a window the leaves of convolutional trees read."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatelight.wiring.deal import deal


@dataclass(frozen=True)
class TreeSite:
    """The convolutional layer that is to be wired.

    Attributes:
        channels: Channels of the input.
        window: Values of the window in a channel.
        trees: Trees of the layer.
        leaves: Leaves of a tree.
    """

    channels: int
    window: int
    trees: int
    leaves: int


@dataclass(frozen=True)
class Leaves:
    """Distinct values of the window for the leaves of a tree, if there are enough; all are used equally often.

    >>> Leaves().draw(TreeSite(channels=2, window=4, trees=2, leaves=4), torch.Generator().manual_seed(0)).shape
    torch.Size([2, 4])

    Attributes:
        channels_per_tree: Channels that a tree reads, in groups: neighboring trees read neighboring channels. None lets
            a leaf read any channel.
    """

    channels_per_tree: int | None = None

    def draw(self, site: TreeSite, generator: torch.Generator) -> Tensor:
        """``channel * window + position in the window`` for each leaf, int32 [trees, leaves]."""
        group = self.channels_per_tree
        if group is None:
            return deal(site.channels * site.window, site.trees, site.leaves, generator).int()
        if not 1 <= group <= site.channels:
            raise ValueError(f"channels_per_tree must be from 1 to {site.channels}, got {group}")
        inside = deal(group * site.window, site.trees, site.leaves, generator)
        # Trees are spread over all positions at which a group of neighboring channels can start.
        first = torch.arange(site.trees) * (site.channels - group + 1) // site.trees
        return (inside + (first * site.window).unsqueeze(1)).int()

    def __str__(self) -> str:
        return "" if self.channels_per_tree is None else f"{self.channels_per_tree} channels per tree"
