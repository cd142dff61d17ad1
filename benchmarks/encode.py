"""What preparing a batch of images costs: native code and torch, interleaved, CPU time of one thread.

python benchmarks/encode.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from gatelight.data.augment import apply_boxes, draw_boxes
from gatelight.nn import Thermometer
from gatelight.ops import set_backend

ROUNDS, REPEATS = 15, 5
BACKENDS = {"native": "cpu", "torch": "reference"}


def cases(images: Tensor) -> dict[str, Callable[[], Tensor]]:
    """Resampling and encoding of the batch."""
    boxes = draw_boxes(len(images), images.shape[2], images.shape[3], torch.Generator().manual_seed(0))
    crops = apply_boxes(images, boxes)
    few, many = Thermometer.even(3), Thermometer.even(31)
    return {
        "random crops and flips": lambda: apply_boxes(images, boxes),
        "3 thresholds": lambda: few(crops),
        "31 thresholds": lambda: many(crops),
    }


def milliseconds(compute: Callable[[], Tensor]) -> list[float]:
    """CPU time of each of a few calls, after one that does not count."""
    compute()
    times = []
    for _ in range(REPEATS):
        begun = time.thread_time()
        compute()
        times.append(1e3 * (time.thread_time() - begun))
    return times


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    images = torch.randint(0, 256, (100, 3, 32, 32), dtype=torch.uint8)
    print(f"{len(images)} images of 3 x 32 x 32, ms of one core (medians)")
    print(f"{'':<24}{'native':>8}{'torch':>8}{'ratio':>8}")
    for name, compute in cases(images).items():
        taken: dict[str, list[float]] = {which: [] for which in BACKENDS}
        results = {}
        for _ in range(ROUNDS):
            for which, backend in BACKENDS.items():
                set_backend(backend)
                results[which] = compute()
                taken[which] += milliseconds(compute)
        if not torch.equal(results["native"], results["torch"]):
            raise SystemExit(f"{name}: native code and torch differ")
        native, plain = (statistics.median(taken[which]) for which in BACKENDS)
        print(f"{name:<24}{native:>8.2f}{plain:>8.2f}{plain / native:>8.1f}")


if __name__ == "__main__":
    main()
