import re
from pathlib import Path
from typing import Any

import pytest

from gatelight.cli import main

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def test_the_python_examples_run() -> None:
    dense, convolutional = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, Any] = {}
    exec(dense, names)
    exec(convolutional, names)
    assert tuple(names["maps"].shape) == (8, 64, 14, 14)
    assert names["discretize"](names["net"]).gates == 2_000
    assert names["circuit"].gates < 2_000
    assert (names["labels"] == names["digits"].test.y).mean() > 0.85


def test_it_is_short() -> None:
    assert len(README.encode()) <= 5_000


@pytest.mark.parametrize("command", sorted(set(re.findall(r"^ +gatelight ([a-z]+)", README, re.MULTILINE))))
def test_every_command_that_it_names_exists(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0


def test_it_names_its_two_commands_and_they_exist() -> None:
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    for target in ("demo", "test"):
        assert f"make {target}" in README
        assert f"\n{target}:" in makefile
