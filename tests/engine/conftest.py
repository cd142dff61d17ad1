"""The rule for tests that need the native library, and the SIMD paths to run them on."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from gatelight import native
from gatelight.circuit import Circuit
from gatelight.engine import Engine, available

SIMD = ("avx512", "avx2", "base")


@pytest.fixture(scope="session", autouse=True)
def native_library() -> None:
    """Skip without the library, but never on CI."""
    if not available():
        reason = f"the engine needs the native library: {native.why_not()}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason + ", and CI must have it")
        pytest.skip(reason)


@pytest.fixture(params=SIMD)
def simd(request: pytest.FixtureRequest) -> str:
    """Each SIMD path that this machine has."""
    library = native.load()
    assert library is not None
    name = str(request.param)
    if name not in library.gl_simd_available().decode().split():
        pytest.skip(f"this machine has no {name}")
    return name


@pytest.fixture
def build(simd: str) -> Callable[..., Engine]:
    """Makes an engine on one SIMD path."""

    def make(circuit: Circuit, threads: int = 1) -> Engine:
        engine = Engine(circuit, simd=simd, threads=threads)
        assert engine.stats.simd == simd
        return engine

    return make
