"""Runs a circuit with the native library, 512 samples at a time.

>>> from gatelight.circuit import evaluate
>>> from gatelight.circuit.random import layered_circuit
>>> circuit = layered_circuit(16, (32, 32, 20))
>>> x = np.random.default_rng(0).random((1000, 16))
>>> not available() or bool(np.array_equal(Engine(circuit).scores(x), evaluate.scores(circuit, x)))
True
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatelight.circuit.ir import Circuit
from gatelight.engine.program import Program, Stats, available

__all__ = ["Engine", "Stats", "available"]


class Engine:
    """A circuit prepared for this machine. It equals the circuit bit for bit.

    :meth:`Circuit.scores` and :meth:`Circuit.predict` use the engine by themselves. Use an ``Engine`` to
    choose the threads, machine code from the first sample, or a SIMD path.

    Args:
        circuit: The circuit; a simplified one runs faster.
        simd: ``avx512``, ``avx2`` or ``base``; None takes the best, or the one that ``GATELIGHT_SIMD`` names.
        threads: How many threads share a batch.
        code: Whether to run machine code that is made for the circuit in memory, if possible: for ``avx512``
            on Unix, if the system allows it. Otherwise the circuit is interpreted.

    An engine may be used by several threads at once.
    """

    def __init__(self, circuit: Circuit, simd: str | None = None, threads: int = 1, code: bool = True) -> None:
        self.threads = threads
        self._program = Program(circuit, simd, bool(code))
        self.circuit = circuit
        self._simd = simd
        self._code = bool(code)

    def __reduce__(self) -> tuple[type[Engine], tuple[Circuit, str | None, int, bool]]:
        # A copy prepares the circuit for itself: what this engine holds is freed with it.
        return Engine, (self.circuit, self._simd, self._threads, self._code)

    @property
    def threads(self) -> int:
        """How many threads share a batch; the results do not depend on it."""
        return self._threads

    @threads.setter
    def threads(self, threads: int) -> None:
        if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
            raise ValueError(f"threads must be a whole number of at least 1, got {threads!r}")
        # More threads than this only cost memory, whatever the caller thinks.
        self._threads = min(int(threads), 4 * (os.cpu_count() or 1))

    @property
    def stats(self) -> Stats:
        """What the prepared circuit is made of."""
        return self._program.stats

    def scores(self, x: ArrayLike) -> NDArray[np.int32]:
        """The class scores of raw features, int32 [batch, classes]; see :meth:`gatelight.circuit.Circuit.scores`."""
        return self._program.scores(self._program.samples(x), self._threads)

    def predict(self, x: ArrayLike) -> NDArray[np.int64]:
        """The class with the highest score, the first of equals, int64 [batch]."""
        return self._program.predict(self._program.samples(x), self._threads)

    def run_bits(self, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The output bits of packed input bits, uint64 [outputs, words].

        Args:
            words: uint64 [inputs, words]: bit b of word w of a row belongs to sample 64 w + b, as in
                :func:`gatelight.circuit.evaluate.pack_samples`.
        """
        return self._program.run_bits(words, self._threads)
