"""What this machine is and can do: name, cores, copy bandwidth, multiply-add rate."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch


def describe() -> dict[str, str | int | float]:
    """Facts to print with every figure; rates are of one thread."""
    return {
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "copy_gb_per_s": round(copy_bandwidth(), 1),
        "multiply_adds_g_per_s": round(multiply_add_rate(), 1),
    }


def cpu_time(function: Callable[[], object], repeat: int) -> float:
    """Median seconds of this thread's CPU time."""
    return statistics.median(_once(function, time.thread_time) for _ in range(repeat))


def interleaved(
    functions: dict[str, Callable[[], object]], repeat: int, clock: Callable[[], float] = time.thread_time
) -> dict[str, float]:
    """Median seconds of each function, measured interleaved, so that a busy moment hits all of them.

    In every round a function runs once before it is timed: a training step follows one of its own kind, and must find
    in the cache what that step has left, not what a rival has.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeat):
        for name, function in functions.items():
            function()
            times[name].append(_once(function, clock))
    return {name: statistics.median(values) for name, values in times.items()}


def sustained(
    functions: Mapping[str, Callable[[], object]],
    repeat: int,
    seconds: float = 0.03,
    clock: Callable[[], float] = time.thread_time,
) -> dict[str, float]:
    """Median seconds of a call when calls follow each other, of CPU time of this thread, measured interleaved.

    In every round a function is called for a while before it is timed for as long: a processor needs some milliseconds
    of one kind of work to reach full speed.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeat):
        for name, function in functions.items():
            _call_for(function, seconds, clock)
            times[name].append(_call_for(function, seconds, clock))
    return {name: statistics.median(values) for name, values in times.items()}


def copy_bandwidth() -> float:
    """Bytes read plus bytes written by a large copy, in GB/s."""
    source, target = np.ones(32_000_000, np.float32), np.empty(32_000_000, np.float32)
    return 2 * source.nbytes / cpu_time(lambda: np.copyto(target, source), 5) / 1e9


def multiply_add_rate() -> float:
    """Float32 multiply-adds of a matrix product on one thread, in G/s."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        a, b = torch.rand(1024, 1024), torch.rand(1024, 1024)
        return 1024**3 / cpu_time(lambda: a @ b, 9) / 1e9
    finally:
        torch.set_num_threads(threads)


def _once(function: Callable[[], object], clock: Callable[[], float]) -> float:
    begun = clock()
    function()
    return clock() - begun


def _call_for(function: Callable[[], object], seconds: float, clock: Callable[[], float]) -> float:
    """Mean seconds of a call, called repeatedly until the time is over."""
    calls, begun = 0, clock()
    while True:
        function()
        calls += 1
        elapsed = clock() - begun
        if elapsed >= seconds:
            return elapsed / calls


def _cpu_name() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
