"""Data-parallel training under ``torchrun``: the rank of this process, and sums over all processes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor


def rank() -> int:
    """This process's number; 0 writes files."""
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


@contextmanager
def process_group(device: torch.device) -> Iterator[None]:
    """Join the group that ``torchrun`` describes in the environment, if there is a group of more than one process."""
    if int(os.environ.get("WORLD_SIZE", "1")) <= 1 or dist.is_initialized():
        yield
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield
        # A process that exits while others still communicate with it would crash them.
        dist.barrier()
    finally:
        dist.destroy_process_group()


def share(total: int) -> slice:
    """This process's contiguous share of ``total`` items."""
    return slice(total * rank() // world_size(), total * (rank() + 1) // world_size())


def sum_over_processes(tensors: Iterable[Tensor]) -> None:
    """Replace each tensor by its sum over all processes."""
    if world_size() > 1:
        for tensor in tensors:
            dist.all_reduce(tensor)


def barrier() -> None:
    """Wait for all processes."""
    if world_size() > 1:
        dist.barrier()
