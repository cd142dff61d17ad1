"""The inverse of a layer's connections: for every input row, its readers."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary


class Readers(NamedTuple):
    """Row i is read by ``readers[starts[i]:starts[i + 1]]``, each a gate and a slot as ``gate * arity + slot``."""

    starts: Tensor
    readers: Tensor


def invert(fanin: Tensor, features: int) -> Readers:
    """The readers of rows 0..features-1, int32, in rising order for each row.

    >>> invert(torch.tensor([[0, 2], [2, 2]], dtype=torch.int32), 3)
    Readers(starts=tensor([0, 1, 1, 4], dtype=torch.int32), readers=tensor([0, 1, 2, 3], dtype=torch.int32))
    """
    if fanin.numel() >= 1 << 31:
        raise ValueError(f"a layer must have fewer than 2**31 connections, got {fanin.numel()}")
    rows, readers = torch.sort(fanin.flatten(), stable=True)
    bounds = torch.arange(features + 1, dtype=torch.int32, device=fanin.device)
    return Readers(torch.searchsorted(rows, bounds, out_int32=True), readers.int())


_cache = WeakTensorKeyDictionary()


def readers_of(fanin: Tensor, rows: int, span: int = 1) -> Readers:
    """:func:`invert` of ``fanin // span``, computed once for a tensor of connections that does not change."""
    key = 0 if fanin.is_inference() else fanin._version, rows, span
    known = _cache.get(fanin)
    if known is None or known[0] != key:
        known = key, invert(fanin // span, rows)
        _cache[fanin] = known
    found: Readers = known[1]
    return found
