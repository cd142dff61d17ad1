"""A few cases of the fuzz of inputs, and that it sees what is wrong."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatelight.circuit import Circuit
from gatelight.circuit import features as rule

SCRIPT = Path(__file__).parent / "inputs.py"


@pytest.fixture(scope="module")
def fuzz() -> Any:
    spec = importlib.util.spec_from_file_location("fuzz_inputs", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_drawn_inputs() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", SCRIPT, "150", "7"], capture_output=True, text=True, timeout=120, check=False
    )
    assert re.fullmatch(r"150 cases, \d+ refused, 0 differences.*\n", done.stdout), done.stdout + done.stderr
    assert done.returncode == 0


def test_a_wrong_score_shows_and_can_be_repeated(
    fuzz: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = Circuit.scores
    monkeypatch.setattr(Circuit, "scores", lambda self, x: right(self, x) + np.int32(np.asarray(x).dtype == np.float16))
    assert fuzz.main(["150", "7"]) == 1
    told = capsys.readouterr().out
    repeat = re.search(r"inputs\.py (1 \d+)\n$", told)
    assert repeat
    assert fuzz.main(repeat[1].split()) == 1
    assert capsys.readouterr().out == told


def test_values_that_are_not_checked_show(
    fuzz: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rule, "check", lambda rows, kind: rows)
    assert fuzz.main(["150", "7"]) == 1
    assert "expected refuses" in capsys.readouterr().out
