"""benchmarks/gpu.py where there is no GPU: the model that docs/gpu.md prints, the check, and a clear refusal."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]


def benchmark(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks/gpu.py"), *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_the_documented_bounds_are_the_computed_ones() -> None:
    done = benchmark("--model")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 8
    assert done.stdout in (ROOT / "docs/gpu.md").read_text("utf-8")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    done = benchmark("--out", str(tmp_path / "gpu.json"))
    assert done.returncode == 1
    assert done.stderr == (
        "the GPU kernels cannot run here: torch sees no GPU; --model prints the computed bounds without a GPU\n"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_the_check_runs_under_the_interpreter() -> None:
    done = benchmark("--check", TRITON_INTERPRET="1", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "kernels equal the reference in values and gradients\n"
