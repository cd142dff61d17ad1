from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatelight.circuit import Circuit, evaluate
from gatelight.circuit.passes import simplify
from gatelight.circuit.proof import equivalence as eq
from gatelight.circuit.proof import prover as prover_module
from gatelight.circuit.proof.aig import to_aig
from gatelight.circuit.proof.prover import compare
from gatelight.circuit.random import layered_circuit, random_circuit


def flip(circuit: Circuit, gate: int, entry: int = 0) -> Circuit:
    table = circuit.table.copy()
    table[gate] ^= np.uint64(1 << entry)
    return replace(circuit, table=table)


def tells_apart(left: Circuit, right: Circuit, pattern: np.ndarray | None) -> bool:
    assert pattern is not None
    ones = [evaluate.group_sums(c, evaluate.outputs(c, pattern[None])) for c in (left, right)]
    return bool((ones[0] != ones[1]).any())


@given(data=st.data())
def test_exhaustive_is_right(data: st.DataObject, circuits: Any, every_input: Any) -> None:
    circuit = data.draw(circuits(max_inputs=8))
    if circuit.gates == 0:
        return
    gate = data.draw(st.integers(0, circuit.gates - 1))
    changed = flip(circuit, gate, data.draw(st.integers(0, (1 << int(circuit.arity[gate])) - 1)))
    bits = every_input(circuit.inputs)
    before, after = evaluate.outputs(circuit, bits), evaluate.outputs(changed, bits)
    assert bool(eq.exhaustive(circuit, changed, eq.identity(len(circuit.outputs)))) == np.array_equal(before, after)
    verdict = eq.exhaustive(circuit, changed)
    same = np.array_equal(evaluate.group_sums(circuit, before), evaluate.group_sums(changed, after))
    assert verdict.equal is same
    assert same or tells_apart(circuit, changed, verdict.counterexample)


def test_exhaustive_reaches_the_last_input_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = random_circuit(13, 0, outputs=1, classes=1)
    zero = {"fanin": [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11], [12, 13, 14, -1, -1, -1]], "arity": [6, 6, 3]}
    last = 1 << 63
    fields = {name: getattr(circuit, name) for name in Circuit.__dataclass_fields__} | zero
    one = Circuit(**(fields | {"table": [last, last, 128], "outputs": [15]}))
    other = flip(one, 2, 7)
    monkeypatch.setattr(evaluate, "_WORKING_SET", 512)
    for match in (None, eq.identity(1)):
        verdict = eq.exhaustive(one, other, match)
        assert verdict.equal is False
        assert verdict.counterexample is not None
        assert verdict.counterexample.all()
        assert eq.exhaustive(one, one, match)


def test_exhaustive_refuses_many_inputs() -> None:
    circuit = random_circuit(21, 3)
    with pytest.raises(ValueError, match="up to 20 inputs, got 21"):
        eq.exhaustive(circuit, circuit)


def test_random_finds_a_flipped_bit() -> None:
    circuit = layered_circuit(64, (200, 200), seed=5).simplify()
    changed = flip(circuit, circuit.gates - 1)
    assert eq.random(circuit, circuit, vectors=1000)
    for match in (None, eq.identity(len(circuit.outputs))):
        verdict = eq.random(circuit, changed, match, vectors=1000)
        assert verdict.equal is False
        assert tells_apart(circuit, changed, verdict.counterexample)
    with pytest.raises(ValueError, match="vectors"):
        eq.random(circuit, circuit, vectors=0)


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_provers_agree_with_exhaustive(data: st.DataObject, circuits: Any, installed_provers: tuple[str, ...]) -> None:
    circuit = data.draw(circuits())
    done = simplify(circuit)
    match = done.match
    other = done.circuit
    if other.gates and data.draw(st.booleans()):
        other = flip(other, data.draw(st.integers(0, other.gates - 1)))
    wanted = eq.exhaustive(circuit, other, match).equal
    for prover in installed_provers:
        assert eq.prove(circuit, other, match, prover=prover).equal is wanted


def test_proof_covers_kept_and_folded_outputs(installed_provers: tuple[str, ...]) -> None:
    circuit = layered_circuit(64, (300, 300, 300), seed=2)
    done = simplify(circuit)
    match = done.match
    assert done.report.outputs_folded > 0
    for prover in installed_provers:
        assert eq.prove(circuit, done.circuit, match, prover=prover).equal is True
        refuted = eq.prove(circuit, flip(done.circuit, 0), match, prover=prover)
        assert refuted.equal is False
        assert refuted.counterexample is not None
        # A folded output is part of the claim: claim the other constant, with the bias to go with it.
        at = int(np.flatnonzero(match.constant >= 0)[0])
        constant = match.constant.copy()
        constant[at] ^= 1
        group = int(np.searchsorted(circuit.group_start, at, "right")) - 1
        bias = done.circuit.bias.copy()
        bias[group] += 1 if constant[at] else -1
        wrong = eq.Match(match.partner, constant)
        assert eq.prove(circuit, replace(done.circuit, bias=bias), wrong, prover=prover).equal is False


def test_proof_of_a_rare_difference(installed_provers: tuple[str, ...]) -> None:
    rows = [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11], [12, 13, 14, 15, 16, 17], [18, 19, 20, -1, -1, -1]]
    fields = {name: getattr(random_circuit(18, 0), name) for name in Circuit.__dataclass_fields__}
    fields |= {"fanin": rows, "arity": [6, 6, 6, 3], "table": [1 << 63, 1 << 63, 1 << 63, 128]}
    one = Circuit(**(fields | {"outputs": [21], "group_start": [0, 1, 1]}))
    other = flip(one, 3, 7)
    assert eq.random(one, other, vectors=4096)  # one input in 2**18 differs, so random vectors miss it
    for prover in installed_provers:
        assert eq.prove(one, other, prover=prover).equal is False


def test_match_must_account_for_scores() -> None:
    circuit = layered_circuit(8, (30, 30), classes=3, seed=0)
    done = simplify(circuit)
    match = done.match
    small = done.circuit
    partner, constant = match.partner.copy(), match.constant.copy()
    eq.check_match(circuit, small, match)
    with pytest.raises(ValueError, match="bias on the right"):
        eq.check_match(circuit, replace(small, bias=small.bias + 1), match)
    with pytest.raises(ValueError, match="one entry for each of 30"):
        eq.check_match(circuit, small, eq.Match(partner[:-1], constant[:-1]))
    swapped = partner.copy()
    kept = np.flatnonzero(partner >= 0)
    swapped[[kept[0], kept[-1]]] = swapped[[kept[-1], kept[0]]]
    with pytest.raises(ValueError, match="in its class"):
        eq.check_match(circuit, small, eq.Match(swapped, constant))
    twice = partner.copy()
    twice[kept[0]] = partner[kept[1]]
    with pytest.raises(ValueError, match="on the right once"):
        eq.check_match(circuit, small, eq.Match(twice, constant))
    unsaid = constant.copy()
    unsaid[constant >= 0] = -1
    with pytest.raises(ValueError, match="either a partner or a constant"):
        eq.check_match(circuit, small, eq.Match(partner, unsaid))
    with pytest.raises(ValueError, match="same encoder"):
        eq.exhaustive(circuit, random_circuit(7, 3))
    with pytest.raises(ValueError, match="same feature_kind, got bytes and bits"):
        eq.exhaustive(circuit, random_circuit(8, 3, feature_kind="bits"))
    with pytest.raises(ValueError, match="same classes"):
        eq.exhaustive(circuit, random_circuit(8, 3, classes=2))


def test_no_prover_is_said_clearly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prover_module, "provers", lambda: ())
    circuit = random_circuit(3, 5)
    with pytest.raises(RuntimeError, match=r"gatelight\[verify\]"):
        eq.prove(circuit, circuit)
    with pytest.raises(ValueError, match="none found, got 'abc'"):
        eq.prove(circuit, circuit, prover="abc")


def test_graphs_of_different_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="same inputs and outputs, got 3 and 4 inputs"):
        compare(to_aig(random_circuit(3, 5)), to_aig(random_circuit(4, 5)))
