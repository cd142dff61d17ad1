"""Which implementation computes the gates: the native CPU kernels or the reference in plain torch.

``GATELIGHT_BACKEND`` (``auto``, ``cpu`` or ``reference``) chooses at the start, :func:`set_backend` later. ``auto``
takes the native kernels where they are built and says once if they are not.
"""

from __future__ import annotations

import os
import warnings

import torch
from torch import Tensor

from gatelight import native
from gatelight.names import check_name

NAMES = ("auto", "cpu", "reference")

_chosen = check_name("GATELIGHT_BACKEND", os.environ.get("GATELIGHT_BACKEND", "auto"), NAMES)


def set_backend(name: str) -> None:
    """Choose the backend from now on: ``auto``, ``cpu`` or ``reference``."""
    global _chosen
    check_name("backend", name, NAMES)
    if name == "cpu" and native.load() is None:
        raise ValueError(f"backend 'cpu' is not there: {native.why_not()}")
    _chosen = name


def get_backend() -> str:
    """The backend in use for float32 tensors on the CPU, ``cpu`` or ``reference``."""
    return "reference" if _chosen == "reference" or native.load() is None else "cpu"


def native_takes(*tensors: Tensor) -> bool:
    """Whether the native kernels compute these operands: float32 on the CPU, and not switched off or missing."""
    if _chosen == "reference" or any(t.dtype != torch.float32 or t.device.type != "cpu" for t in tensors):
        return False
    if native.load() is None:
        if _chosen == "cpu":
            raise RuntimeError(f"GATELIGHT_BACKEND=cpu, but {native.why_not()}")
        _say_once()
        return False
    return True


def _say_once() -> None:
    # The default filter shows a warning once for each place it comes from, and this is one place.
    warnings.warn(f"gatelight computes with the slow reference: {native.why_not()}", RuntimeWarning, stacklevel=2)
