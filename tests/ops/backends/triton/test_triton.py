"""The GPU backend where there is no GPU: its interpreter tests, its index, and how it is chosen."""

from __future__ import annotations

import gc
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
import torch

from gatelight.ops import supports
from gatelight.ops.backends import triton
from gatelight.ops.backends.triton import index

NO_TRITON = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
INTERPRETED = sorted(Path(__file__).parent.glob("interpreted/test_*.py"))


@pytest.mark.slow
@NO_TRITON
@pytest.mark.parametrize("path", INTERPRETED, ids=lambda path: path.stem)
def test_kernels_under_the_interpreter(path: Path) -> None:
    # The interpreter is chosen when triton is imported, hence a process of its own.
    environment = os.environ | {"TRITON_INTERPRET": "1", "GATELIGHT_BACKEND": "triton", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_readers_are_who_reads() -> None:
    fanin = torch.randint(0, 9, (40, 3), dtype=torch.int32, generator=torch.Generator().manual_seed(0))
    starts, readers = index.invert(fanin, 9)
    for row in range(9):
        found = readers[starts[row] : starts[row + 1]].tolist()
        assert found == fanin.flatten().eq(row).nonzero().flatten().tolist()
    assert starts[9] == fanin.numel()


def test_readers_are_found_once_for_a_tensor() -> None:
    fanin = torch.tensor([[0, 1], [1, 1]], dtype=torch.int32)
    known = len(index._cache)
    first = index.readers_of(fanin, 3)
    assert index.readers_of(fanin, 3) is first
    fanin[0, 0] = 2
    assert index.readers_of(fanin, 3).starts.tolist() == [0, 0, 3, 4]
    assert index.readers_of(fanin, 4).starts.tolist() == [0, 0, 3, 4, 4]
    assert index.readers_of(fanin, 4, 2).starts.tolist() == [0, 3, 4, 4, 4]
    assert len(index._cache) == known + 1
    del fanin
    gc.collect()
    assert len(index._cache) == known


def test_readers_of_inference_tensors() -> None:
    with torch.inference_mode():
        fanin = torch.tensor([[0, 1]], dtype=torch.int32)
    assert index.readers_of(fanin, 2).readers.tolist() == [0, 1]


@NO_TRITON
def test_an_old_gpu_and_an_old_triton_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    why_not = triton.why_not.__wrapped__
    for capability, reason in [((9, 0), None), ((7, 5), "the GPU's compute capability 7.5 is below 8.0")]:
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda capability=capability: capability)
        assert why_not() == reason
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "3.2.0")
    assert why_not() == "triton 3.2.0 is older than 3.3"


def test_a_gpu_without_triton_warns_and_takes_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = mock.Mock(dtype=torch.float32, device=torch.device("cuda", 0))
    monkeypatch.setattr(triton, "why_not", lambda: "triton cannot be imported")
    with pytest.warns(RuntimeWarning, match="slow reference: triton cannot be imported"):
        assert not supports("triton", tensor)
    monkeypatch.setattr(triton, "why_not", lambda: None)
    assert supports("triton", tensor)
    assert not supports("triton", tensor, mock.Mock(dtype=torch.float64, device=tensor.device))
    assert not supports("triton", tensor, torch.ones(1))


def python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True, check=False
    )


LUT = "ops.lut(torch.rand(3, 4), torch.zeros(2, 2, dtype=torch.int32), torch.rand(2, 4))"


def test_the_cpu_never_imports_triton() -> None:
    done = python(f"import sys, torch\nfrom gatelight import ops\n{LUT}\nassert 'triton' not in sys.modules")
    assert done.returncode == 0, done.stderr


def test_without_triton_the_cpu_is_as_before_and_the_gpu_backend_says_why_not() -> None:
    hide = "import sys\nsys.modules['triton'] = None\nimport torch\nfrom gatelight import ops\n"
    assert python(hide + LUT).returncode == 0
    done = python(hide + "ops.set_backend('triton')", TRITON_INTERPRET="1")
    assert "backend 'triton' is not available: triton cannot be imported" in done.stderr
    assert "pip install 'gatelight[gpu]'" in done.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_backend_says_so() -> None:
    done = python("from gatelight import ops\nops.set_backend('triton')", TRITON_INTERPRET="0")
    assert "backend 'triton' is not available: torch sees no GPU" in done.stderr
