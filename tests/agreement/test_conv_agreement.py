"""Convolutional networks: rounded torch model, circuit, engine, C, Verilog and AIGER give the same answers.

The full MNIST S and CIFAR-10 S networks have gates drawn at random, the digits network is trained for a moment.
"""

from __future__ import annotations

import copy
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from gatelight import export, models, ops
from gatelight.circuit import Circuit
from gatelight.circuit.passes import simplify
from gatelight.circuit.proof.equivalence import prove
from gatelight.data import Dataset
from gatelight.discretization import discretize
from gatelight.engine import Engine
from gatelight.nn import LogicNetwork, rounded
from gatelight.ops.backends import cpu

Answers = NDArray[np.int64]


def answers(model: LogicNetwork, x: NDArray[np.uint8], backend: str = "auto") -> Answers:
    """Scores and label of the rounded torch model."""
    ops.set_backend(backend)
    try:
        with rounded(model):
            counts = model(torch.from_numpy(x)) * model.head.temperature
    finally:
        ops.set_backend("auto")
    scores = counts.round().long().numpy()
    return np.column_stack([scores, scores.argmax(1)])


def of_circuit(circuit: Circuit, x: NDArray[np.uint8]) -> Answers:
    return np.column_stack([circuit.scores(x), circuit.predict(x)]).astype(np.int64)


def of_engine(circuit: Circuit, x: NDArray[np.uint8], simd: str) -> Answers:
    scores = Engine(circuit, simd=simd).scores(x)
    return np.column_stack([scores, scores.argmax(1)]).astype(np.int64)


def flipped(model: LogicNetwork, x: NDArray[np.uint8]) -> LogicNetwork:
    """The model with one table entry of a convolution turned over, such that an answer changes."""
    true = answers(model, x)
    rng = np.random.default_rng(0)
    assert model.conv is not None
    for _ in range(50):
        wrong = copy.deepcopy(model)
        assert wrong.conv is not None
        layer = wrong.conv.layers[int(rng.integers(len(wrong.conv.layers)))]
        gate, entry = int(rng.integers(layer.gates)), int(rng.integers(4))
        with torch.no_grad():
            layer.theta[gate, entry] *= -1
        if not np.array_equal(answers(wrong, x), true):
            return wrong
    raise AssertionError("no flip changes an answer")


@pytest.fixture(scope="module")
def digits_net(digits: Dataset) -> LogicNetwork:
    net = models.build("digits", model="cdlgn", width=8, seed=0)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    rng = np.random.default_rng(0)
    for _ in range(120):
        rows = rng.integers(0, len(digits.train), 64)
        loss = cross_entropy(net(torch.from_numpy(digits.train.x[rows])), torch.from_numpy(digits.train.y[rows]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net


def test_digits_everywhere(
    digits_net: LogicNetwork,
    digits: Dataset,
    compile_c: Callable[[Circuit, Path], Callable[..., Answers]],
    simulate: Callable[..., dict[str, Answers]],
    simd_paths: Callable[[], list[str]],
    tool: Callable[..., str],
    tmp_path: Path,
) -> None:
    x = digits.test.x[:70]
    true, wrong = answers(digits_net, x, "reference"), flipped(digits_net, x)
    assert (true[:, -1] == digits.test.y[:70]).mean() > 0.6
    for right, model in ((True, digits_net), (False, wrong)):
        folder = tmp_path / str(right)
        folder.mkdir()
        plain = discretize(model)
        simple = plain.simplify()
        made = {
            "circuit": of_circuit(plain, x),
            "simplified": of_circuit(simple, x),
            "c": compile_c(simple, folder)(x),
            **{f"engine {path}": of_engine(simple, x, path) for path in simd_paths()},
            **{f"torch {path}": answers_on(model, x, path) for path in simd_paths()},
            "verilog": simulate("iverilog", folder, {"net": (simple, 3, True, x.reshape(len(x), -1))})["net"],
        }
        assert {name: np.array_equal(found, true) for name, found in made.items()} == dict.fromkeys(made, right)
        tool("abc", "berkeley-abc", "yosys-abc")
        done = simplify(plain)
        assert prove(discretize(digits_net), done.circuit, done.match).equal is right


def answers_on(model: LogicNetwork, x: NDArray[np.uint8], path: str) -> Answers:
    cpu.select_simd(path)
    try:
        return answers(model, x)
    finally:
        cpu.select_simd(cpu.available_simd()[0])


def test_files_of_the_digits_network_are_equal_to_abc(
    digits_net: LogicNetwork, tool: Callable[..., str], tmp_path: Path
) -> None:
    plain = discretize(digits_net)
    (tmp_path / "net.aig").write_bytes(export.aiger(plain))
    (tmp_path / "net.blif").write_text(export.blif(plain))
    command = [tool("abc", "berkeley-abc", "yosys-abc"), "-q", "cec net.aig net.blif"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    assert "Networks are equivalent" in said.stdout


@pytest.mark.parametrize("dataset", ["mnist", "cifar10"])
def test_full_networks(
    dataset: str,
    compile_c: Callable[..., Callable[..., Answers]],
    simd_paths: Callable[[], list[str]],
    tmp_path: Path,
) -> None:
    net = models.build(dataset, model="cdlgn", init="gaussian", seed=0)
    shape: Any = net.input_shape
    x = np.random.default_rng(0).integers(0, 256, (66, *shape), dtype=np.uint8)
    true = answers(net, x)
    plain = discretize(net)
    assert plain.gates == net.gates
    simple = plain.simplify()
    assert np.array_equal(of_circuit(plain, x), true)
    for path in simd_paths():
        assert np.array_equal(of_engine(plain, x, path), true), path
        assert np.array_equal(of_engine(simple, x, path), true), path
    # Optimizing a file of this size takes a minute; it is the answers that are compared.
    compiled = compile_c(simple, tmp_path, "-O0")
    assert np.array_equal(compiled(x), true)
    assert np.array_equal(compiled(x[:5], one_by_one=True), true[:5])
    wrong = flipped(net, x)
    assert not np.array_equal(of_engine(discretize(wrong), x, simd_paths()[0]), true)
