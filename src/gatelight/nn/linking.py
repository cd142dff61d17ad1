"""Listing the gates of layers in an order that is fast to compute (:mod:`gatelight.wiring.linking`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from gatelight.nn.dense import LogicDense
from gatelight.wiring.linking import Linked, is_linked, link


def list_linked(layer: LogicDense) -> None:
    """List the gates of a new hidden layer in linked order.

    Only the connections move, which are as random as before, and swapped gates keep their function. The next layer
    still reads the same positions, so it must be wired at random itself.
    """
    linked = link(layer.fanin.cpu())
    theta = _swapped(layer, layer.theta.detach(), linked)
    if theta is not None:
        _write(layer, linked.fanin, theta)


def link_hidden(layers: Sequence[object]) -> None:
    """Link the hidden layers of a new stack. The next layer reads the same gates at their new positions.

    So the stack computes the same as before. A layer stays as it is if the order of its gates is not random, or if it
    is not as it was drawn: others may read a layer that was trained, loaded, or used twice.
    """
    times = Counter(id(layer) for layer in layers)
    drawn = [type(a) is LogicDense and times[id(a)] == 1 and a.is_as_drawn() for a in layers]
    for place in range(len(layers) - 1):
        layer, reader = layers[place], layers[place + 1]
        if not (drawn[place] and drawn[place + 1]):
            continue
        assert isinstance(layer, LogicDense)
        assert isinstance(reader, LogicDense)
        movable = layer.wiring.any_order and not reader.wiring.keeps_places and layer.fixed is None
        fanin = layer.fanin.cpu()
        if not movable or is_linked(fanin):
            continue
        linked = link(fanin)
        theta = _swapped(layer, layer.theta.detach()[linked.order.to(layer.theta.device)], linked)
        if theta is None:
            continue
        _write(layer, linked.fanin, theta)
        new_place = torch.empty_like(linked.order)
        new_place[linked.order] = torch.arange(len(new_place))
        with torch.no_grad():
            reader.fanin.copy_(new_place[reader.fanin.cpu().long()])


def _swapped(layer: LogicDense, theta: Tensor, linked: Linked) -> Tensor | None:
    """Parameters with those of swapped gates changed, or None if the parametrization does not know how."""
    learned = linked.swapped if layer.fixed is None else linked.swapped[~layer.fixed.cpu()]
    rows = learned.nonzero().flatten().to(theta.device)
    swapped = layer.parametrization.swap_inputs(theta[rows])
    return None if swapped is None else theta.index_copy(0, rows, swapped)


def _write(layer: LogicDense, fanin: Tensor, theta: Tensor) -> None:
    with torch.no_grad():
        layer.fanin.copy_(fanin)
        layer.theta.copy_(theta)
