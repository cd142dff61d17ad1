"""How a circuit runs by default: what :meth:`Circuit.scores` and :meth:`Circuit.predict` call.

The native library runs a circuit many times faster than numpy does, but has to prepare it first, which takes as long as
numpy takes for some hundred samples. So the first few samples are left to :mod:`gatelight.circuit.evaluate`. When numpy
has taken, or would take, as long as preparing does, the circuit is prepared for the interpreter; when it has run on as
many samples as pay for machine code, for that. No sequence of calls takes more than about twice as long as the better
of the two ways. Without the native library, numpy does everything. Results and errors are the same either way.

A prepared program is kept as long as its circuit exists, but not in the circuit: circuits stay frozen, and can be
copied and pickled.
"""

from __future__ import annotations

import threading
import time
import weakref
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatelight.circuit import evaluate
from gatelight.circuit.features import Rows
from gatelight.circuit.ir import Circuit
from gatelight.engine.program import Program, available

#: Samples that pay for machine code: making it takes about 1 us per gate and saves about 1 ps per gate and sample.
CODE_PAYS = 1_000_000

#: Seconds that preparing takes: a fixed part, and a part per gate.
_PREPARE, _PREPARE_GATE = 2e-4, 7e-7
#: Seconds that numpy takes for each gate and sample of a large batch.
_NUMPY_GATE = 4e-9


@dataclass
class _State:
    """What is known about a circuit.

    Attributes:
        samples: How many samples it has run on.
        seconds: How long numpy has run it.
        program: What the native library prepared, if anything.
        code: Whether ``program`` is machine code, if that is possible.
    """

    samples: int = 0
    seconds: float = 0.0
    program: Program | None = None
    code: bool = False


_states: weakref.WeakKeyDictionary[Circuit, _State] = weakref.WeakKeyDictionary()
#: Guards the states; never held while a circuit is prepared or run.
_lock = threading.Lock()


def scores(circuit: Circuit, x: ArrayLike) -> NDArray[np.int32]:
    """The class scores of raw features, int32 [batch, classes]."""
    rows = circuit.encoder.rows(x)
    program = _choose(circuit, len(rows))
    return _by_numpy(circuit, rows) if program is None else program.scores(program.samples(rows))


def predict(circuit: Circuit, x: ArrayLike) -> NDArray[np.int64]:
    """The class with the highest score, the first of equals, int64 [batch]."""
    rows = circuit.encoder.rows(x)
    program = _choose(circuit, len(rows))
    if program is None:
        return np.asarray(_by_numpy(circuit, rows).argmax(1), np.int64)
    return program.predict(program.samples(rows))


def _by_numpy(circuit: Circuit, rows: Rows) -> NDArray[np.int32]:
    begun = time.perf_counter()
    result = evaluate.scores(circuit, rows)
    seconds = time.perf_counter() - begun
    with _lock:
        _states.setdefault(circuit, _State()).seconds += seconds
    return result


def _choose(circuit: Circuit, samples: int) -> Program | None:
    """The program to run this many samples with, prepared now if that pays off; None for numpy."""
    if not available():
        return None
    with _lock:
        state = _states.setdefault(circuit, _State())
        state.samples += samples
        program, code = state.program, state.samples >= CODE_PAYS
        numpy_seconds = state.seconds + _NUMPY_GATE * samples * circuit.gates
        if program is None and numpy_seconds < _PREPARE + _PREPARE_GATE * circuit.gates:
            return None
        if program is not None and state.code >= code:
            return program
    # Two threads may both prepare the circuit here; either result is fine.
    try:
        program = Program(circuit, code=code)
    except MemoryError:
        return program
    with _lock:
        state.program, state.code = program, code
    return program
