"""Device, threads and stop signals of a computation."""

from __future__ import annotations

import os
import signal
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def choose_device(name: str = "auto") -> torch.device:
    """The torch device of a name; ``auto`` is a GPU if there is one.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"unknown device {name!r}; expected auto, cpu or cuda") from None
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise ValueError("device cuda was requested, but torch finds no GPU")
        if device.index is None:
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    elif device.type != "cpu":
        raise ValueError(f"device must be auto, cpu or cuda, got {name!r}")
    return device


def set_threads(threads: int | None, device: torch.device) -> None:
    """Give the cores to the side that does the work: the native kernels if they run, else torch.

    Args:
        threads: How many; None means as many as torch has.
        device: Where the work is done.
    """
    import torch

    from gatelight import ops
    from gatelight.ops.backends import cpu

    if threads is not None and threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}")
    threads = threads or torch.get_num_threads()
    if device.type == "cpu" and ops.get_backend() == "cpu":
        cpu.set_threads(threads)
        torch.set_num_threads(1)
    else:
        torch.set_num_threads(threads)


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """A function that says whether SIGINT or SIGTERM has arrived; a second SIGINT interrupts at once."""
    received: list[int] = []

    def note(number: int, _frame: types.FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
