"""Every kernel compiles for every GPU we name, and fits it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("triton")

from gatelight.ops.triton import aot


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


@pytest.mark.parametrize("build", aot.builds(), ids=lambda build: build.name)
def test_it_compiles_and_fits(build: aot.Build) -> None:
    for target in aot.TARGETS:
        used = aot.compile_for(build, target)
        assert used.spilled == 0, target
        # 65 536 registers of a multiprocessor, programs of 128 threads: at least four run side by side, two at arity 6.
        assert used.registers <= (255 if build.constants.get("ARITY") == 6 else 128), target
        assert used.shared <= 16 * 1024, target


def test_a_report_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="report does not match"):
        aot._number(r"Used (\d+) registers", "nothing")
