"""Finds and loads the native library: C++ kernels behind a plain C interface, called with ctypes.

The library is optional. :func:`load` returns None if it is missing, and :func:`why_not` says why.
The environment variable ``GATELIGHT_NATIVE_LIBRARY`` names another file to load, for development.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path

from gatelight.names import check_name

ABI_VERSION = 4

_FILE_NAME = {"win32": "gatelight_native.dll", "darwin": "libgatelight_native.dylib"}.get(
    sys.platform, "libgatelight_native.so"
)


class Layer(ctypes.Structure):
    """``GlLayer`` of csrc/include/gatelight.h: one dense layer of a stack."""

    _fields_ = (
        ("features", ctypes.c_int64),
        ("gates", ctypes.c_int64),
        ("arity", ctypes.c_int32),
        ("kind", ctypes.c_int32),
        ("fanin", ctypes.c_void_p),
        ("theta", ctypes.c_void_p),
        ("grad_theta", ctypes.c_void_p),
    )


class Conv(ctypes.Structure):
    """``GlConv`` of csrc/include/gatelight.h: one convolutional layer of a chain."""

    _fields_ = (
        ("channels", ctypes.c_int64),
        ("height", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("kernel", ctypes.c_int32),
        ("padding", ctypes.c_int32),
        ("stride", ctypes.c_int32),
        ("pool", ctypes.c_int32),
        ("out_channels", ctypes.c_int64),
        ("depth", ctypes.c_int32),
        ("arity", ctypes.c_int32),
        ("kind", ctypes.c_int32),
        ("fanin", ctypes.c_void_p),
        ("theta", ctypes.c_void_p),
        ("grad_theta", ctypes.c_void_p),
    )


class Matrix(ctypes.Structure):
    """``GlMatrix`` of csrc/include/gatelight.h: rows ``stride`` floats apart, of features or of samples."""

    _fields_ = (("data", ctypes.c_void_p), ("stride", ctypes.c_int64), ("sample_major", ctypes.c_int32))


def load() -> ctypes.CDLL | None:
    """The native library with its functions declared, or None if it is missing or has the wrong version."""
    return _load()[0]


def why_not() -> str | None:
    """Why :func:`load` returns None, in one line; None if the library is loaded."""
    return _load()[1]


@functools.cache
def _load() -> tuple[ctypes.CDLL | None, str | None]:
    named = os.environ.get("GATELIGHT_NATIVE_LIBRARY")
    path = Path(named) if named else _installed()
    if not path.is_file():
        return None, f"the native library {path} does not exist (it is built if a C++ compiler is installed)"
    try:
        library = ctypes.CDLL(str(path))
        library.gl_abi_version.restype = ctypes.c_int32
        version = library.gl_abi_version()
    except (OSError, AttributeError) as error:
        return None, f"the native library {path} cannot be loaded: {error}"
    if version != ABI_VERSION:
        return None, f"the native library {path} has ABI version {version}, expected {ABI_VERSION}"
    _declare(library)
    if wanted := os.environ.get("GATELIGHT_SIMD"):
        check_name("SIMD path in GATELIGHT_SIMD", wanted, library.gl_simd_available().decode().split())
    return library, None


def _installed() -> Path:
    """Where the library is installed: in the package folder, of which an editable install has two."""
    folders = [Path(folder) for folder in sys.modules["gatelight"].__path__]
    return next((f / _FILE_NAME for f in folders if (f / _FILE_NAME).is_file()), folders[0] / _FILE_NAME)


def _declare(library: ctypes.CDLL) -> None:
    i32, i64, pointer, text = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p
    layers, convs = ctypes.POINTER(Layer), ctypes.POINTER(Conv)
    signatures: dict[str, tuple[object, ...]] = {
        "gl_simd_available": (text,),
        "gl_simd": (text,),
        "gl_simd_select": (i32, text),
        "gl_set_threads": (None, i32),
        "gl_get_threads": (i32,),
        "gl_stop_threads": (None,),
        "gl_table_fwd": (i32, i32, i32, i64, pointer, pointer),
        "gl_table_bwd": (i32, i32, i32, i64, pointer, pointer, pointer),
        "gl_save_bytes": (i64, layers, i32, i64, i32),
        "gl_work_bytes": (i64, layers, i32, i64, i32),
        "gl_stack_fwd": (i32, layers, i32, i64, i32, Matrix, Matrix, pointer),
        "gl_stack_bwd": (i32, layers, i32, i64, i32, Matrix, Matrix, Matrix, pointer),
        "gl_conv_supported": (i32, i32, i32, i32),
        "gl_conv_save_bytes": (i64, convs, i32, i64),
        "gl_conv_fwd": (i32, convs, i32, i64, Matrix, Matrix, pointer),
        "gl_conv_bwd": (i32, convs, i32, i64, Matrix, Matrix, Matrix, pointer),
        "gl_resample": (i32, pointer, i32, i64, i64, i64, i64, pointer, pointer),
        "gl_thermometer": (i32, pointer, i32, i64, i64, i64, pointer, i64, i64, pointer),
        "gl_acquire": (pointer, i64),
        "gl_release": (None, pointer),
    }
    for name, (result, *arguments) in signatures.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
