import os
import subprocess
import sys

import pytest
import torch

from gatelight import native, ops

PROGRAM = """
import torch, warnings
warnings.simplefilter("default")
from gatelight import ops
out = ops.lut(torch.rand(3, 4), torch.zeros(2, 2, dtype=torch.int32), torch.rand(2, 4))
ops.lut(torch.rand(3, 4), torch.zeros(2, 2, dtype=torch.int32), torch.rand(2, 4))
print(ops.get_backend())
"""


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | environment, capture_output=True, text=True, check=False
    )


def test_without_the_library_the_reference_computes_and_says_so_once() -> None:
    done = run(GATELIGHT_NATIVE_LIBRARY="/does/not/exist.so")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "reference\n"
    assert done.stderr.count("RuntimeWarning: gatelight computes with the slow reference") == 1


def test_environment_chooses() -> None:
    assert run(GATELIGHT_BACKEND="reference").stdout == "reference\n"
    wrong = run(GATELIGHT_BACKEND="cpuu")
    assert wrong.returncode != 0
    assert "did you mean 'cpu'" in wrong.stderr
    missing = run(GATELIGHT_BACKEND="cpu", GATELIGHT_NATIVE_LIBRARY="/does/not/exist.so")
    assert missing.returncode != 0
    assert "GATELIGHT_BACKEND=cpu, but the native library" in missing.stderr


@pytest.mark.skipif(native.load() is None, reason=f"no native kernels: {native.why_not()}")
def test_an_unknown_simd_path_is_refused() -> None:
    wrong = run(GATELIGHT_SIMD="avx513")
    assert wrong.returncode != 0
    assert "unknown SIMD path in GATELIGHT_SIMD 'avx513'" in wrong.stderr
    assert run(GATELIGHT_SIMD="base").returncode == 0


@pytest.mark.skipif(native.load() is None, reason=f"no native kernels: {native.why_not()}")
def test_set_backend() -> None:
    x, table = torch.rand(5, 6), torch.rand(7, 8)
    fanin = torch.randint(0, 6, (7, 3), dtype=torch.int32)
    assert ops.get_backend() == "cpu"
    fast = ops.lut(x, fanin, table)
    ops.set_backend("reference")
    try:
        assert ops.get_backend() == "reference"
        assert torch.allclose(ops.lut(x, fanin, table), fast, atol=1e-6)
    finally:
        ops.set_backend("auto")
    with pytest.raises(ValueError, match="unknown backend"):
        ops.set_backend("gpu")
