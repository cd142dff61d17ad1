"""Runs of a version before `gatelight.training`: they load, evaluate, compile and go on.

``files/NAME`` is a run of 60 steps on digits that was stopped after 30; ``files/expected.json`` has what the code of
that time made of it: right answers and scores of its circuit at step 30, and the hash of all tensors at step 60.
Sums of floats depend on the width of the registers, so those bits are compared on machines with AVX-512 alone.
"""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from gatelight import data
from gatelight.cli import main
from gatelight.config import to_json
from gatelight.discretization import discretize
from gatelight.ops.backends import cpu
from gatelight.training import checkpoint
from gatelight.training.metrics import evaluate
from gatelight.training.run_folder import RunFolder, load_model

FILES = Path(__file__).parent / "files"
EXPECTED = json.loads((FILES / "expected.json").read_text())
SAME_SUMS = torch.backends.cpu.get_cpu_capability() == "AVX512" and cpu.is_available() and cpu.simd() == "avx512"


@pytest.fixture(scope="module")
def digits() -> data.Dataset:
    return data.load("digits")


@pytest.mark.parametrize("name", EXPECTED)
def test_evaluates_and_rounds_as_it_did(name: str, digits: data.Dataset) -> None:
    model, header = load_model(FILES / name, "last")
    assert header["step"] == 30
    counts = evaluate(model, digits.test)
    expected = EXPECTED[name]
    assert (counts.soft_hits, counts.rounded_hits) == (expected["soft_hits"], expected["rounded_hits"])
    assert counts.loss_sum == (expected["loss_sum"] if SAME_SUMS else pytest.approx(expected["loss_sum"]))
    scores = discretize(model).scores(digits.test.x)
    assert hashlib.sha256(np.ascontiguousarray(scores, dtype="<i4").tobytes()).hexdigest() == expected["scores"]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_configuration_is_written_as_it_was(name: str) -> None:
    text = (FILES / name / "config.json").read_text()
    assert to_json(RunFolder(FILES / name).config()) == text
    assert checkpoint.read_header(FILES / name / "last.safetensors")["config"] == json.loads(text)


@pytest.mark.parametrize("name", EXPECTED)
def test_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(FILES / name, run)
    assert main(["train", "--resume", "--out", str(run), "--quiet"]) == 0
    digest = hashlib.sha256()
    for key, tensor in sorted(checkpoint.load(run / "last.safetensors").tensors.items()):
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(tensor.numpy().tobytes())
    if SAME_SUMS:
        assert digest.hexdigest() == EXPECTED[name]["tensors_at_60"]
    assert (run / "config.json").read_bytes() == (FILES / name / "config.json").read_bytes()
    assert [row["step"] for row in RunFolder(run).metrics()] == [20, 40, 60]


def test_compiles(tmp_path: Path) -> None:
    assert main(["compile", str(FILES / "dense"), "-o", str(tmp_path / "net.gl")]) == 0
    assert main(["run", str(tmp_path / "net.gl"), "digits"]) == 0
