"""Every kernel compiles for every GPU we name, and fits it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("triton")

from gatelight.ops.backends.triton import aot


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


BUILDS = [*aot.builds(), *aot.conv_builds(), *aot.sized_builds()]


@pytest.mark.slow
@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.name)
def test_it_compiles_and_fits(build: aot.Build) -> None:
    for target in build.targets:
        used = aot.compile_for(build, target)
        assert used.spilled == 0, target
        # 65 536 registers of a multiprocessor, programs of 128 threads: at least four run side by side, two where a
        # program holds 60 sums or more.
        assert used.registers <= (255 if build.large else 128), target
        assert used.shared <= 16 * 1024, target


def test_a_report_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="report does not match"):
        aot._number(r"Used (\d+) registers", "nothing")
