"""A circuit prepared by the native library: what the engine holds, without the circuit itself."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatelight import native
from gatelight.circuit.encoder import Encoder
from gatelight.circuit.features import Rows
from gatelight.circuit.ir import Circuit
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
    """Whether the native library that holds the engine is loaded; :func:`gatelight.native.why_not` says why not."""
    return abi.load() is not None


class Program:
    """A prepared circuit. It holds no reference to the circuit, so it does not keep the circuit alive.

    It may be used by several threads at once. Arguments are those of :class:`~gatelight.engine.Engine`.
    """

    def __init__(self, circuit: Circuit, simd: str | None = None, code: bool = True) -> None:
        library = abi.load()
        if library is None:
            raise RuntimeError(f"the engine needs the native library: {native.why_not() or 'it has no engine'}")
        paths = library.gl_simd_available().decode().split()
        if simd is not None and simd not in paths:
            raise ValueError(f"simd must be one of {', '.join(paths)} on this machine, got {simd!r}")
        self.encoder: Encoder = circuit.encoder
        self.classes, self.outputs = circuit.classes, len(circuit.outputs)
        self._library = library
        status = ctypes.c_int32()
        fields = abi.circuit_fields(circuit)
        name = None if simd is None else simd.encode()
        self._handle = library.gl_engine_new(ctypes.byref(fields), name, code, ctypes.byref(status))
        if not self._handle:
            abi.check(status.value)
        weakref.finalize(self, library.gl_engine_free, self._handle)

    @property
    def stats(self) -> Stats:
        """What it is made of."""
        library, handle = self._library, self._handle
        numbers = [int(library.gl_engine_stat(handle, which)) for which in range(abi.STATS)]
        return Stats(library.gl_engine_simd(handle).decode(), *numbers)

    def samples(self, x: Any) -> Rows:
        """Features as uint8 or float32 [batch, features], the features of a sample side by side."""
        rows = self.encoder.rows(x)
        adjacent = rows.shape[1] < 2 or rows.strides[1] == rows.itemsize
        return abi.aligned(rows if adjacent else np.ascontiguousarray(rows))

    def scores(self, rows: Rows, threads: int = 1) -> NDArray[np.int32]:
        """The class scores of what :meth:`samples` made, int32 [batch, classes]."""
        scores = np.empty((len(rows), self.classes), np.int32)
        self._run(rows, threads, scores.ctypes.data, None)
        return scores

    def predict(self, rows: Rows, threads: int = 1) -> NDArray[np.int64]:
        """The class with the highest score, the first of equals, int64 [batch]."""
        labels = np.empty(len(rows), np.int64)
        self._run(rows, threads, None, labels.ctypes.data)
        return labels

    def run_bits(self, words: NDArray[np.uint64], threads: int = 1) -> NDArray[np.uint64]:
        """The output bits of packed input bits, uint64 [inputs, words] -> uint64 [outputs, words]."""
        given = np.asarray(words)
        if given.ndim != 2 or given.shape[0] != self.encoder.inputs:
            raise ValueError(f"words must have shape [{self.encoder.inputs}, words], got {given.shape}")
        if given.dtype != np.uint64:
            raise ValueError(f"words must be uint64, got {given.dtype}")
        rows = abi.aligned(np.ascontiguousarray(given))
        out = np.empty((self.outputs, rows.shape[1]), np.uint64)
        abi.check(self._library.gl_engine_bits(self._handle, rows.ctypes.data, rows.shape[1], threads, out.ctypes.data))
        return out

    def _run(self, rows: Rows, threads: int, scores: int | None, labels: int | None) -> None:
        kind = abi.UINT8 if rows.dtype == np.uint8 else abi.FLOAT32
        status = self._library.gl_engine_run(
            self._handle, kind, rows.ctypes.data, rows.strides[0], len(rows), threads, scores, labels
        )
        if status == abi.BAD_ARGUMENT:
            self.encoder.check(rows)  # raises an error that says what is wrong and where
        abi.check(status)
