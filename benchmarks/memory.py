"""Memory that a training step takes besides parameters, their gradients, and the stack's input and output.

    python benchmarks/memory.py

Bytes are what the kernels request: activations and coefficients, their gradients, and scratch of two threads.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gatelight import models
from gatelight.nn import LogicDense
from gatelight.ops.backends import cpu


def extra_bytes(stack: Sequence[LogicDense], batch: int, mode: str) -> int:
    """Bytes of one forward and backward pass through layers."""
    x = torch.zeros(stack[0].in_features, batch)
    operands = [layer.fanin for layer in stack], [layer.theta.detach() for layer in stack], ["iwp-sin"] * len(stack)
    [saved] = cpu.dense_chain_fwd(x, *operands, mode)[1]
    return saved.numel() + cpu.work_bytes(x, *operands, mode)


def main() -> None:
    """Print the table."""
    cpu.set_threads(2)
    batch, width = 100, 12_000
    print(f"{width:,} gates per layer, batch {batch}")
    print(f"{'layers':>6}  {'mode':<10}{'MB':>8}  {'of 4 bytes x gates x batch':>28}  {'bytes per gate':>14}")
    for mode in ("keep", "keep-bf16", "recompute"):
        for layers in (4, 20, 40, 80, 160):
            taken = extra_bytes([LogicDense(width, width, seed=i) for i in range(layers)], batch, mode)
            gates = layers * width
            ratio = taken / (4 * gates * batch)
            print(f"{layers:>6}  {mode:<10}{taken / 1e6:>8.1f}  {ratio:>28.2f}  {taken / gates:>14.0f}")
    wide = models.build("cifar10", size="M", seed=0).layers.layers
    taken, gates = extra_bytes(wide, batch, "keep"), sum(layer.gates for layer in wide)
    print(f"CIFAR-10 M, 4 x 128,000 in clusters, keep: {taken / (4 * gates * batch):.2f} of 4 bytes x gates x batch")


if __name__ == "__main__":
    main()
