from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gatelight.circuit import Circuit
from gatelight.circuit import equivalence as eq
from gatelight.circuit.passes import simplify
from gatelight.circuit.passes.merging import by_cones, by_prover, candidates
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
        assert eq.exhaustive(circuit, done.circuit, eq.match_of(done))
        # The exclusive or of the twins is constant, and the second twin is gone with what it read.
        assert done.circuit.gates <= 3
        assert done.report.outputs_folded == 2


@given(data=st.data())
def test_level_two_preserves_outputs(data: st.DataObject, circuits: Any) -> None:
    circuit = data.draw(circuits())
    done = simplify(circuit, 2)
    assert eq.exhaustive(circuit, done.circuit, eq.match_of(done))
    assert done.circuit.gates <= simplify(circuit).circuit.gates
    assert done.report.before - sum(done.report.removed.values()) == done.report.after


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_level_three_preserves_outputs(data: st.DataObject, circuits: Any, installed_provers: tuple[str, ...]) -> None:
    circuit = data.draw(circuits())
    done = simplify(circuit, 3)
    assert eq.exhaustive(circuit, done.circuit, eq.match_of(done))


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
