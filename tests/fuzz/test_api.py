"""Hostile calls of the public API; ``tests/fuzz/api.sh`` makes many more under AddressSanitizer."""

import importlib.util
from pathlib import Path

import pytest


@pytest.mark.filterwarnings("ignore")
def test_hostile_calls_are_refused() -> None:
    spec = importlib.util.spec_from_file_location("fuzz_api", Path(__file__).parent / "api.py")
    assert spec is not None
    assert spec.loader is not None
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    counted = fuzz.run(600, seed=1_000_000)
    assert counted["answered"] > 100
    assert counted["ValueError"] > 100
