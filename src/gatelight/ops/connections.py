"""Connections are checked before a kernel reads them, once for each state of a tensor.

A kernel reads ``x[fanin]`` without looking: an index out of range would read stray memory. So every path to a kernel
comes through :func:`check_fanin`, which remembers what it has seen by the tensor, its memory and its version.
"""

from __future__ import annotations

import weakref

import torch
from torch import Tensor

_State = tuple[int, int, int, int]
_seen: dict[int, tuple[weakref.ref[Tensor], _State]] = {}


def check_tensors(**named: object) -> None:
    """Raise a ValueError that names the first argument that is no tensor.

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
    if fanin.device.type == "meta" or torch.compiler.is_compiling() or type(fanin) not in _PLAIN:
        return
    if fanin.is_inference():  # has no version, so nothing can be remembered
        _check_values(fanin, features)
        return
    state = (fanin.data_ptr(), fanin._version, fanin.numel(), features)
    key = id(fanin)
    known = _seen.get(key)
    if known is not None and known[0]() is fanin and known[1] == state:
        return
    _check_values(fanin, features)
    _seen[key] = (weakref.ref(fanin, lambda _: _seen.pop(key, None) and None), state)


_PLAIN = (Tensor, torch.nn.Parameter, torch.nn.Buffer)


def _check_values(fanin: Tensor, features: int) -> None:
    if fanin.dtype == torch.bool or fanin.is_floating_point() or fanin.is_complex():
        raise ValueError(f"fanin must hold whole numbers, got {fanin.dtype}")
    if fanin.numel() == 0:
        return
    if fanin.dtype in (torch.uint16, torch.uint32, torch.uint64):  # which torch can hardly do anything with
        fanin = fanin.long()
    low, high = (int(v) for v in torch.aminmax(fanin))
    if low < 0 or high >= features:
        at = ((fanin < 0) | (fanin >= features)).nonzero()[0].tolist()
        raise ValueError(f"fanin{at} must be from 0 to {features - 1}, got {int(fanin[tuple(at)])}")
