"""The bit-packed engine: runs a circuit at tens of millions of samples per second, without a compiler at run time."""

from gatelight.engine.benchmark import Benchmark, bench
from gatelight.engine.engine import Engine
from gatelight.engine.program import Stats, available

__all__ = ["Benchmark", "Engine", "Stats", "available", "bench"]
