"""The gates on a GPU: Triton kernels for CUDA and ROCm, imported when the first tensor on such a device arrives.

``maps`` holds theta -> table and its derivative, ``dense`` the kernels of a dense layer, ``launch`` calls them on
tensors, ``index`` finds the readers of each row, ``chains`` runs chains of layers, ``aot`` compiles every kernel for
GPUs that need not be installed.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import os

import torch

#: Kernels pass tuples of tensors, which older versions do not support.
OLDEST = (3, 3)
#: The oldest CUDA devices that Triton compiles for.
OLDEST_CAPABILITY = (8, 0)


def interpreted() -> bool:
    """Whether Triton's interpreter runs the kernels on CPU tensors: ``TRITON_INTERPRET=1``, slow, for tests."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@functools.cache
def why_not() -> str | None:
    """Why the kernels cannot run in this process, or None if they can."""
    if not interpreted() and not torch.cuda.is_available():
        return "torch sees no GPU"
    try:
        importlib.import_module("triton")
    except ImportError as error:
        return f"triton cannot be imported ({error}): pip install 'gatelight[gpu]'"
    version = importlib.metadata.version("triton")
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        return f"triton {version} is older than {OLDEST[0]}.{OLDEST[1]}"
    if not interpreted() and torch.version.hip is None:
        capability = torch.cuda.get_device_capability()
        if capability < OLDEST_CAPABILITY:
            return f"the GPU's compute capability {capability[0]}.{capability[1]} is below 8.0"
    return None
