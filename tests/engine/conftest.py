"""The rule for tests that need the native library, and the SIMD paths to run them on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest

from gatelight import native
from gatelight.circuit import Circuit
from gatelight.engine import Engine, available

INTERPRETED = " interpreted"
PATHS = ("avx512", "avx512" + INTERPRETED, "avx2", "base")


@pytest.fixture(scope="session", autouse=True)
def native_library() -> None:
    """Skip without the library, but never on CI."""
    if not available():
        reason = f"the engine needs the native library: {native.why_not()}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason + ", and CI must have it")
        pytest.skip(reason)


@pytest.fixture(params=PATHS)
def build(request: pytest.FixtureRequest) -> Callable[..., Engine]:
    """Makes an engine on each SIMD path that this machine has, with and without machine code."""
    library = native.load()
    assert library is not None
    simd = str(request.param).removesuffix(INTERPRETED)
    code = not str(request.param).endswith(INTERPRETED)
    if simd not in library.gl_simd_available().decode().split():
        pytest.skip(f"this machine has no {simd}")

    def make(circuit: Circuit, threads: int = 1) -> Engine:
        engine = Engine(circuit, simd=simd, threads=threads, code=code)
        assert engine.stats.simd == simd
        # Scores that are further apart than half of an int32 are left to the interpreter.
        near = int(circuit.bias.max()) - int(circuit.bias.min()) < 2**29
        assert (engine.stats.code_bytes > 0) == (code and near and simd == "avx512" and sys.platform == "linux")
        return engine

    return make
