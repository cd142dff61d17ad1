"""Which backend computes given operands: native kernels on the CPU, Triton's on a GPU, or the reference in torch.

``GATELIGHT_BACKEND`` (``auto``, ``cpu``, ``triton`` or ``reference``) chooses at the start, :func:`set_backend` later.
``auto`` takes the kernels of the tensors' device and says once if they are missing; ``cpu`` and ``triton`` do the same
and raise an error if theirs are missing. With ``TRITON_INTERPRET=1``, ``triton`` takes tensors on the CPU too.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from gatelight import native
from gatelight.names import check_name
from gatelight.ops import backends
from gatelight.ops.backends import triton
from gatelight.ops.convshape import ConvShape
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
        raise ValueError(f"backend 'cpu' is not available: {native.why_not()}")
    if name == "triton" and triton.why_not() is not None:
        raise ValueError(f"backend 'triton' is not available: {triton.why_not()}")
    _chosen = name


def get_backend() -> str:
    """The backend in use for float32 tensors on the CPU, ``cpu`` or ``reference``."""
    return "reference" if _chosen == "reference" or native.load() is None else "cpu"


def is_reference_forced() -> bool:
    """Whether the reference was chosen, even if other backends are available."""
    return _chosen == "reference"


def backend_for(*tensors: Tensor, shapes: Sequence[ConvShape] = ()) -> str:
    """The backend that computes gates on these tensors, and trees of these shapes: a name in :data:`NAMES`.

    >>> backend_for(torch.ones(2, dtype=torch.float64))
    'reference'
    """
    for name in ("triton", "cpu"):
        if supports(name, *tensors, shapes=shapes):
            return name
    return "reference"


def supports(backend: str, *tensors: Tensor, shapes: Sequence[ConvShape] = ()) -> bool:
    """Whether a backend computes gates on these tensors, and trees of these shapes; the reference always does.

    The CPU kernels take float32 on the CPU, those of Triton float32, bfloat16 or float16 on a GPU. Neither does if it
    is switched off or missing, or if torch transforms the computation (``torch.func``, forward mode).

    >>> supports("reference", torch.ones(2)), supports("cpu", torch.ones(2, dtype=torch.float64))
    (True, False)

    Args:
        backend: ``cpu``, ``triton`` or ``reference``.
        tensors: Inputs and parameters, without connections.
        shapes: The geometry of convolutional layers.
    """
    if backend == "reference":
        return True
    if check_name("backend", backend, NAMES[1:]) == "cpu":
        fitting = not any(t.dtype != torch.float32 or not t.is_cpu for t in tensors)
    else:
        device = "cpu" if _chosen == "triton" and triton.interpreted() else "cuda"
        fitting = not any(t.dtype not in GPU_STORAGE or t.device.type != device for t in tensors)
    if not fitting or _chosen == "reference" or is_transformed(*tensors) or not _is_there(backend):
        return False
    return all(backends.load(backend).supports_shape(shape) for shape in shapes)


def _is_there(backend: str) -> bool:
    reason = native.why_not() if backend == "cpu" else triton.why_not()
    if reason is None:
        return True
    if _chosen == backend:
        raise RuntimeError(f"GATELIGHT_BACKEND={backend}, but {reason}")
    # The default filter shows a warning once per place and text.
    warnings.warn(f"gatelight computes with the slow reference: {reason}", RuntimeWarning, stacklevel=2)
    return False
