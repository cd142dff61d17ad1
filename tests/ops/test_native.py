from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gatelight import native


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    native._load.cache_clear()
    yield
    native._load.cache_clear()


def test_says_why_a_file_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GATELIGHT_NATIVE_LIBRARY", str(tmp_path / "nowhere.so"))
    assert native.load() is None
    reason = native.why_not()
    assert reason is not None
    assert "nowhere.so does not exist" in reason


def test_says_why_a_file_is_no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "text.so"
    path.write_text("not a library")
    monkeypatch.setenv("GATELIGHT_NATIVE_LIBRARY", str(path))
    assert native.load() is None
    reason = native.why_not()
    assert reason is not None
    assert "cannot be loaded" in reason


def test_refuses_another_abi(monkeypatch: pytest.MonkeyPatch) -> None:
    if native.load() is None:
        pytest.skip(str(native.why_not()))
    native._load.cache_clear()
    monkeypatch.setattr(native, "ABI_VERSION", native.ABI_VERSION + 1)
    assert native.load() is None
    assert f"expected {native.ABI_VERSION}" in str(native.why_not())


def test_the_library_or_the_reason_is_there() -> None:
    assert (native.load() is None) == (native.why_not() is not None)
    assert native.load() is native.load()
