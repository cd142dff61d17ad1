from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatelight.circuit import Circuit, evaluate
from gatelight.circuit.random import layered_circuit, random_circuit
from gatelight.truthtable import unpack


def by_hand(circuit: Circuit, bits: list[int]) -> list[int]:
    """One sample in plain Python, written apart from the evaluators."""
    nets = list(bits)
    for row, arity, table in zip(circuit.fanin.tolist(), circuit.arity.tolist(), circuit.table, strict=True):
        if arity == 0:
            nets.append(int(table))
        else:
            entry = int("".join(str(nets[net]) for net in row[:arity]), 2)
            nets.append(int(unpack(table, arity)[entry]))
    ones = [nets[net] for net in circuit.outputs]
    start = circuit.group_start.tolist()
    return [sum(ones[a:b]) + int(c) for a, b, c in zip(start, start[1:], circuit.bias, strict=False)]


@given(data=st.data())
def test_every_evaluator_agrees(data: st.DataObject, circuits: Any, every_input: Any) -> None:
    circuit = data.draw(circuits())
    bits = every_input(circuit.inputs)
    ones = evaluate.outputs(circuit, bits)
    wanted = [by_hand(circuit, row) for row in bits.tolist()]
    assert evaluate.group_sums(circuit, ones).tolist() == wanted
    assert np.array_equal(circuit.outputs_of(bits), ones)
    assert circuit.scores(bits.astype(np.float32)).tolist() == wanted


@pytest.mark.parametrize("batch", [0, 1, 63, 64, 65, 200])
def test_batches_around_a_word(batch: int) -> None:
    circuit = random_circuit(9, 60, arities=(0, 1, 2, 3, 6), outputs=12, classes=4, seed=2)
    bits = np.random.default_rng(batch).integers(0, 2, (batch, 9))
    wanted = evaluate.outputs(circuit, bits)
    assert wanted.shape == (batch, 12)
    assert np.array_equal(circuit.outputs_of(bits), wanted)
    scores = circuit.scores(bits.astype(np.float64))
    assert scores.shape == (batch, 4)
    assert scores.dtype == np.int32
    assert np.array_equal(scores, evaluate.group_sums(circuit, wanted))


def test_blocks_join(monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = layered_circuit(9, (20, 20), classes=3)
    bits = np.random.default_rng(0).integers(0, 2, (300, 9))
    whole = circuit.scores(bits.astype(np.float32))
    monkeypatch.setattr(evaluate, "_WORKING_SET", 1)
    assert evaluate.words_per_block(circuit) == 1
    assert np.array_equal(circuit.scores(bits.astype(np.float32)), whole)
    assert np.array_equal(evaluate.packed_outputs(circuit, bits), evaluate.outputs(circuit, bits))


def test_first_fanin_is_most_significant() -> None:
    circuit = random_circuit(2, 1, outputs=1, classes=1)
    only_first = Circuit(**{**vars_of(circuit), "table": [0b0100], "fanin": [[0, 1]], "outputs": [2]})
    assert only_first.scores(np.array([[1.0, 0.0], [0.0, 1.0]])).ravel().tolist() == [1, 0]


def vars_of(circuit: Circuit) -> dict[str, Any]:
    return {name: getattr(circuit, name) for name in Circuit.__dataclass_fields__}


def test_ties_go_to_the_first_class_and_logits_scale() -> None:
    fields = vars_of(random_circuit(1, 0, outputs=3, classes=3))
    circuit = Circuit(**{**fields, "outputs": [0, 0, 0], "bias": [0, 1, 1], "temperature": 4.0})
    x = np.array([[1.0], [0.0]], np.float32)
    labels, logits = circuit.predict(x), circuit.logits(x)
    assert labels.tolist() == [1, 1]
    assert labels.dtype == np.int64
    assert logits.tolist() == [[0.25, 0.5, 0.5], [0.0, 0.25, 0.25]]
    assert logits.dtype == np.float32


def test_empty_group_scores_its_bias() -> None:
    fields = vars_of(random_circuit(1, 0, outputs=2, classes=3))
    circuit = Circuit(**{**fields, "outputs": [0, 0], "group_start": [0, 0, 2, 2], "bias": [5, 0, -5]})
    assert circuit.scores(np.array([[1.0]])).tolist() == [[5, 2, -5]]


@pytest.mark.parametrize(
    ("bits", "message"),
    [
        (np.zeros((2, 3), int), r"shape \[batch, 4\]"),
        (np.zeros(4, int), "shape"),
        (np.full((2, 4), 2), "0 or 1, got values from 2 to 2"),
        (np.full((2, 4), -1), "0 or 1"),
        (np.zeros((2, 4)), "got float64"),
    ],
)
def test_bad_bits_are_refused(bits: np.ndarray, message: str) -> None:
    circuit = random_circuit(4, 5)
    for run in (circuit.outputs_of, lambda given: evaluate.outputs(circuit, given)):
        with pytest.raises(ValueError, match=message):
            run(bits)


def test_packing_round_trip() -> None:
    bits = np.random.default_rng(0).integers(0, 2, (130, 7)).astype(np.uint8)
    words = evaluate.pack_samples(bits)
    assert words.shape == (7, 3)
    assert np.array_equal(evaluate.unpack_samples(words, 130), bits)
