"""Memory for the results of kernels: large blocks come from the library's store, which keeps them for the next step."""

from __future__ import annotations

import ctypes
import functools
import weakref

import torch
from torch import Tensor

from gatelight.ops.backends.cpu.library import library

#: Bytes from which memory comes from the library's store: the system's allocator returns large blocks to the system,
#: and every step would pay for fresh pages.
_LARGE = 1 << 20


def empty(rows: int, columns: int) -> Tensor:
    """Uninitialized float32 [rows, columns]; large ones from the library's store, see :func:`acquire`."""
    size = 4 * rows * columns
    if size < _LARGE:
        return torch.empty(rows, columns)
    return acquire(size).view(torch.float32).view(rows, columns)


def acquire(size: int) -> Tensor:
    """Uninitialized bytes from the library's store, which takes them back when the tensor is freed."""
    if size < 0:
        raise ValueError("the layers do not fit together, or there is no kernel for one of them")
    if size == 0:
        return torch.empty(0, dtype=torch.uint8)
    store = library()
    address = store.gl_acquire(size)
    if not address:
        raise MemoryError(f"no memory for {size} bytes of saved activations")
    block = _block_type(size).from_address(address)
    weakref.finalize(block, store.gl_release, address).atexit = False
    return torch.frombuffer(block, dtype=torch.uint8)


def promised(bound: int, size: int) -> Tensor:
    """As many bytes as shapes promise to a graph, for kernels that write ``size`` of them.

    A few bytes are zeroed: ``torch.library.opcheck`` compares what an op returns twice, including padding.
    """
    if size > bound:
        raise RuntimeError(f"the kernels save {size} bytes, more than the {bound} that the shapes promise")
    block = acquire(bound)
    return block.zero_() if bound < _LARGE else block


@functools.lru_cache(maxsize=64)
def _block_type(size: int) -> type[ctypes.Array[ctypes.c_uint8]]:
    return ctypes.c_uint8 * size
