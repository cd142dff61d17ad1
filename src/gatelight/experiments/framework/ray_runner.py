"""Runs cells on the workers of a Ray cluster."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from gatelight.experiments.framework.cell import Cell, Context, StoppedError
from gatelight.experiments.framework.runner import FAILURES, Machine, Observer, explain
from gatelight.experiments.framework.store import Store

if TYPE_CHECKING:
    from types import ModuleType

_POLL = 0.5


def run(
    cells: Sequence[Cell],
    store: Store,
    machine: Machine,
    observer: Observer,
    stop: Callable[[], bool],
    *,
    address: str,
    threads: int = 1,
) -> list[Cell]:
    """Run cells on a Ray cluster, ``threads`` cores each, and return those that failed.

    The results come back here and are kept here. What an unfinished cell saves stays on the worker, under the
    same path as here: on a shared file system any worker continues it, elsewhere the next worker starts over.

    Args:
        cells: What to run.
        store: Where results are kept.
        machine: Data folder and device, the same on every worker.
        observer: Gets progress reports.
        stop: Says whether to stop; running cells are then canceled.
        address: ``local`` for a cluster on this machine, or what ``ray.init`` takes.
        threads: Cores for each cell.
    """
    timed = [cell for cell in cells if cell.timed]
    if timed:
        raise ValueError(f"{timed[0].label} measures time and must have the machine to itself: run it without --ray")
    with _cluster(address) as ray:
        remote = ray.remote(num_cpus=threads, max_retries=2)(_run_cell)
        # The folder is made where the cell runs.
        waiting = {
            remote.remote(cell, Context(store.run_folder(cell).absolute(), machine.data, machine.device), threads): cell
            for cell in cells
        }
        for cell in waiting.values():
            observer.began(cell)
        failed = []
        while waiting:
            if stop():
                for task in waiting:
                    ray.cancel(task)
                raise StoppedError
            ready, _ = ray.wait(list(waiting), timeout=_POLL)
            for task in ready:
                cell = waiting.pop(task)
                outcome = _fetch(ray, task)
                if "error" not in outcome:
                    try:
                        store.save(cell, outcome["result"], outcome["seconds"])
                    except FAILURES as error:
                        outcome = {"error": explain(error)}
                if "error" in outcome:
                    observer.failed(cell, outcome["error"])
                    failed.append(cell)
                else:
                    observer.ended(cell, outcome["seconds"])
    return failed


def _run_cell(cell: Cell, context: Context, threads: int) -> dict[str, Any]:
    """One cell, in a worker."""
    import torch

    from gatelight.ops.backends import cpu

    torch.set_num_threads(1 if cpu.is_available() else threads)
    if cpu.is_available():
        cpu.set_threads(threads)
    begun = time.monotonic()
    try:
        context.folder.mkdir(parents=True, exist_ok=True)
        result = cell.run(context)
    except FAILURES as error:
        return {"error": explain(error)}
    return {"result": result, "seconds": time.monotonic() - begun}


def _fetch(ray: ModuleType, task: Any) -> dict[str, Any]:
    """A task's outcome; a worker that died is a failure of its cell."""
    try:
        outcome: dict[str, Any] = ray.get(task)
    except ray.exceptions.RayError as error:
        return {"error": explain(error)}
    return outcome


@contextmanager
def _cluster(address: str) -> Iterator[ModuleType]:
    try:
        import ray
    except ModuleNotFoundError:
        raise ValueError("--ray needs Ray, which is not installed: pip install 'gatelight[ray]'") from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage reports unless asked for
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.WARNING}
    with ExitStack() as folders:
        if address == "local":
            # Ray leaves its logs behind, and its sockets need a short path.
            base = "/tmp" if os.name == "posix" else None
            folder = tempfile.TemporaryDirectory(prefix="gatelight-ray-", dir=base, ignore_cleanup_errors=True)
            ray.init(include_dashboard=False, _temp_dir=folders.enter_context(folder), **quiet)
        else:
            ray.init(address=address, **quiet)
        try:
            yield ray
        finally:
            ray.shutdown()
