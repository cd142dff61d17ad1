"""Remembers what is known about a tensor until it changes.

A tensor is identified by the object, its memory and its version, which every change in place increases. Changes that
bypass torch (``.data``, a numpy view) are not noticed.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor

_PLAIN = (Tensor, torch.nn.Parameter, torch.nn.Buffer)


class Seen:
    """Tensors that have been checked, each with a note.

    >>> seen, x = Seen(), torch.zeros(3)
    >>> seen.add(x)
    >>> seen.has(x)
    True
    >>> _ = x.add_(1)
    >>> seen.has(x)
    False
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Tensor], int, int, int, Any]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def has(self, tensor: Tensor, note: Any = None) -> bool:
        """Whether the tensor was added with this note and has not changed since."""
        known = self._known.get(id(tensor))
        return (
            known is not None
            and known[0]() is tensor
            and known[1] == tensor.data_ptr()
            and known[2] == tensor._version
            and known[3] == tensor.numel()
            and known[4] == note
        )

    def add(self, tensor: Tensor, note: Any = None) -> None:
        """Remember a tensor as it is now, unless torch keeps no version of it."""
        if type(tensor) not in _PLAIN or tensor.is_inference() or tensor.device.type == "meta":
            return
        key = id(tensor)

        def forget(_: object) -> None:
            self._known.pop(key, None)

        state = tensor.data_ptr(), tensor._version, tensor.numel(), note
        self._known[key] = (weakref.ref(tensor, forget), *state)
