"""The native library as the CPU backend calls it: threads, SIMD paths, status codes."""

from __future__ import annotations

import ctypes

import torch

from gatelight import native
from gatelight.names import check_name

_threads: int | None = None


def is_available() -> bool:
    """Whether the native library is loaded; :func:`gatelight.native.why_not` says why it is not."""
    return native.load() is not None


def set_threads(threads: int | None) -> None:
    """Let the kernels use this many threads; None, the default, means as many as torch uses."""
    global _threads
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}")
    _threads = threads


def get_threads() -> int:
    """How many threads the next call may use."""
    return torch.get_num_threads() if _threads is None else _threads


def simd() -> str:
    """The SIMD path in use: ``avx512``, ``avx2`` or ``base``."""
    return str(library().gl_simd().decode())


def available_simd() -> list[str]:
    """The SIMD paths this machine can run, best first."""
    return str(library().gl_simd_available().decode()).split()


def select_simd(name: str) -> None:
    """Use another SIMD path from now on (the environment variable ``GATELIGHT_SIMD`` chooses the first)."""
    check_name("SIMD path", name, available_simd())
    library().gl_simd_select(name.encode())


def library() -> ctypes.CDLL:
    """The native library; a RuntimeError if it is missing."""
    found = native.load()
    if found is None:
        raise RuntimeError(f"the cpu kernels are missing: {native.why_not()}")
    return found


def call(name: str, *arguments: object) -> None:
    """Call a function of the library with the threads it may use, and raise what its status says."""
    library().gl_set_threads(get_threads())
    call_alone(name, *arguments)


def call_alone(name: str, *arguments: object) -> None:
    """Call a function of the library that uses one thread, and raise what its status says."""
    status = getattr(library(), name)(*arguments)
    if status == 2:
        raise MemoryError(f"{name} ran out of memory")
    if status:
        raise ValueError(f"{name} rejected its arguments (status {status})")
