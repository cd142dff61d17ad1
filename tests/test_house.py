"""Rules that every file of the package keeps, and a design page that says what is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/gatelight"
SOURCES = sorted(p for p in PACKAGE.rglob("*") if p.suffix in (".py", ".cpp", ".h"))
PYTHON = [p for p in SOURCES if p.suffix == ".py"]

MAX_FILE = 400
MAX_FUNCTION = 60
MAX_PARAMETERS = 10

#: GPU kernels take a pointer or a size for each array and dimension.
KERNELS = PACKAGE / "ops/backends/triton/kernels"


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_files_fit_in_the_head(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= MAX_FILE


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", PYTHON, ids=name_of)
def test_functions_are_short_and_take_few_parameters(path: Path) -> None:
    for function in functions(path):
        lines = (function.end_lineno or 0) - function.lineno + 1
        assert lines <= MAX_FUNCTION, f"{function.name} has {lines} lines"
        own = function.args
        names = [a.arg for a in (*own.posonlyargs, *own.args, *own.kwonlyargs) if a.arg not in ("self", "cls")]
        if KERNELS not in path.parents:
            assert len(names) <= MAX_PARAMETERS, f"{function.name} takes {len(names)} parameters"


def test_the_layout_in_the_design_is_what_is_there() -> None:
    design = (ROOT / "docs/design.md").read_text("utf-8")
    block = design.split("## Layout\n")[1].split("\nA file that")[0]
    inside, named = "", set()
    for line in block.splitlines():
        indent = len(line) - len(line.lstrip())
        first = line.split()[0]
        if indent == 4:
            inside = first if first.endswith("/") else ""
            assert (ROOT / first).exists(), first
            continue
        room = inside + first if indent == 6 and first.endswith("/") else inside
        if indent == 8:
            room = "src/gatelight/ops/" + first
        for word in re.findall(r"[\w./]+(?:\.py\b|/)(?=[\s:)]|$)", line):
            bases = (ROOT / room, ROOT / inside, PACKAGE / "ops")
            assert any((base / word).exists() for base in bases), f"{word} of {line.strip()!r} is not there"
            named.add(word.rstrip("/") if indent == 6 else "")
    there = {p.name for p in PACKAGE.iterdir() if p.suffix == ".py" or (p.is_dir() and p.name != "__pycache__")}
    assert there - named == {"__main__.py"}
