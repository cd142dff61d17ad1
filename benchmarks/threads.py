"""Training steps per second with one thread and with all, on an idle machine and under load.

    python benchmarks/threads.py

A step is a whole training step: gather, encode, forward, loss, backward, Adam, on MNIST S with random images.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import machine
import torch
from torch.nn.functional import cross_entropy

from gatelight import models
from gatelight.ops.backends import cpu


def steps_per_second(threads: int, torch_threads: int, steps: int, batch: int = 100) -> float:
    """Whole training steps per second, from the median step."""
    cpu.set_threads(threads)
    torch.set_num_threads(torch_threads)
    net = models.build("mnist", seed=0)
    x = torch.randint(0, 256, (batch, 1, 28, 28), dtype=torch.uint8)
    y = torch.randint(0, 10, (batch,))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, fused=True)
    times = []
    for _ in range(steps):
        begun = time.monotonic()
        optimizer.zero_grad()
        cross_entropy(net(x), y).backward()
        optimizer.step()
        times.append(time.monotonic() - begun)
    return 1 / statistics.median(times[3:])


def _burn() -> None:
    while True:
        pass


def main() -> None:
    """Measure every combination, interleaved."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/threads.json"))
    arguments = parser.parse_args()
    cores = int(machine.describe()["cores"])
    found: dict[str, list[float]] = {}
    for _ in range(arguments.rounds):
        for busy in (False, True):
            neighbor = multiprocessing.get_context("spawn").Process(target=_burn, daemon=True)
            if busy:
                neighbor.start()
                time.sleep(1)
            for threads, torch_threads in ((1, 1), (cores, 1), (cores, cores)):
                key = f"{'busy' if busy else 'idle'}, {threads} kernel threads, {torch_threads} of torch"
                found.setdefault(key, []).append(steps_per_second(threads, torch_threads, arguments.steps))
            if busy:
                neighbor.kill()
                neighbor.join()
    result = {key: round(statistics.median(values), 1) for key, values in found.items()}
    for key, value in result.items():
        print(f"{key:<45}{value:>8.1f} steps/s")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    facts = {"machine": machine.describe(), "steps_per_second": result}
    arguments.out.write_text(json.dumps(facts, indent=1) + "\n")
    print(f"wrote {arguments.out}")


if __name__ == "__main__":
    main()
