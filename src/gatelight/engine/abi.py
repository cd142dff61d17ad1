"""The engine's part of the native library, as csrc/include/gatelight_engine.h declares it."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatelight import native
from gatelight.circuit import Circuit
from gatelight.circuit.features import KINDS

UINT8, FLOAT32 = 0, 1
OK, BAD_ARGUMENT, NO_MEMORY = 0, 1, 2
STATS = 14


class CircuitFields(ctypes.Structure):
    """``GlCircuit``: the fields of a circuit as arrays."""

    _fields_ = (
        ("inputs", ctypes.c_int64),
        ("gates", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("fanin", ctypes.c_void_p),
        ("arity", ctypes.c_void_p),
        ("table", ctypes.c_void_p),
        ("outputs", ctypes.c_int64),
        ("output", ctypes.c_void_p),
        ("classes", ctypes.c_int64),
        ("group_start", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("features", ctypes.c_int64),
        ("encoder_feature", ctypes.c_void_p),
        ("encoder_threshold", ctypes.c_void_p),
        ("feature_kind", ctypes.c_int32),
    )


def circuit_fields(circuit: Circuit) -> CircuitFields:
    """A view of a circuit's arrays, which are contiguous and of the right types already."""
    return CircuitFields(
        circuit.inputs,
        circuit.gates,
        circuit.fanin.shape[1],
        circuit.fanin.ctypes.data,
        circuit.arity.ctypes.data,
        circuit.table.ctypes.data,
        len(circuit.outputs),
        circuit.outputs.ctypes.data,
        circuit.classes,
        circuit.group_start.ctypes.data,
        circuit.bias.ctypes.data,
        circuit.features,
        circuit.encoder_feature.ctypes.data,
        circuit.encoder_threshold.ctypes.data,
        KINDS.index(circuit.feature_kind),
    )


@functools.cache
def load() -> ctypes.CDLL | None:
    """The native library with the engine's functions declared, or None."""
    library = native.load()
    if library is None or not hasattr(library, "gl_engine_new"):
        return None
    i32, i64, pointer, text = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p
    signatures: dict[str, tuple[object, ...]] = {
        "gl_engine_new": (pointer, ctypes.POINTER(CircuitFields), text, i32, ctypes.POINTER(i32)),
        "gl_engine_free": (None, pointer),
        "gl_engine_simd": (text, pointer),
        "gl_engine_stat": (i64, pointer, i32),
        "gl_engine_run": (i32, pointer, i32, pointer, i64, i64, i32, pointer, pointer),
        "gl_engine_bits": (i32, pointer, pointer, i64, i32, pointer),
    }
    for name, (result, *arguments) in signatures.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def check(status: int) -> None:
    """Raise the error that a status of the library means."""
    if status == NO_MEMORY:
        raise MemoryError("the engine ran out of memory")
    if status != OK:
        raise RuntimeError(f"the engine refused its arguments, status {status}")


def aligned(array: NDArray[Any]) -> NDArray[Any]:
    """The array, or a copy of it if it does not start or step by whole elements."""
    if array.flags.aligned:
        return array
    return np.array(array, order="C")
