"""The ops that torch knows: their schemas, and what each returns for tensors without memory (fakes).

All are on feature-major arrays. A chain of layers is one op, and what forward leaves for backward a list of tensors.
``maps`` holds names joined by commas and ``geometry`` nine numbers for each layer, because ``jit.trace`` takes no lists
of strings and no objects.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from gatelight.ops import backends
from gatelight.ops.checks import check_lengths
from gatelight.ops.convshape import ConvShape
from gatelight.ops.dispatch import backend_for
from gatelight.ops.memory import resolve

SCHEMAS = {
    "lut_fwd": "(Tensor x, Tensor fanin, Tensor table) -> Tensor",
    "lut_bwd": "(Tensor grad_out, Tensor x, Tensor fanin, Tensor table) -> (Tensor, Tensor)",
    "dense_chain_fwd": (
        "(Tensor x, Tensor[] fanins, Tensor[] thetas, str maps, str memory, bool save) -> (Tensor, Tensor[])"
    ),
    "dense_chain_bwd": (
        "(Tensor grad_out, Tensor x, Tensor[] saved, Tensor[] fanins, Tensor[] thetas, str maps, str memory, "
        "bool[] needs) -> (Tensor, Tensor[])"
    ),
    "conv_chain_fwd": (
        "(Tensor x, int[] geometry, Tensor[] fanins, Tensor[] thetas, str maps, bool save) -> (Tensor, Tensor[])"
    ),
    "conv_chain_bwd": (
        "(Tensor grad_out, Tensor x, Tensor[] saved, int[] geometry, Tensor[] fanins, Tensor[] thetas, str maps, "
        "bool[] needs) -> (Tensor, Tensor[])"
    ),
}

_NUMBERS = len(dataclasses.fields(ConvShape))


def pack(shapes: Sequence[ConvShape]) -> list[int]:
    """The numbers of all shapes, one after another.

    >>> pack([ConvShape(1, 4, 4, kernel=2)])
    [1, 4, 4, 2, 0, 1, 3, 2, 1]
    """
    return [int(number) for shape in shapes for number in dataclasses.astuple(shape)]


def unpack(geometry: Sequence[int]) -> list[ConvShape]:
    """The shapes of :func:`pack`."""
    return [ConvShape(*geometry[i : i + _NUMBERS]) for i in range(0, len(geometry), _NUMBERS)]


def _lut_fwd(x: Tensor, fanin: Tensor, table: Tensor) -> Tensor:
    _check_ranks(x, [fanin], [table])
    return x.new_empty(fanin.shape[0], x.shape[1])


def _lut_bwd(grad_out: Tensor, x: Tensor, fanin: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), table.new_empty(table.shape)


def _dense_chain_fwd(
    x: Tensor, fanins: Sequence[Tensor], thetas: Sequence[Tensor], maps: str, memory: str, save: bool
) -> tuple[Tensor, list[Tensor]]:
    check_lengths(fanins=fanins, thetas=thetas, maps=maps.split(","))
    _check_ranks(x, fanins, thetas)
    name = backend_for(x, *thetas)
    out = x.new_empty(fanins[-1].shape[0], x.shape[1])
    mode = resolve(memory, name, x, fanins)
    return out, backends.load(name).dense_saved(x, fanins, thetas, mode) if save else []


def _dense_chain_bwd(
    grad_out: Tensor,
    x: Tensor,
    saved: Sequence[Tensor],
    fanins: Sequence[Tensor],
    thetas: Sequence[Tensor],
    maps: str,
    memory: str,
    needs: Sequence[bool],
) -> tuple[Tensor, list[Tensor]]:
    return _gradients(x, thetas, needs)


def _conv_chain_fwd(
    x: Tensor, geometry: Sequence[int], fanins: Sequence[Tensor], thetas: Sequence[Tensor], maps: str, save: bool
) -> tuple[Tensor, list[Tensor]]:
    shapes = unpack(geometry)
    check_lengths(shapes=shapes, fanins=fanins, thetas=thetas, maps=maps.split(","))
    _check_ranks(x, fanins, thetas)
    last = shapes[-1]
    out = x.new_empty(fanins[-1].shape[0] * last.out_height * last.out_width, x.shape[1])
    backend = backends.load(backend_for(x, *thetas, shapes=shapes))
    return out, backend.conv_saved(x, shapes, fanins, thetas) if save else []


def _conv_chain_bwd(
    grad_out: Tensor,
    x: Tensor,
    saved: Sequence[Tensor],
    geometry: Sequence[int],
    fanins: Sequence[Tensor],
    thetas: Sequence[Tensor],
    maps: str,
    needs: Sequence[bool],
) -> tuple[Tensor, list[Tensor]]:
    return _gradients(x, thetas, needs)


def _gradients(x: Tensor, thetas: Sequence[Tensor], needs: Sequence[bool]) -> tuple[Tensor, list[Tensor]]:
    every = [like.new_empty(like.shape if need else 0) for like, need in zip([x, *thetas], needs, strict=True)]
    return every[0], every[1:]


def _check_ranks(x: Tensor, fanins: Sequence[Tensor], thetas: Sequence[Tensor]) -> None:
    """All that can be asked of sizes that may be symbols."""
    for name, tensors in {"x": [x], "fanin": fanins, "theta": thetas}.items():
        for tensor in tensors:
            if tensor.ndim != 2:
                raise ValueError(f"{name} must have two dimensions, got shape {tuple(tensor.shape)}")


_FAKES: dict[str, Callable[..., Any]] = {
    "lut_fwd": _lut_fwd,
    "lut_bwd": _lut_bwd,
    "dense_chain_fwd": _dense_chain_fwd,
    "dense_chain_bwd": _dense_chain_bwd,
    "conv_chain_fwd": _conv_chain_fwd,
    "conv_chain_bwd": _conv_chain_bwd,
}

for _name, _schema in SCHEMAS.items():
    torch.library.define(f"gatelight::{_name}", _schema)
    torch.library.register_fake(f"gatelight::{_name}", _FAKES[_name])
