"""``Circuit.scores`` and ``Circuit.predict``: numpy for a few samples, the engine for more, the same bits from both."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gatelight.circuit import Circuit, evaluate
from gatelight.circuit.features import KINDS
from gatelight.circuit.random import layered_circuit
from gatelight.engine import automatic
from gatelight.engine.program import Program


def made(seed: int = 0, **fields: Any) -> Circuit:
    return replace(layered_circuit(90, (300, 60), classes=4, seed=seed), **fields)


def samples(batch: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (batch, 90), dtype=np.uint8)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each circuit that was prepared was to become machine code."""
    calls: list[bool] = []

    def prepare(circuit: Circuit, code: bool) -> Program:
        calls.append(code)
        return Program(circuit, code=code)

    monkeypatch.setattr(automatic, "Program", prepare)
    return calls


def test_one_small_batch_is_left_to_numpy(prepared: list[bool]) -> None:
    circuit = layered_circuit(90, (5000, 5000), classes=4)
    expected = evaluate.scores(circuit, samples(3))  # computes the levels, which would count as work
    np.testing.assert_array_equal(circuit.scores(samples(3)), expected)
    assert prepared == []


def test_a_large_batch_is_worth_preparing_at_once(prepared: list[bool]) -> None:
    circuit, x = made(), samples(2000)
    np.testing.assert_array_equal(circuit.scores(x), evaluate.scores(circuit, x))
    np.testing.assert_array_equal(circuit.predict(x), evaluate.predict(circuit, x))
    assert prepared == [False]


def test_many_small_batches_are_too(prepared: list[bool]) -> None:
    circuit, x = made(), samples(5)
    expected = evaluate.scores(circuit, x)
    for _ in range(300):
        np.testing.assert_array_equal(circuit.scores(x), expected)
        np.testing.assert_array_equal(circuit.predict(x), expected.argmax(1))
    assert prepared == [False]


def test_machine_code_comes_with_enough_samples(prepared: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "CODE_PAYS", 5000)
    circuit, x = made(), samples(2000)
    expected = evaluate.scores(circuit, x)
    for _ in range(5):
        np.testing.assert_array_equal(circuit.scores(x), expected)
    assert prepared == [False, True]
    other = made(seed=1)
    other.predict(np.repeat(x, 3, 0))
    assert prepared == [False, True, True]


def test_results_have_the_same_dtypes_and_shapes_either_way() -> None:
    circuit = made()
    for batch in (0, 1, 2000):
        scores, labels = circuit.scores(samples(batch)), circuit.predict(samples(batch))
        assert (str(scores.dtype), scores.shape) == ("int32", (batch, 4))
        assert (str(labels.dtype), labels.shape) == ("int64", (batch,))


@pytest.mark.parametrize("batch", [1, 2000])
@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_the_evaluators(kind: str, batch: int) -> None:
    circuit = made(feature_kind=kind)
    x = np.random.default_rng(0).integers(0, 2, (batch, 90)).astype(np.float32)
    nan, wide, words = x.copy(), np.zeros((batch, 91)), np.full((batch, 90), "0")
    nan[batch - 1, 7] = np.nan
    for wrong in (nan, wide, words):
        with pytest.raises(ValueError, match="features must") as expected:
            evaluate.scores(circuit, wrong)
        for run in (circuit.scores, circuit.predict):
            with pytest.raises(ValueError, match="features must") as got:
                run(wrong)
            assert str(got.value) == str(expected.value)
    np.testing.assert_array_equal(circuit.scores(x), evaluate.scores(circuit, x))


def test_circuits_stay_frozen_and_can_be_copied_and_pickled() -> None:
    circuit, x = made(), samples(2000)
    fresh = pickle.dumps(made())
    expected = circuit.scores(x)
    assert circuit in automatic._states
    assert not any(isinstance(value, Program) for value in vars(circuit).values())
    assert len(pickle.dumps(circuit)) < len(fresh) + 10_000
    for other in (copy.copy(circuit), copy.deepcopy(circuit), pickle.loads(pickle.dumps(circuit)), replace(circuit)):
        assert other.equal(circuit)
        assert other not in automatic._states
        np.testing.assert_array_equal(other.scores(x), expected)


def test_what_was_prepared_goes_with_the_circuit() -> None:
    circuit = made()
    circuit.scores(samples(2000))
    program = automatic._states[circuit].program
    assert program is not None
    gone = weakref.ref(program)
    del program
    before = len(automatic._states)
    gc.disable()
    try:
        del circuit
        assert gone() is None
        assert len(automatic._states) == before - 1
    finally:
        gc.enable()


def test_threads_share_a_circuit() -> None:
    for round_ in range(5):
        circuit = made(seed=round_)
        batches = [samples(1 + 37 * k % 500, k) for k in range(60)]
        expected = [evaluate.scores(circuit, x) for x in batches]
        with ThreadPoolExecutor(8) as pool:
            for got, wanted in zip(pool.map(circuit.scores, batches), expected, strict=True):
                np.testing.assert_array_equal(got, wanted)


def test_without_the_library_numpy_does_it_all(monkeypatch: pytest.MonkeyPatch, prepared: list[bool]) -> None:
    monkeypatch.setattr(automatic, "available", lambda: False)
    circuit, x = made(), samples(2000)
    np.testing.assert_array_equal(circuit.scores(x), evaluate.scores(circuit, x))
    np.testing.assert_array_equal(circuit.predict(x), evaluate.predict(circuit, x))
    assert prepared == []


def test_without_memory_to_prepare_numpy_does_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(circuit: Circuit, code: bool) -> Program:
        raise MemoryError

    monkeypatch.setattr(automatic, "Program", refuse)
    circuit, x = made(), samples(2000)
    np.testing.assert_array_equal(circuit.scores(x), evaluate.scores(circuit, x))
