from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatelight.circuit import Circuit
from gatelight.circuit.passes import merging, simplify
from gatelight.circuit.passes.merging import by_cones, by_prover, candidates
from gatelight.circuit.proof import equivalence as eq
from gatelight.circuit.random import random_circuit


def hidden_twins() -> Circuit:
    """(a and b) or (a and c), and a and (b or c): equal, and no local rule sees it; then the negation of a third."""
    fields = {name: getattr(random_circuit(3, 0), name) for name in Circuit.__dataclass_fields__}
    rows = [[0, 1], [0, 2], [3, 4], [1, 2], [0, 6], [5, 7]]
    fields |= {"fanin": rows, "arity": [2] * 6, "table": [8, 8, 14, 14, 8, 6], "outputs": [5, 7, 8, 8]}
    return Circuit(**(fields | {"group_start": [0, 2, 4]}))


def test_twins_that_hashing_cannot_see_are_merged(installed_provers: tuple[str, ...]) -> None:
    circuit = hidden_twins()
    assert simplify(circuit, 1).circuit.gates == 6
    for level in (2, 3):
        done = simplify(circuit, level)
        assert done.report.removed["merging"] > 0
        assert eq.exhaustive(circuit, done.circuit, done.match)
        # The exclusive or of the twins is constant, and the second twin is gone with what it read.
        assert done.circuit.gates <= 3
        assert done.report.outputs_folded == 2


@given(data=st.data())
def test_level_two_preserves_outputs(data: st.DataObject, circuits: Any) -> None:
    circuit = data.draw(circuits())
    done = simplify(circuit, 2)
    assert eq.exhaustive(circuit, done.circuit, done.match)
    assert done.circuit.gates <= simplify(circuit).circuit.gates
    assert done.report.before - sum(done.report.removed.values()) == done.report.after


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_level_three_preserves_outputs(data: st.DataObject, circuits: Any, installed_provers: tuple[str, ...]) -> None:
    circuit = data.draw(circuits())
    done = simplify(circuit, 3)
    assert eq.exhaustive(circuit, done.circuit, done.match)


def test_candidates_that_differ_rarely_are_not_merged(installed_provers: tuple[str, ...]) -> None:
    # The AND of 18 bits looks constant on random vectors but is not; the judges must say so.
    fields = {name: getattr(random_circuit(18, 0), name) for name in Circuit.__dataclass_fields__}
    rows = [[*range(6)], [*range(6, 12)], [*range(12, 18)], [18, 19, 20, -1, -1, -1]]
    fields |= {"fanin": rows, "arity": [6, 6, 6, 3], "table": [1 << 63] * 3 + [128], "outputs": [21]}
    circuit = Circuit(**(fields | {"group_start": [0, 1, 1]}))
    pairs = candidates(circuit)
    wanted = [[2 * 21, 2 * 22]]
    assert wanted[0] in pairs.tolist()
    chosen = np.array(wanted)
    assert not by_cones(circuit, chosen).any()
    assert not by_prover(circuit, chosen).any()
    assert simplify(circuit, 3).circuit.gates == 4


def test_judges_refuse_a_wrong_pair(installed_provers: tuple[str, ...]) -> None:
    circuit = replace(hidden_twins(), outputs=np.array([5, 7, 8, 8], np.int32))
    pairs = np.array([[2 * 7, 2 * 5], [2 * 7 + 1, 2 * 5 + 1], [2 * 7, 2 * 5 + 1], [2 * 4, 2 * 3], [2 * 8, 2 * 9]])
    wanted = [True, True, False, False, True]
    assert by_cones(circuit, pairs).tolist() == wanted
    assert by_prover(circuit, pairs).tolist() == wanted


def chain(gates: int, inputs: int, tables: tuple[int, ...], seed: int = 0) -> Circuit:
    """Each gate reads the one before it and a random input; the last one is put out."""
    rng = np.random.default_rng(seed)
    before = np.concatenate([[0], np.arange(inputs, inputs + gates - 1)])
    fields = {name: getattr(random_circuit(inputs, 0), name) for name in Circuit.__dataclass_fields__}
    fields |= {
        "fanin": np.stack([before, rng.integers(0, inputs, gates)], 1), "arity": [2] * gates,
        "table": rng.choice(np.array(tables, np.uint64), gates), "outputs": [inputs + gates - 1],
    }  # fmt: skip
    return Circuit(**(fields | {"group_start": [0, 1, 1]}))


@pytest.mark.parametrize(("inputs", "tables"), [(2, (6, 9)), (4, (6, 9)), (8, (8,))])
def test_work_on_a_chain_grows_with_its_length(
    inputs: int, tables: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Members lie further above their leaders than a cone is deep: each needs the merges below it.
    evaluated = [0]
    check = merging._Cones._equal_above

    def count(self: merging._Cones, cut: list[int], inside: list[int], *rest: Any) -> bool:
        evaluated[0] += len(inside)
        return check(self, cut, inside, *rest)

    monkeypatch.setattr(merging._Cones, "_equal_above", count)
    work = {}
    for gates in (300, 1200):
        evaluated[0] = 0
        circuit = chain(gates, inputs, tables)
        done = simplify(circuit, 2)
        assert done.report.rounds <= 4
        assert done.circuit.gates <= 8
        assert eq.exhaustive(circuit, done.circuit, done.match)
        work[gates] = evaluated[0]
    assert work[1200] <= 8 * work[300]


def test_what_was_proved_serves_the_pairs_after_it() -> None:
    # A chain of ANDs with the same eight inputs over and over: past the first turn every gate is the same.
    circuit = replace(chain(400, 8, (8,)), fanin=np.stack([np.r_[0, 8:407], np.arange(400) % 8], 1).astype(np.int32))
    member, leader = 2 * (8 + 399), 2 * (8 + 7)
    far = np.array([[member, leader]])
    assert not by_cones(circuit, far).any()
    steps = np.array([[2 * (8 + gate), leader] for gate in range(8, 400)])
    assert by_cones(circuit, steps).all()
    # What was proved does not make its negation true.
    assert not by_cones(circuit, np.concatenate([steps, far ^ [1, 0]]))[-1]


def test_rounds_simulated_together_give_the_same_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = random_circuit(6, 300, reach=20, seed=4)
    together = candidates(circuit)
    assert len(together) > 0
    monkeypatch.setattr(merging, "_WORDS_AT_ONCE", 1)
    assert np.array_equal(candidates(circuit), together)
