"""Connections are checked before a kernel reads them, once for each state of a tensor.

A kernel reads ``x[fanin]`` without a check: an index out of range would read stray memory. So every path to a kernel
goes through :func:`check_fanin`, which remembers what it has seen in :class:`~gatelight.ops.seen.Seen`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gatelight.ops.seen import Seen
from gatelight.ops.transforms import is_symbolic

#: Connections that were in range, noted with their number of features.
_in_range = Seen()


def check_tensors(**named: object) -> None:
    """Raise a ValueError that names the first argument that is not a tensor.

    >>> check_tensors(x=torch.ones(2), fanin=[[0, 1]])
    Traceback (most recent call last):
    ValueError: fanin must be a tensor, got list
    """
    for name, value in named.items():
        if not isinstance(value, Tensor):
            raise ValueError(f"{name} must be a tensor, got {type(value).__name__}")


def check_fanin(fanin: Tensor, features: int) -> None:
    """Raise a ValueError unless every index of an integer tensor [gates, arity] is in 0..features-1.

    >>> check_fanin(torch.tensor([[0, 2]]), 2)
    Traceback (most recent call last):
    ValueError: fanin[0, 1] must be from 0 to 1, got 2
    """
    if _in_range.has(fanin, features):
        return
    if is_symbolic(fanin) or fanin.device.type == "meta":
        return
    _check_values(fanin, features)
    _in_range.add(fanin, features)


def _check_values(fanin: Tensor, features: int) -> None:
    if fanin.dtype == torch.bool or fanin.is_floating_point() or fanin.is_complex():
        raise ValueError(f"fanin must hold whole numbers, got {fanin.dtype}")
    if fanin.numel() == 0:
        return
    if fanin.dtype in (torch.uint16, torch.uint32, torch.uint64):  # torch supports few operations on these
        fanin = fanin.long()
    low, high = (int(v) for v in torch.aminmax(fanin))
    if low < 0 or high >= features:
        at = ((fanin < 0) | (fanin >= features)).nonzero()[0].tolist()
        raise ValueError(f"fanin{at} must be from 0 to {features - 1}, got {int(fanin[tuple(at)])}")
