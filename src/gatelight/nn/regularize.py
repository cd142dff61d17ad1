"""The paper's three regularizers: path-connected dropout, gate interventions, fixed residual connections."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gatelight.names import check_name
from gatelight.nn.dense import LogicDense
from gatelight.nn.layer import make_generator
from gatelight.ops.connections import check_tensors

_CONSTANTS = {"zero": 0.0, "one": 1.0, "half": 0.5}
INTERVENTIONS = (*_CONSTANTS, "uniform", "bernoulli")


def check_probability(what: str, value: float) -> float:
    """Return a probability in [0, 1); raise ValueError otherwise."""
    if not 0.0 <= value < 1.0:
        raise ValueError(f"{what} must be in [0, 1), got {value}")
    return float(value)


class PathDropout(nn.Module):
    """Drop input bits and with them every final gate that has a path from one.

    For each batch every input bit is chosen with probability p; final gates path-connected to a chosen bit are
    masked to 0, the neutral element of the group sum, so that they and all gates that feed only them get no update.

    Args:
        probability: p; a final gate after L layers of arity n survives with about ``(1 - p) ** n**L``.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = check_probability("dropout probability", probability)

    def draw(self, inputs: int, device: torch.device | None = None) -> Tensor:
        """Choose the input bits to drop, bool [inputs]."""
        return torch.rand(inputs, device=device) < self.probability

    def kept(self, layers: Sequence[LogicDense], dropped: Tensor | None = None) -> Tensor:
        """A mask over the last layer's gates, bool [gates], True where a gate is kept.

        Args:
            layers: The dense layers, first to last.
            dropped: Which of the first layer's inputs are dropped; None draws them.
        """
        if dropped is None:
            dropped = self.draw(layers[0].in_features, layers[0].fanin.device)
        for layer in layers:
            if len(dropped) != layer.in_features:
                raise ValueError(f"{len(dropped)} marked inputs for a layer of {layer.in_features}")
            dropped = layer.affected(dropped)
        return ~dropped

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.probability}"


class GateIntervention(nn.Module):
    """Replace each gate output, in training, with probability p by a value that ignores the gate's inputs.

    >>> _ = torch.manual_seed(0)
    >>> GateIntervention(0.5, "one")(torch.zeros(2, 4)).unique().tolist()
    [0.0, 1.0]

    Args:
        probability: p, for each gate and sample.
        value: ``zero``, ``one``, ``half``, ``uniform`` (U[0, 1]) or ``bernoulli`` (a fair coin).
    """

    def __init__(self, probability: float, value: str = "bernoulli") -> None:
        super().__init__()
        self.probability = check_probability("intervention probability", probability)
        self.value = check_name("intervention", value, INTERVENTIONS)

    def forward(self, x: Tensor) -> Tensor:
        """Intervene while training; the identity in evaluation."""
        check_tensors(x=x)
        if not self.training or self.probability == 0.0:
            return x
        # One draw decides both: where it is below p, its share of p is again uniform.
        drawn = torch.rand_like(x)
        chosen = drawn < self.probability
        if self.value in _CONSTANTS:
            return x.masked_fill(chosen, _CONSTANTS[self.value])
        share = drawn / self.probability
        return torch.where(chosen, share if self.value == "uniform" else (share < 0.5).to(x.dtype), x)

    def extra_repr(self) -> str:
        """Probability and value."""
        return f"p={self.probability}, value={self.value}"


def residual_masks(widths: Sequence[int], fraction: float, seed: int | None) -> list[Tensor]:
    """Which gates of each layer are fixed residual connections, one bool [width] for each layer.

    Layer l of L passes ``fraction * l / (L - 1)`` of its gates straight through, so the share grows linearly from
    none in the first layer to ``fraction`` in the last. The chosen positions of a layer are among those of the
    next, so a path that has begun continues to the end; position j reads gate j of the layer before.

    >>> [int(m.sum()) for m in residual_masks([8, 8, 8], 0.5, seed=0)]
    [0, 2, 4]
    """
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(f"residual fraction must be in [0, 1], got {fraction}")
    order = torch.randperm(min(widths), generator=make_generator(seed))
    masks = []
    for depth, width in enumerate(widths):
        share = fraction * depth / max(len(widths) - 1, 1)
        mask = torch.zeros(width, dtype=torch.bool)
        mask[order[: round(share * len(order))]] = True
        masks.append(mask)
    return masks
