"""What a training step on a GPU must cost: bytes over bandwidth and launches, computed, not measured.

    python benchmarks/gpu.py --model        the table of docs/gpu.md

Every launch costs a fixed time plus the larger of two: its traffic with memory, each array once (rows that several
gates read come from the cache again), and its traffic with the L2 cache, where a random access of any size moves whole
sectors of 32 bytes. Nothing here is specific to a machine but the numbers of a :class:`Gpu`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

SECTOR = 32
ENTRIES = 4
#: Launches of difflogic for a layer besides its three kernels: softmax and its backward; a sum over partial sums, a
#: fill, 21 differences of columns and a stack, which make sixteen gradients from four sums.
DIFFLOGIC_SMALL_LAUNCHES = 2 + 1 + 1 + 21 + 1


@dataclass(frozen=True)
class Gpu:
    """A GPU in a few numbers; those with a default are assumptions.

    Attributes:
        name: The name shown in the table.
        memory: Bytes per second from and to memory.
        cache: Bytes per second from and to the L2 cache; not published, but found by microbenchmarks.
        launch: Seconds between the end of a kernel and the start of the next inside a CUDA graph.
        call: Seconds of a launch from the host when it cannot run ahead.
        synchronize: Seconds that the device idles around a synchronization with the host.
    """

    name: str
    memory: float
    cache: float = 5e12
    launch: float = 1.5e-6
    call: float = 4e-6
    synchronize: float = 8e-6


GPUS = (Gpu("A100 SXM 80 GB", 2.039e12), Gpu("H100 SXM", 3.35e12))


@dataclass(frozen=True)
class Network:
    """Dense layers of two-input gates.

    Attributes:
        features: Input bits.
        layers: Logic layers.
        width: Gates of a layer.
        parameters: Of a gate: 4 for IWP, 16 for OP.
        fused_below: Batches below this compute tables inside the kernels.
    """

    features: int
    layers: int
    width: int
    parameters: int = 4
    fused_below: int = 32


#: The paper's DLGN M for CIFAR-10 at 20-fold depth.
DEEP_M = Network(9216, 80, 128_000)


@dataclass(frozen=True)
class Launch:
    """Bytes that one kernel moves."""

    memory: int
    cache: int


def row(batch: int) -> int:
    """Bytes of a row's float32 samples in whole sectors.

    >>> row(1), row(8), row(25)
    (32, 32, 128)
    """
    return SECTOR * math.ceil(4 * batch / SECTOR)


def launches(net: Network, batch: int) -> Iterator[Launch]:
    """The kernels of forward and backward in this package; the first layer needs no gradient for its inputs."""
    fused = batch < net.fused_below
    theta, table = 4 * net.parameters, 4 * ENTRIES
    # What a kernel reads tables from, and the kernel that makes them if they are not fused.
    source = theta if fused else table
    making = () if fused else (Launch(net.width * (theta + table), net.width * (theta + table)),)
    samples, sectors = 4 * batch, row(batch)
    for layer in range(net.layers):
        features = net.width if layer else net.features
        yield from making
        yield Launch(
            net.width * (source + 8 + samples) + features * samples,
            net.width * (source + 8 + 3 * sectors),
        )
        # fanin, theta for its slope, gradient of theta; g, p and q.
        memory = net.width * (8 + theta + theta + samples) + features * samples
        cache = net.width * (8 + theta + theta + 3 * sectors)
        if layer:
            yield from making
            # Two readers of a row on average: the reader, its other input, its table, g and the other row.
            memory += net.width * (2 * 4 + 4 + (0 if fused else table) + samples)
            cache += net.width * (2 * (4 + SECTOR + max(SECTOR, source) + 2 * sectors) + 4 + sectors)
        yield Launch(memory, cache)


def bound(net: Network, batch: int, gpu: Gpu) -> float:
    """A lower bound on the seconds of forward and backward."""
    return sum(gpu.launch + max(k.memory / gpu.memory, k.cache / gpu.cache) for k in launches(net, batch))


def adam(net: Network, gpu: Gpu) -> float:
    """A lower bound on the seconds of the optimizer: four arrays read, three written."""
    return 7 * 4 * net.parameters * net.layers * net.width / gpu.memory


def difflogic(net: Network, batch: int, gpu: Gpu) -> float:
    """A lower bound on the seconds of the same step in the design of difflogic's CUDA kernels.

    Sixteen weights for each gate, int64 indices, a softmax as a pass of its own, two backward kernels that each read g
    and x, 32 partial sums for each of four per gate through memory, and a device synchronization after each of the
    three kernels, so that neither a graph nor a queue of launches hides the time of the host.
    """
    samples, sectors = 4 * batch, row(batch)
    weights, partial = 64, 32 * 4 * 4
    total = 0.0
    for layer in range(net.layers):
        features = net.width if layer else net.features
        rows = features * samples
        kernels = [
            Launch(net.width * (weights + 16 + samples) + rows, net.width * (weights + 16 + 3 * sectors)),
            Launch(net.width * (16 + partial + samples) + rows, net.width * (16 + partial + 3 * sectors)),
        ]
        small = net.width * (2 * weights + partial + 16 + weights + 3 * weights)
        if layer:
            memory = net.width * (weights + 16 + 16 + 8 + 2 * samples) + rows
            cache = net.width * (2 * (weights + 3 * SECTOR + 2 * sectors) + 8 + sectors)
            kernels.append(Launch(memory, cache))
        for kernel in kernels:
            total += gpu.call + gpu.synchronize + max(kernel.memory / gpu.memory, kernel.cache / gpu.cache)
        total += max(DIFFLOGIC_SMALL_LAUNCHES * gpu.call, small / gpu.memory)
    return total


def table() -> str:
    """The bounds in Markdown."""
    lines = [
        "| GPU | batch | IWP, ms | OP, ms | Adam, IWP / OP, ms | difflogic's design, ms | OP bound / difflogic's |",
        "|---|---|---|---|---|---|---|",
    ]
    original = Network(DEEP_M.features, DEEP_M.layers, DEEP_M.width, 16)
    for gpu in GPUS:
        for batch in (1, 25, 100):
            light, op = bound(DEEP_M, batch, gpu), bound(original, batch, gpu)
            theirs = difflogic(original, batch, gpu)
            optimizer = f"{1e3 * adam(DEEP_M, gpu):.2f} / {1e3 * adam(original, gpu):.2f}"
            cells = [gpu.name, str(batch), f"{1e3 * light:.2f}", f"{1e3 * op:.2f}", optimizer]
            lines.append("| " + " | ".join([*cells, f"{1e3 * theirs:.1f}", f"{op / theirs:.0%}"]) + " |")
    return "\n".join(lines)
