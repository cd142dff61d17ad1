from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from gatelight.listing import declared_in


@dataclass(frozen=True)
class Thing:
    name: str
    place: int = 0


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType("some_things")
    made.__path__ = [str(tmp_path)]
    made.__dict__["Thing"] = Thing
    monkeypatch.setitem(sys.modules, "some_things", made)
    for name in ("first", "second"):
        monkeypatch.delitem(sys.modules, f"some_things.{name}", raising=False)
    return made


def test_values_are_listed_by_place_and_may_be_imported(tmp_path: Path, package: ModuleType) -> None:
    (tmp_path / "first.py").write_text("from some_things import Thing\nA = Thing('a', 2)\n")
    (tmp_path / "second.py").write_text(
        "from some_things import Thing\nfrom some_things.first import A\nB = Thing('b', 1)\n"
    )
    assert list(declared_in(package, Thing)) == ["b", "a"]


def test_two_values_of_one_name_are_refused(tmp_path: Path, package: ModuleType) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text("from some_things import Thing\nA = Thing('a')\n")
    with pytest.raises(ValueError, match="two files of some_things give the name 'a' to different things"):
        declared_in(package, Thing)
