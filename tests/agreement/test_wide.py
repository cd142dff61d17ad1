"""Simplification of a network of the papers' size, 4 x 128,000 gates, proved equal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gatelight.circuit import Circuit
from gatelight.circuit.passes import Simplified, simplify
from gatelight.circuit.proof.equivalence import prove
from gatelight.circuit.random import layered_circuit

WIDTH, LAYERS, INPUTS = 128_000, 4, 9_216
#: Of a trained network about half of the gates pass an input on.
PASS_FIRST = 0b1100


@pytest.fixture(scope="module")
def wide() -> tuple[Circuit, Simplified]:
    circuit = layered_circuit(INPUTS, (WIDTH,) * LAYERS)
    passes = np.random.default_rng(1).random(circuit.gates) < 0.4
    circuit = replace(circuit, table=np.where(passes, np.uint64(PASS_FIRST), circuit.table))
    return circuit, simplify(circuit)


def test_simplification_is_proved(wide: tuple[Circuit, Simplified], tool: Callable[..., str]) -> None:
    circuit, done = wide
    assert circuit.gates == WIDTH * LAYERS
    assert 50_000 < done.circuit.gates < circuit.gates // 2
    prover = tool("abc", "berkeley-abc", "yosys-abc")
    assert prove(circuit, done.circuit, done.match, prover=prover, seconds=120).equal is True


def test_one_wrong_table_bit_is_found(wide: tuple[Circuit, Simplified], tool: Callable[..., str]) -> None:
    circuit, done = wide
    table = done.circuit.table.copy()
    table[int(done.circuit.outputs[0]) - INPUTS] ^= np.uint64(1)
    wrong = replace(done.circuit, table=table)
    prover = tool("abc", "berkeley-abc", "yosys-abc")
    assert prove(circuit, wrong, done.match, prover=prover, seconds=120).equal is False
