"""Which implementation computes the gates: native kernels on the CPU, Triton's on a GPU, or the reference in torch.

``GATELIGHT_BACKEND`` (``auto``, ``cpu``, ``triton`` or ``reference``) chooses at the start, :func:`set_backend` later.
``auto`` takes the kernels of the tensors' device and says once if they are missing; ``cpu`` and ``triton`` do the same
and raise an error where theirs are missing. With ``TRITON_INTERPRET=1``, ``triton`` takes tensors on the CPU too.
"""

from __future__ import annotations

import os
import warnings

import torch
from torch import Tensor

from gatelight import native
from gatelight.names import check_name
from gatelight.ops import triton
from gatelight.ops.transforms import is_transformed

NAMES = ("auto", "cpu", "triton", "reference")

#: What the GPU kernels read and write; they compute in float32.
GPU_STORAGE = (torch.float32, torch.bfloat16, torch.float16)

_chosen = check_name("GATELIGHT_BACKEND", os.environ.get("GATELIGHT_BACKEND", "auto"), NAMES)


def set_backend(name: str) -> None:
    """Choose the backend from now on: ``auto``, ``cpu``, ``triton`` or ``reference``."""
    global _chosen
    check_name("backend", name, NAMES)
    if name == "cpu" and native.load() is None:
        raise ValueError(f"backend 'cpu' is not there: {native.why_not()}")
    if name == "triton" and triton.why_not() is not None:
        raise ValueError(f"backend 'triton' is not there: {triton.why_not()}")
    _chosen = name


def get_backend() -> str:
    """The backend in use for float32 tensors on the CPU, ``cpu`` or ``reference``."""
    return "reference" if _chosen == "reference" or native.load() is None else "cpu"


def is_reference_forced() -> bool:
    """Whether the reference was asked for, whatever else is there."""
    return _chosen == "reference"


def native_takes(*tensors: Tensor) -> bool:
    """Whether the native kernels compute these operands: float32 on the CPU, and not switched off or missing."""
    if _chosen == "reference" or any(t.dtype != torch.float32 or not t.is_cpu for t in tensors):
        return False
    if is_transformed(*tensors):
        return False
    if native.load() is None:
        if _chosen == "cpu":
            raise RuntimeError(f"GATELIGHT_BACKEND=cpu, but {native.why_not()}")
        _say_once(native.why_not())
        return False
    return True


def gpu_takes(*tensors: Tensor) -> bool:
    """Whether the Triton kernels compute these operands: on a GPU, in a dtype they store, not off or missing."""
    device = "cpu" if _chosen == "triton" and triton.interpreted() else "cuda"
    if _chosen == "reference" or any(t.dtype not in GPU_STORAGE or t.device.type != device for t in tensors):
        return False
    if is_transformed(*tensors):
        return False
    reason = triton.why_not()
    if reason is not None:
        if _chosen == "triton":
            raise RuntimeError(f"GATELIGHT_BACKEND=triton, but {reason}")
        _say_once(reason)
    return reason is None


def _say_once(reason: str | None) -> None:
    # The default filter shows a warning once for each place and text.
    warnings.warn(f"gatelight computes with the slow reference: {reason}", RuntimeWarning, stacklevel=2)
