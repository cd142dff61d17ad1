"""How fast a circuit runs on this machine.

>>> from gatelight.circuit.random import layered_circuit
>>> from gatelight.engine import available
>>> not available() or bench(layered_circuit(16, (32, 20)), batch=100, seconds=0.01).samples_per_second > 0
True
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gatelight.circuit.ir import Circuit
from gatelight.engine.engine import Engine
from gatelight.engine.program import Stats


@dataclass(frozen=True)
class Benchmark:
    """What :func:`bench` measured. ``print(result)`` shows it in a few lines.

    Attributes:
        gates: Gates of the circuit.
        depth: Gates on its longest path.
        outputs: Bits that are summed.
        batch: Samples per call.
        threads: Threads that share a batch.
        seconds_to_prepare: Time to make the engine.
        samples_per_second: From uint8 features to labels, in calls of ``batch`` samples.
        seconds_for_one: Time of a call with one sample, from Python.
        stats: What the engine is made of.
    """

    gates: int
    depth: int
    outputs: int
    batch: int
    threads: int
    seconds_to_prepare: float
    samples_per_second: float
    seconds_for_one: float
    stats: Stats

    def __str__(self) -> str:
        code = self.stats.code_bytes
        how = f"machine code, {code / 1e6:.2f} MB" if code else "interpreted"
        rate = f"{self.samples_per_second / 1e6:.2f} M samples/s"
        return "\n".join(
            [
                f"circuit      {self.gates:,} gates in {self.depth} levels, {self.outputs:,} bits summed",
                f"engine       {self.stats.simd}, {how}, prepared in {1e3 * self.seconds_to_prepare:.1f} ms",
                f"throughput   {rate}, uint8 features to labels, {self.threads} thread(s)",
                f"one sample   {1e6 * self.seconds_for_one:.1f} us, the call from Python included",
            ]
        )


def bench(
    circuit: Circuit, *, batch: int = 1 << 15, seconds: float = 2.0, threads: int = 1, code: bool = True
) -> Benchmark:
    """Measure throughput on random samples and the latency of one; both are medians.

    Args:
        circuit: The circuit.
        batch: Samples per call.
        seconds: How long to measure throughput; the latency takes another quarter of that.
        threads: Threads that share a batch.
        code: Whether to make machine code if possible.
    """
    if batch < 1 or seconds <= 0 or threads < 1:
        raise ValueError(f"batch, seconds and threads must be positive, got {batch}, {seconds} and {threads}")
    begun = time.perf_counter()
    engine = Engine(circuit, threads=threads, code=code)
    prepared = time.perf_counter() - begun
    levels = 2 if circuit.feature_kind == "bits" else 256
    x = np.random.default_rng(0).integers(0, levels, (batch, circuit.features), np.uint8)
    whole = _median_seconds(lambda: engine.predict(x), seconds)
    one = _median_seconds(lambda: engine.predict(x[:1]), seconds / 4)
    return Benchmark(
        gates=circuit.gates,
        depth=circuit.depth,
        outputs=len(circuit.outputs),
        batch=batch,
        threads=engine.threads,
        seconds_to_prepare=prepared,
        samples_per_second=batch / whole,
        seconds_for_one=one,
        stats=engine.stats,
    )


def _median_seconds(function: Callable[[], object], seconds: float) -> float:
    function()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
    return sorted(times)[len(times) // 2]
