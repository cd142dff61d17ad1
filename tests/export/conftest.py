"""Circuits with everything an exporter can trip over, and the rule for tests that need a tool."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from gatelight.circuit import Circuit
from gatelight.circuit.random import layered_circuit, random_circuit

Vectors = NDArray[np.uint8]


def _with_encoder(
    circuit: Circuit, feature: NDArray[np.int64], threshold: NDArray[np.float64], features: int
) -> Circuit:
    return replace(
        circuit,
        features=features,
        encoder_feature=feature.astype(np.int32),
        encoder_threshold=threshold.astype(np.float32),
    )


def _odd(seed: int) -> Circuit:
    """Mixed arities, constants, dead gates, a random encoder, uneven and empty groups, biases of both signs."""
    rng = np.random.default_rng(seed)
    inputs, classes = int(rng.integers(1, 30)), int(rng.integers(1, 7))
    outputs = int(rng.integers(0, 90))
    circuit = random_circuit(
        inputs,
        int(rng.integers(0, 120)),
        outputs=outputs,
        arities=(0, 1, 2, 2, 3, 4, 5, 6),
        reach=[None, 4, 20][seed % 3],
        seed=seed,
    )
    features = int(rng.integers(1, 12))
    threshold = rng.choice(np.array([-0.5, -0.0, 0.0, 1 / 255, 0.25, 0.5, 0.999, 1.0, 1.5, np.inf, -np.inf]), inputs)
    circuit = _with_encoder(circuit, rng.integers(0, features, inputs), threshold, features)
    cuts = np.sort(rng.integers(0, outputs + 1, classes - 1))
    return replace(
        circuit,
        group_start=np.array([0, *cuts, outputs], np.int32),
        bias=rng.integers(-9, 9, classes).astype(np.int32),
    )


def _constant_outputs() -> Circuit:
    circuit = random_circuit(6, 30, outputs=12, classes=3, seed=5)
    table = np.where(np.arange(30) % 2 == 0, np.uint64(0), np.uint64(15)).astype(np.uint64)
    gates = np.arange(6, 36, dtype=np.int32)
    return replace(circuit, table=table, outputs=gates[:12])


def _no_outputs() -> Circuit:
    return Circuit(
        inputs=0, fanin=np.zeros((0, 2), np.int32), arity=np.zeros(0, np.uint8), table=np.zeros(0, np.uint64),
        outputs=np.zeros(0, np.int32), group_start=np.zeros(4, np.int32), bias=np.array([-(2**31), 3, 3], np.int32),
        temperature=1.0, features=0, encoder_feature=np.zeros(0, np.int32), encoder_threshold=np.zeros(0, np.float32),
    )  # fmt: skip


def _thermometer(feature_major: bool) -> Circuit:
    """Three thresholds for each of 40 features."""
    circuit = layered_circuit(120, (80, 40), classes=4, seed=9)
    levels = np.array([0.25, 0.5, 0.75])
    if feature_major:
        return _with_encoder(circuit, np.repeat(np.arange(40), 3), np.tile(levels, 40), 40)
    return _with_encoder(circuit, np.tile(np.arange(40), 3), np.repeat(levels, 40), 40)


def _of_kind(kind: str) -> Circuit:
    """Bits or plain numbers, with thresholds on, between and beyond their values."""
    circuit = replace(layered_circuit(60, (50, 30), classes=3, seed=12), feature_kind=kind)
    levels = {"bits": [-0.5, 0.0, 0.5, 0.99, 1.0, 7.0], "reals": [-3.0, 0.0, 0.5, 1.0, 77.0, 77.5, 254.9, 255.0, 300.0]}
    rng = np.random.default_rng(3)
    return _with_encoder(circuit, rng.integers(0, 20, 60), rng.choice(np.array(levels[kind]), 60), 20)


def _inverters() -> Circuit:
    """A chain of inverters, which must not become one expression of a hundred levels."""
    circuit = random_circuit(1, 100, arities=(1,), outputs=2, reach=1, outputs_anywhere=False)
    return replace(circuit, table=np.full(100, 1, np.uint64))


HOSTILE = (
    "*/ int evil; /*", "\\", "??/", "endmodule", "`include \"x\"", "// verilator lint_off",
    "$finish;", "ночь", "\"", "a\\",
)  # fmt: skip


@pytest.fixture(scope="session")
def circuits() -> dict[str, Circuit]:
    """Circuits by a name that is also an identifier."""
    wide = random_circuit(16, 50, outputs=1500, classes=1, seed=2)
    named = layered_circuit(9, (20, 20), classes=10, seed=4)
    repeated = np.array([4, 4, 0, 1, 1, 1, 2, 3, 4], np.int32)
    made = {f"odd{seed}": _odd(seed) for seed in range(12)}
    return made | {
        "six_layers": layered_circuit(100, (200,) * 6, classes=10, seed=1),
        "mixed": random_circuit(30, 400, outputs=100, classes=10, arities=(1, 2, 3, 4, 5, 6), seed=7),
        "one_layer": layered_circuit(12, (30,), classes=3, seed=3),
        "constant_outputs": _constant_outputs(),
        "no_gates": replace(random_circuit(5, 0, outputs=9, classes=3, seed=6), outputs=repeated),
        "no_outputs": _no_outputs(),
        "hundred_classes": layered_circuit(20, (60, 300), classes=100, seed=8),
        "one_class": wide,
        "arity_six": random_circuit(12, 40, outputs=20, classes=2, arities=(6,), seed=11),
        "planes": _thermometer(False),
        "features_first": _thermometer(True),
        "inverters": _inverters(),
        "bits": _of_kind("bits"),
        "half_bits": layered_circuit(30, (40, 20), classes=2, feature_kind="bits", seed=13),
        "reals": _of_kind("reals"),
        "hostile": replace(named, class_names=HOSTILE),
    }


@pytest.fixture(scope="session")
def samples() -> Callable[[Circuit, int], Vectors]:
    """Raw features of random bytes or bits, uint8 [count, features], extremes among them."""

    def make(circuit: Circuit, count: int) -> Vectors:
        rng = np.random.default_rng(count)
        if circuit.feature_kind == "bits":
            return rng.integers(0, 2, (count, circuit.features), dtype=np.uint8)
        some = rng.integers(0, 256, (count, circuit.features), dtype=np.uint8)
        some[rng.random(some.shape) < 0.1] = 0
        some[rng.random(some.shape) < 0.1] = 255
        return some

    return make


@pytest.fixture(scope="session")
def spoil() -> Callable[[Circuit, Vectors], Circuit]:
    """The circuit with one bit of one table flipped, such that these samples get other scores."""

    def flip(circuit: Circuit, features: Vectors) -> Circuit:
        right = circuit.scores(features)
        for gate in range(circuit.gates - 1, -1, -1):
            table = circuit.table.copy()
            table[gate] ^= np.uint64(1)
            wrong = replace(circuit, table=table)
            if not np.array_equal(wrong.scores(features), right):
                return wrong
        raise AssertionError("no flip of an entry 0 matters to these samples")

    return flip


@pytest.fixture(scope="session")
def tool() -> Callable[..., str]:
    """The path of an installed tool; none is a reason to skip, but on CI a failure."""

    def find(*names: str) -> str:
        for name in names:
            path = shutil.which(name)
            if path:
                return path
        reason = f"{' or '.join(names)} is not installed"
        if os.environ.get("CI") == "true":
            pytest.fail(reason + ", and CI must have it")
        pytest.skip(reason)

    return find
