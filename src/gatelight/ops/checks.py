"""What the ops require of their operands: shapes, dtypes and devices, the same for every backend."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gatelight import truthtable
from gatelight.ops.connections import check_fanin, check_tensors
from gatelight.ops.convshape import ConvShape
from gatelight.ops.maps import check_theta

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def check_operands(x: Tensor, fanin: Tensor, table: Tensor, *, features_first: bool = False) -> None:
    """Raise a ValueError that names what is wrong with the shapes and dtypes of one layer; values are not read."""
    check_tensors(x=x, fanin=fanin, table=table)
    if x.ndim != 2:
        order = "[features, batch]" if features_first else "[batch, features]"
        raise ValueError(f"x must be {order}, got shape {tuple(x.shape)}")
    if fanin.ndim != 2 or table.ndim != 2:
        raise ValueError(
            f"fanin must be [gates, arity] and table [gates, 2**arity], "
            f"got {tuple(fanin.shape)} and {tuple(table.shape)}"
        )
    gates, arity = fanin.shape
    truthtable.check_arity(arity)
    if table.shape != (gates, 1 << arity):
        raise ValueError(
            f"table must be [{gates}, {1 << arity}] for fanin {tuple(fanin.shape)}, got {tuple(table.shape)}"
        )
    _check_types(x, fanin, table, "table")


def check_layers(x: Tensor, fanins: Sequence[Tensor], thetas: Sequence[Tensor], maps: Sequence[str]) -> None:
    """Raise a ValueError that names what is wrong with a chain of dense layers on x [features, batch]."""
    check_lengths(fanins=fanins, thetas=thetas, maps=maps)
    if x.ndim != 2:
        raise ValueError(f"x must be [features, batch], got shape {tuple(x.shape)}")
    features = x.shape[0]
    for fanin, theta, map in zip(fanins, thetas, maps, strict=True):
        check_tensors(fanin=fanin, theta=theta)
        if fanin.ndim != 2:
            raise ValueError(f"fanin must be [gates, arity], got {tuple(fanin.shape)}")
        gates, arity = fanin.shape
        if check_theta(theta, map, arity) != gates:
            raise ValueError(f"theta must have {gates} rows like fanin, got {tuple(theta.shape)}")
        _check_types(x, fanin, theta, "theta")
        check_fanin(fanin, features)
        features = gates


def check_images(
    x: Tensor,
    shapes: Sequence[ConvShape],
    fanins: Sequence[Tensor],
    thetas: Sequence[Tensor],
    maps: Sequence[str],
) -> None:
    """Raise a ValueError unless x are images of the first shape, shapes fit each other and leaves are in range."""
    check_lengths(shapes=shapes, fanins=fanins, thetas=thetas, maps=maps)
    check_tensors(x=x)
    image = tuple(x.shape[1:])
    for shape, fanin, theta, map in zip(shapes, fanins, thetas, maps, strict=True):
        check_tensors(fanin=fanin, theta=theta)
        if image != (shape.channels, shape.height, shape.width):
            raise ValueError(f"images of {(shape.channels, shape.height, shape.width)} are expected, got {image}")
        if fanin.ndim != 2 or fanin.shape[1] != shape.leaves:
            raise ValueError(f"fanin must be int32 [trees, {shape.leaves}], got {fanin.dtype} {tuple(fanin.shape)}")
        if check_theta(theta, map, shape.arity) != fanin.shape[0] * shape.tree_gates:
            raise ValueError(f"theta must have {fanin.shape[0] * shape.tree_gates} rows, got {tuple(theta.shape)}")
        _check_types(x, fanin, theta, "theta")
        check_fanin(fanin, shape.window_inputs)
        image = (fanin.shape[0], shape.out_height, shape.out_width)


def as_images(x: Tensor, shapes: Sequence[ConvShape]) -> Tensor:
    """Images [batch, channels, height, width] of x [values of an image, batch]; a ValueError if it has others."""
    if not shapes:
        raise ValueError("the geometry of at least one layer is needed, got none")
    image = shapes[0].channels, shapes[0].height, shapes[0].width
    if x.ndim != 2 or x.shape[0] != math.prod(image):
        raise ValueError(f"x must be [{math.prod(image)}, batch] for images of {image}, got {tuple(x.shape)}")
    images: Tensor = x.t().unflatten(1, image)
    return images


def check_lengths(**lists: Sequence[object]) -> None:
    """Raise a ValueError unless all lists have one entry for each of one or more layers."""
    lengths = [len(values) for values in lists.values()]
    if not 0 < lengths[0] == min(lengths) == max(lengths):
        *first, last = lists
        *counts, count = lengths
        raise ValueError(
            f"{', '.join(first)} and {last} must have one entry for each layer, "
            f"got {', '.join(map(str, counts))} and {count}"
        )


def _check_types(x: Tensor, fanin: Tensor, weights: Tensor, name: str) -> None:
    if any(t.layout != torch.strided for t in (x, fanin, weights)):
        raise ValueError(f"x, fanin and {name} must be dense tensors, got {x.layout}, {fanin.layout}, {weights.layout}")
    if x.dtype not in FLOATS or weights.dtype not in FLOATS:
        raise ValueError(
            f"x and {name} must be float32, float64, bfloat16 or float16, got {x.dtype} and {weights.dtype}"
        )
    if fanin.dtype != torch.int32:
        raise ValueError(f"fanin must be int32, got {fanin.dtype}")
    if not x.device == fanin.device == weights.device:
        raise ValueError(f"x, fanin and {name} must be on one device, got {x.device}, {fanin.device}, {weights.device}")
