"""The dense layers of a network."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gatelight.models.parts import Parts
from gatelight.nn import LogicDense, residual_masks
from gatelight.nn.linking import list_linked
from gatelight.wiring import Placed


def dense_layers(
    inputs: int,
    widths: Sequence[int],
    parts: Parts,
    generator: torch.Generator,
    *,
    classes: int = 1,
    residual_fraction: float = 0.0,
) -> list[LogicDense]:
    """Dense layers with new connections and parameters, hidden ones linked.

    >>> layers = dense_layers(12, [20, 20, 10], Parts(), torch.Generator().manual_seed(0), classes=10)
    >>> [layer.out_features for layer in layers]
    [20, 20, 10]

    Args:
        inputs: Bits that the first layer reads.
        widths: Gates of each layer.
        parts: What the layers are made of.
        generator: Draws everything.
        classes: Groups in which the gates of the last layer are counted.
        residual_fraction: Share of the last layer's gates that end a fixed residual connection.
    """
    if residual_fraction and len(widths) == 1:
        raise ValueError("residual_fraction needs at least two layers: a fixed connection ends in a later layer")
    seeds = torch.randint(0, 1 << 62, (len(widths) + 1,), generator=generator).tolist()
    masks = residual_masks(widths, residual_fraction, seeds[-1]) if residual_fraction else None
    layers = []
    for index, (features, gates) in enumerate(zip([inputs, *widths], widths, strict=False)):
        is_last = index == len(widths) - 1
        layer = LogicDense(
            features,
            gates,
            parametrization=parts.parametrization,
            init=parts.init,
            wiring=Placed(parts.wiring, index, classes if is_last else 1, passes_on=masks is not None),
            seed=seeds[index],
            fixed=None if masks is None else masks[index],
        )
        if not is_last and parts.wiring.any_order:
            list_linked(layer)
        if layer.fixed is not None:
            layer.fanin[layer.fixed, 0] = layer.fixed.nonzero().flatten().int()
        layers.append(layer)
    return layers
