import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from gatelight.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
DOCUMENTS = sorted(path for folder in (".", "docs", "results") for path in (ROOT / folder).glob("*.md"))


def test_the_python_examples_run() -> None:
    dense, convolutional = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, Any] = {}
    exec(dense, names)
    exec(convolutional, names)
    assert tuple(names["maps"].shape) == (8, 64, 14, 14)
    assert names["report"].before.gates == 2_000
    assert names["circuit"].gates < 2_000
    assert names["report"].proof.proved
    assert (names["labels"] == names["digits"].test.y).mean() > 0.85


def test_it_is_short() -> None:
    assert len(README.encode()) <= 5_000
    dense = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    assert len([line for line in dense.splitlines() if line]) <= 15


def test_its_picture_shows_the_committed_results() -> None:
    script = ROOT / "docs/images/overview.py"
    picture = script.with_suffix(".svg")
    assert f"({picture.relative_to(ROOT).as_posix()})" in README
    drawn = runpy.run_path(str(script))["draw"]()
    assert picture.read_text("utf-8") == drawn, "draw it again: python docs/images/overview.py"


def anchors(document: Path) -> set[str]:
    """The names that GitHub gives to the headings of a document."""
    headings = re.findall(r"^#+ (.*)$", document.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", document.read_text("utf-8")):
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


@pytest.mark.parametrize("command", sorted(set(re.findall(r"^ +gatelight ([a-z]+)", README, re.MULTILINE))))
def test_every_command_that_it_names_exists(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0


def test_it_names_its_two_commands_and_they_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in ("demo", "test"):
        assert f"make {target}" in README
        assert f"\n{target}:" in makefile
