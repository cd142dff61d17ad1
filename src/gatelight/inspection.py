"""What the gates of a trained model have become, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gatelight.training import metrics

if TYPE_CHECKING:
    from torch import Tensor

    from gatelight.nn import LogicNetwork


@dataclass(frozen=True, eq=False)
class Inspection:
    """Measures of each logic layer, first layer first.

    Attributes:
        gates: Number of gates.
        gradient_norms: Mean absolute gradient of the loss with respect to theta.
        activation_histograms: Shares of gate outputs in bins of [0, 1], float64 [layers, bins].
        function_shares: Share of each rounded function, the most common first.
        table_distances: Mean distance of table entries from 0 or 1.
    """

    gates: list[int]
    gradient_norms: list[float]
    activation_histograms: NDArray[np.float64]
    function_shares: list[dict[str, float]]
    table_distances: list[float]

    @property
    def undecided(self) -> list[float]:
        """Share of gate outputs that are not near 0 or 1: all but the two bins at either end."""
        return [float(row[2:-2].sum()) for row in self.activation_histograms]

    def as_dict(self) -> dict[str, Any]:
        """The measures as values that JSON can hold."""
        return {
            "gradient_norms": self.gradient_norms,
            "activation_histograms": self.activation_histograms.tolist(),
            "function_shares": self.function_shares,
            "table_distances": self.table_distances,
        }


def inspect(model: LogicNetwork, x: Tensor, y: Tensor) -> Inspection:
    """Measure the layers of a model on some samples; the model is put in evaluation mode.

    >>> import torch
    >>> from gatelight.nn import GroupSum, LogicDense, LogicNetwork
    >>> model = LogicNetwork(None, [LogicDense(4, 6, seed=0), LogicDense(6, 4, seed=1)], GroupSum(2))
    >>> inspect(model, torch.tensor([[0.0, 1, 0, 1]]), torch.tensor([1])).gates
    [6, 4]
    """
    model.eval()
    return Inspection(
        gates=[layer.gates for layer in model.logic_layers],
        gradient_norms=metrics.gradient_norms(model, x, y),
        activation_histograms=np.asarray(metrics.activation_histograms(model, x), np.float64),
        function_shares=metrics.function_shares(model),
        table_distances=metrics.table_distances(model),
    )
