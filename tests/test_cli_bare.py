"""The command where packages are missing, and where Ctrl-C breaks an import off."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gatelight import engine
from gatelight.circuit.random import layered_circuit

#: Hides packages as if they were not installed, and says which were asked for all the same.
WITHOUT = """
import importlib.abc, importlib.util, sys

class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name.split(".")[0] in HIDDEN else found(name, package)
sys.meta_path.insert(0, Hidden())
from gatelight.cli import main
for arguments in COMMANDS:
    if code := main(arguments):
        sys.exit(code)
"""
BARE = ("torch", "rich", "matplotlib", "sklearn", "tensorboard", "triton")


def without(hidden: tuple[str, ...], *commands: list[str]) -> subprocess.CompletedProcess[str]:
    program = f"HIDDEN, COMMANDS = {hidden!r}, {commands!r}\n{WITHOUT}"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_data_sets_are_listed_with_numpy_alone(tmp_path: Path) -> None:
    done = without(BARE, ["data", "list", "--data", str(tmp_path)])
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["data sets", lines[1]]
    assert lines[1].split() == ["name", "state", "where", "what"]
    assert lines[2].startswith("digits ")
    assert len(lines) > 10


def test_info_names_the_engine_without_torch() -> None:
    done = without(BARE, ["info"])
    assert done.returncode == 0, done.stderr
    facts = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    if engine.available():
        stats = engine.Engine(layered_circuit(2, (2,))).stats
        how = "machine code" if stats.code_bytes else "interpreted"
        assert facts["engine"] == f"native, {stats.simd}, {how}"
    else:
        assert facts["engine"].startswith("only numpy: ")
    assert "needs torch" in facts["training"]


@pytest.mark.parametrize("command", ["train", "eval run", "compile run -o net.gl", "inspect run"])
def test_what_needs_torch_says_so(command: str) -> None:
    done = without(BARE, command.split())
    assert done.returncode == 2
    assert done.stderr == (
        "gatelight: error: this needs torch, which is not installed: pip install 'gatelight[train]'\n"
    )


def test_training_and_eval_need_no_rich_and_no_pictures(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((40, 4), np.float32)
    np.savez(tmp_path / "own.npz", x=x, y=(x[:, 0] > 0.5).astype(int))
    hidden = ("rich", "matplotlib", "sklearn")
    flags = ["--width", "20", "--layers", "1", "--steps", "4"]
    run = str(tmp_path / "run")
    done = without(hidden, ["train", str(tmp_path / "own.npz"), *flags, "--out", run], ["eval", run])
    assert done.returncode == 0, done.stderr
    assert "test accuracy on own\nweights  step" in done.stdout
    assert "(metrics.jsonl, config.json, best.safetensors)" in done.stdout
    assert "no curves.png: pip install 'gatelight[train]' for matplotlib" in done.stdout
    result = json.loads((tmp_path / "run/result.json").read_text())
    measured = done.stdout.split("on the test split of own\n")[1]
    assert f"{100 * result['best']['discrete_accuracy']:.2f} %" in measured


@pytest.mark.parametrize(
    "end",
    [
        "raise ImportError('initialisation failed')",
        "raise ModuleNotFoundError('No module named numpy', name='numpy')",
        "raise RuntimeError('broken')",
        "raise",
    ],
)
def test_ctrl_c_in_an_import_is_an_interrupt(tmp_path: Path, end: str) -> None:
    """Extension modules turn the interrupt into errors of their own."""
    lines = ["import os, signal, time", "try:", "    os.kill(os.getpid(), signal.SIGINT)", "    time.sleep(30)"]
    (tmp_path / "torch.py").write_text("\n".join([*lines, "except KeyboardInterrupt:", f"    {end}"]) + "\n")
    # The signal is set anew: processes in the background are born with it ignored.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"sys.path.insert(0, {str(tmp_path)!r}); from gatelight.cli import main; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", program, "train"], capture_output=True, text=True, check=False)
    assert done.stderr == "gatelight: error: interrupted\n"
    assert done.returncode == 130
