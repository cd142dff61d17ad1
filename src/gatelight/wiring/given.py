"""Connections given by the caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gatelight.wiring.base import Wiring


@dataclass(frozen=True, eq=False)
class Given(Wiring):
    """These connections.

    >>> Given([[0, 1]]).draw(None, torch.Generator())
    [[0, 1]]

    Attributes:
        fanin: Whole numbers [gates, arity], or [trees, leaves] of a convolution: a tensor, an array or a list.
    """

    fanin: Any

    def draw(self, site: Any, generator: torch.Generator) -> Tensor:
        """The connections as they are; the layer checks them."""
        del site, generator
        given: Tensor = self.fanin
        return given

    def __str__(self) -> str:
        return "given"
