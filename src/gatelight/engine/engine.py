"""Runs a circuit with the native library, 512 samples at a time.

>>> from gatelight.circuit.random import layered_circuit
>>> circuit = layered_circuit(16, (32, 32, 20))
>>> x = np.random.default_rng(0).random((1000, 16))
>>> not available() or bool(np.array_equal(Engine(circuit).predict(x), circuit.predict(x)))
True
"""

from __future__ import annotations

import ctypes
import os
import weakref
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatelight import native
from gatelight.circuit import Circuit
from gatelight.circuit.features import Rows
from gatelight.engine import abi


@dataclass(frozen=True)
class Stats:
    """What a prepared circuit is made of, either a program to interpret or machine code; the other's numbers are 0.

    Attributes:
        simd: The SIMD path.
        gates: Gates that write a row of bits, after constants, wires and unread gates are gone and gates are merged.
        fused_gates: Gates whose result goes straight into the sums.
        runs: Loops over gates of one function.
        slots: Rows that exist at a time, of code too.
        gate_reads: Rows that gates read.
        sum_reads: Rows that the sums and the gates fused with them read.
        encoder_words: Words of 64 input bits that are made for a sample.
        summed_bits: Bits that are summed, padding included.
        program_bytes: Size of the prepared circuit.
        scratch_bytes: Working memory of a thread for a block of 512 samples.
        code_bytes: Size of the machine code for a block of 512 samples, part of ``program_bytes``.
        code_gates: Gates that the code computes, those of sums and comparisons included.
        code_reads: Rows that it reads.
        code_writes: Rows that it writes.
    """

    simd: str
    gates: int
    fused_gates: int
    runs: int
    slots: int
    gate_reads: int
    sum_reads: int
    encoder_words: int
    summed_bits: int
    program_bytes: int
    scratch_bytes: int
    code_bytes: int
    code_gates: int
    code_reads: int
    code_writes: int


def available() -> bool:
    """Whether the native library that holds the engine is there; :func:`gatelight.native.why_not` says why not."""
    return abi.load() is not None


class Engine:
    """A circuit prepared for this machine. It equals the circuit bit for bit.

    Args:
        circuit: The circuit; it may be simplified before, which makes it faster.
        simd: ``avx512``, ``avx2`` or ``base``; None takes the best, or the one that ``GATELIGHT_SIMD`` names.
        threads: How many threads share a batch.
        code: Whether to run machine code that is made for the circuit in memory, where that is possible: for ``avx512``
            on Unix, if the system allows it. Else the circuit is interpreted.

    An engine may be used by several threads at once.
    """

    def __init__(self, circuit: Circuit, simd: str | None = None, threads: int = 1, code: bool = True) -> None:
        library = abi.load()
        if library is None:
            raise RuntimeError(f"the engine needs the native library: {native.why_not() or 'it has no engine'}")
        paths = library.gl_simd_available().decode().split()
        if simd is not None and simd not in paths:
            raise ValueError(f"simd must be one of {', '.join(paths)} on this machine, got {simd!r}")
        self.circuit = circuit
        self.threads = threads
        self._simd = simd
        self._code = bool(code)
        self._library = library
        status = ctypes.c_int32()
        fields = abi.circuit_fields(circuit)
        name = None if simd is None else simd.encode()
        self._handle = library.gl_engine_new(ctypes.byref(fields), name, self._code, ctypes.byref(status))
        if not self._handle:
            abi.check(status.value)
        weakref.finalize(self, library.gl_engine_free, self._handle)

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
            raise ValueError(f"threads must be a whole number from 1 on, got {threads!r}")
        # More threads than this only cost memory, whatever the caller thinks.
        self._threads = min(int(threads), 4 * (os.cpu_count() or 1))

    @property
    def stats(self) -> Stats:
        """What the prepared circuit is made of."""
        library, handle = self._library, self._handle
        numbers = [int(library.gl_engine_stat(handle, which)) for which in range(abi.STATS)]
        return Stats(library.gl_engine_simd(handle).decode(), *numbers)

    def scores(self, x: ArrayLike) -> NDArray[np.int32]:
        """The class scores of raw features, int32 [batch, classes]; see :meth:`gatelight.circuit.Circuit.scores`."""
        given = self._samples(x)
        scores = np.empty((len(given), self.circuit.classes), np.int32)
        self._run(given, scores.ctypes.data, None)
        return scores

    def predict(self, x: ArrayLike) -> NDArray[np.int64]:
        """The class with the highest score, the first of equals, int64 [batch]."""
        given = self._samples(x)
        labels = np.empty(len(given), np.int64)
        self._run(given, None, labels.ctypes.data)
        return labels

    def run_bits(self, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The output bits of packed input bits, uint64 [outputs, words].

        Args:
            words: uint64 [inputs, words]: bit b of word w of a row belongs to sample 64 w + b, as in
                :func:`gatelight.circuit.evaluate.pack_samples`.
        """
        given = np.asarray(words)
        if given.ndim != 2 or given.shape[0] != self.circuit.inputs:
            raise ValueError(f"words must have shape [{self.circuit.inputs}, words], got {given.shape}")
        if given.dtype != np.uint64:
            raise ValueError(f"words must be uint64, got {given.dtype}")
        rows = abi.aligned(np.ascontiguousarray(given))
        out = np.empty((len(self.circuit.outputs), rows.shape[1]), np.uint64)
        abi.check(
            self._library.gl_engine_bits(self._handle, rows.ctypes.data, rows.shape[1], self._threads, out.ctypes.data)
        )
        return out

    def _samples(self, x: ArrayLike) -> Rows:
        """Features as uint8 or float32 [batch, features], the features of a sample side by side."""
        rows = self.circuit.encoder.rows(x)
        beside = rows.shape[1] < 2 or rows.strides[1] == rows.itemsize
        return abi.aligned(rows if beside else np.ascontiguousarray(rows))

    def _run(self, x: Rows, scores: int | None, labels: int | None) -> None:
        kind = abi.UINT8 if x.dtype == np.uint8 else abi.FLOAT32
        status = self._library.gl_engine_run(
            self._handle, kind, x.ctypes.data, x.strides[0], len(x), self._threads, scores, labels
        )
        if status == abi.BAD_ARGUMENT:
            self.circuit.encoder.check(x)  # raises with the place of what is wrong
        abi.check(status)
