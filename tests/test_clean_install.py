import json
import os
import subprocess
import venv
from pathlib import Path

import numpy as np
import pytest

from gatelight.circuit.random import layered_circuit

ROOT = Path(__file__).parents[1]

PROGRAM = """
import sys, json, numpy as np, gatelight
from gatelight.engine import Engine
circuit = gatelight.Circuit.load("net.gl")
x = np.load("x.npy")
labels = circuit.predict(x)
assert np.array_equal(Engine(circuit).predict(x), labels)
assert "torch" not in sys.modules
print(json.dumps(labels.tolist()))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("CI") != "true", reason="installs from the package index; runs where CI=true")
def test_a_circuit_runs_where_torch_is_not_installed(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env/bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(ROOT)], check=True)
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format", "json"], check=True, capture_output=True, text=True
    )
    installed = {package["name"] for package in json.loads(listed.stdout)}
    assert installed <= {"gatelight", "numpy", "safetensors", "pip", "setuptools"}
    circuit = layered_circuit(20, (50, 40, 30))
    circuit.save(tmp_path / "net.gl")
    x = np.random.default_rng(0).random((100, 20), np.float32)
    np.save(tmp_path / "x.npy", x)
    done = subprocess.run([python, "-c", PROGRAM], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert json.loads(done.stdout) == circuit.predict(x).tolist()
    command = [str(tmp_path / "env/bin/gatelight"), "run", "net.gl", "x.npy"]
    assert "100 samples" in subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    refused = subprocess.run(
        [str(tmp_path / "env/bin/gatelight"), "train"], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert refused.returncode == 2
    assert "pip install 'gatelight[train]'" in refused.stderr


def test_the_version_is_the_same_everywhere() -> None:
    import gatelight

    assert f'version = "{gatelight.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"version: {gatelight.__version__}" in (ROOT / "CITATION.cff").read_text()
