"""Every example runs, and says what came out."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def percents(text: str) -> list[float]:
    return [float(word.rstrip("%")) for word in text.split() if word.endswith("%")]


def test_there_is_a_test_for_each() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == [
        "export_verilog.py",
        "new_parametrization.py",
        "train_by_hand.py",
    ]


def test_train_by_hand() -> None:
    assert percents(run("train_by_hand.py"))[-1] > 85


def test_new_parametrization() -> None:
    out = run("new_parametrization.py")
    assert out.count("formally") == 2
    assert all(percent > 80 for percent in percents(out)[:2])
    source = (EXAMPLES / "new_parametrization.py").read_text("utf-8")
    body = source[source.index("@dataclass") : source.index("def main")]
    assert len(body.splitlines()) <= 40


def test_export_verilog(tmp_path: Path) -> None:
    out = run("export_verilog.py", str(tmp_path))
    assert "formally" in out
    assert (tmp_path / "digits.v").read_text("utf-8").count("endmodule") >= 1


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_examples_say_how_to_run_them(path: Path) -> None:
    assert f"python examples/{path.name}" in path.read_text("utf-8")
