"""What the engine takes: memory layouts, dtypes, thresholds; and what it refuses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gatelight.circuit import Circuit, evaluate
from gatelight.circuit.features import KINDS
from gatelight.circuit.random import layered_circuit
from gatelight.engine import Engine

Build = Callable[..., Engine]


def made(**fields: Any) -> Circuit:
    return Circuit(**fields)


def changed(circuit: Circuit, **fields: Any) -> Circuit:
    return dataclasses.replace(circuit, **fields)


@pytest.fixture(scope="module")
def circuit() -> Circuit:
    return layered_circuit(90, (100, 60), classes=4)


def samples(batch: int, count: int, dtype: str) -> NDArray[Any]:
    rng = np.random.default_rng(batch)
    if dtype == "uint8":
        return rng.integers(0, 256, (batch, count), dtype=np.uint8)
    return rng.random((batch, count)).astype(dtype)


def misaligned(x: NDArray[Any]) -> NDArray[Any]:
    raw = np.zeros(x.nbytes + 1, np.uint8)
    shifted = raw[1:].view(np.uint8)[: x.nbytes].view(x.dtype).reshape(x.shape)
    shifted[:] = x
    return shifted


LAYOUTS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "fortran": np.asfortranarray,
    "rows backwards": lambda x: x[::-1],
    "features backwards": lambda x: x[:, ::-1],
    "every other row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "every other feature": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "window of a wider array": lambda x: np.pad(x, ((0, 0), (3, 5)))[:, 3:-5],
    "one row for all": lambda x: np.broadcast_to(x[0], x.shape),
    "misaligned": misaligned,
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
}


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout(build: Build, circuit: Circuit, layout: str, dtype: str) -> None:
    engine = build(circuit)
    for batch in (1, 5, 600):
        x = LAYOUTS[layout](samples(batch, 90, dtype))
        np.testing.assert_array_equal(engine.scores(x), evaluate.scores(circuit, x))
        np.testing.assert_array_equal(engine.predict(x), evaluate.predict(circuit, x))


def test_shaped_samples(build: Build, circuit: Circuit) -> None:
    shaped = changed(circuit, feature_shape=(2, 9, 5))
    x = samples(70, 90, "uint8").reshape(70, 2, 9, 5)
    engine = build(shaped)
    for given in (x, x.reshape(70, 90), np.asfortranarray(x), x[:, ::-1]):
        np.testing.assert_array_equal(engine.scores(given), evaluate.scores(shaped, given))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 7, 8, 63, 64, 65, 100, 200])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_thresholds_of_any_number_and_order(build: Build, count: int, dtype: str, kind: str) -> None:
    rng = np.random.default_rng(count)
    inputs = 300
    base = layered_circuit(inputs, (200, 100), classes=4, seed=count)
    # Some features have many thresholds, some none; thresholds on values, between them and beyond both ends.
    feature = np.minimum(rng.integers(0, count, inputs), rng.integers(0, count, inputs))
    steps = (np.arange(256, dtype=np.float32) / np.float32(255))[rng.integers(0, 256, inputs)]
    ends = np.array([-1.0, 0.0, 1.0, 2.0, np.inf, -np.inf], np.float32)[rng.integers(0, 6, inputs)]
    threshold = np.where(rng.random(inputs) < 0.3, ends, steps)
    if kind == "reals":
        threshold = np.where(rng.random(inputs) < 0.5, 300 * threshold, threshold)
    circuit = changed(base, features=count, encoder_feature=feature, encoder_threshold=threshold, feature_kind=kind)
    engine = build(circuit)
    for batch in (1, 64, 300):
        x = samples(batch, count, dtype)
        x = x // np.uint8(128) if kind == "bits" and dtype == "uint8" else np.round(x) if kind == "bits" else x
        np.testing.assert_array_equal(engine.scores(x), evaluate.scores(circuit, x))


@pytest.mark.parametrize("kind", ["bytes", "reals"])
def test_every_byte_against_every_threshold(build: Build, kind: str) -> None:
    one = np.float32(255 if kind == "bytes" else 1)
    values = np.arange(256, dtype=np.float32) / one
    threshold = np.concatenate([values, np.nextafter(values, np.float32(9)), np.nextafter(values, np.float32(-9))])
    count = len(threshold)
    circuit = made(
        inputs=count,
        fanin=np.zeros((0, 2)),
        arity=[],
        table=[],
        outputs=np.arange(count),
        group_start=np.arange(count + 1),
        bias=np.zeros(count, np.int32),
        temperature=1.0,
        features=1,
        encoder_feature=np.zeros(count, np.int32),
        encoder_threshold=threshold,
        feature_kind=kind,
    )
    x = np.arange(256, dtype=np.uint8)[:, None]
    engine = build(circuit)
    np.testing.assert_array_equal(engine.scores(x), evaluate.scores(circuit, x))
    np.testing.assert_array_equal(engine.scores(x.astype(np.float32) / one), evaluate.scores(circuit, x))
    for value in (0, 1, 127, 255):
        np.testing.assert_array_equal(
            engine.scores(x[value : value + 1]), evaluate.scores(circuit, x[value : value + 1])
        )


def test_values_beyond_the_unit_interval_and_infinite(build: Build, circuit: Circuit) -> None:
    reals = changed(circuit, feature_kind="reals")
    x = np.random.default_rng(0).choice([-5.0, 0.5, 0.500001, 7.0, 3.4e38, -3.4e38, 5e-324], (80, 90))
    np.testing.assert_array_equal(build(reals).scores(x), evaluate.scores(reals, x))
    for beyond in (-np.inf, np.inf, 1e300, np.float64(np.finfo(np.float32).max) * 1.0001):
        x[7, 3] = beyond
        with pytest.raises(ValueError, match=r"features must be finite as float32, got -?inf in sample 7, feature 3"):
            build(reals).scores(x)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("batch", "row", "column"), [(1, 0, 0), (1, 0, 89), (64, 63, 5), (700, 699, 88), (700, 3, 7)])
def test_what_is_not_of_the_kind_is_refused_with_its_place(
    build: Build, circuit: Circuit, kind: str, batch: int, row: int, column: int
) -> None:
    given = changed(circuit, feature_kind=kind)
    engines = (build(given), build(given, threads=3))
    wrong: dict[str, list[Any]] = {
        "bits": [np.uint8(2), np.uint8(255), np.float32(0.5), np.float32(-1), np.float32(np.nan), np.float32(1e-45)],
        "bytes": [np.float32(-1e-45), np.float32(1.0000001), np.float32(np.inf), np.float32(np.nan)],
        "reals": [np.float32(np.inf), np.float32(-np.inf), np.float32(np.nan)],
    }
    for value in wrong[kind]:
        x = np.random.default_rng(0).integers(0, 2, (batch, 90)).astype(value.dtype)
        np.testing.assert_array_equal(engines[0].scores(x), evaluate.scores(given, x))
        x[row, column] = value
        with pytest.raises(ValueError, match=rf"features must .*in sample {row}, feature {column}") as expected:
            evaluate.scores(given, x)
        for run in (engines[0].scores, engines[1].predict):
            with pytest.raises(ValueError, match="features must") as got:
                run(x)
            assert str(got.value) == str(expected.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", ">i4", "i8", "u8", "f2", ">f4", "f8", "g"])
def test_every_dtype(build: Build, circuit: Circuit, kind: str, dtype: str) -> None:
    given = changed(circuit, feature_kind=kind)
    x = np.random.default_rng(0).integers(0, 2, (70, 90)).astype(dtype)
    if kind == "bytes" and x.dtype.kind in "iu":
        x *= 100
    np.testing.assert_array_equal(build(given).scores(x), evaluate.scores(given, x))


def test_features_that_fit_are_neither_copied_nor_looked_at(circuit: Circuit, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr("gatelight.circuit.features.check", lambda rows, kind: seen.append(rows))
    for kind, dtype in (
        ("bytes", "uint8"),
        ("bytes", "float32"),
        ("reals", "uint8"),
        ("bits", "uint8"),
        ("bits", "f4"),
    ):
        engine = Engine(changed(circuit, feature_kind=kind))
        x = np.zeros((5, 90), dtype)
        assert np.shares_memory(engine._program.samples(x), x)
        engine.scores(x)
    assert not seen


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("batch", "row", "column"), [(1, 0, 0), (1, 0, 89), (64, 63, 5), (700, 699, 88), (700, 3, 7)])
def test_nan_is_refused_with_its_place(
    build: Build, circuit: Circuit, dtype: str, batch: int, row: int, column: int
) -> None:
    x = samples(batch, 90, dtype)
    x[row, column] = np.nan
    for run in (build(circuit).scores, build(circuit, threads=3).predict):
        with pytest.raises(ValueError, match=f"must not be NaN, got one in sample {row}, feature {column}"):
            run(x)


def test_nan_in_a_feature_that_no_gate_reads_is_refused(build: Build, circuit: Circuit) -> None:
    wider = changed(circuit, features=100)
    x = samples(3, 100, "float32")
    x[2, 99] = np.nan
    with pytest.raises(ValueError, match="sample 2, feature 99"):
        build(wider).scores(x)


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((3, 89), np.uint8),
        np.zeros((3, 91), np.float32),
        np.zeros(90, np.uint8),
        np.zeros((3, 2, 45), np.uint8),
        np.ones((3, 90), np.int64),
        np.full((3, 90), 256, np.int64),
        np.full((3, 90), 17, np.float16),
        np.zeros((3, 90), complex),
        np.zeros((3, 90), object),
        np.full((3, 90), "0"),
    ],
    ids=lambda x: f"{x.dtype}{x.shape}{x.flat[0]}",
)
def test_the_wrong_is_refused_as_the_circuit_refuses_it(circuit: Circuit, x: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match="features must") as expected:
        evaluate.scores(circuit, x)
    for run in (Engine(circuit).scores, Engine(circuit).predict):
        with pytest.raises(ValueError, match="features must") as got:
            run(x)
        assert str(got.value) == str(expected.value)


def test_lists_are_taken_like_arrays(circuit: Circuit) -> None:
    x = samples(3, 90, "float64")
    np.testing.assert_array_equal(Engine(circuit).scores(x.tolist()), evaluate.scores(circuit, x))


def test_wrong_words_are_refused(circuit: Circuit) -> None:
    engine = Engine(circuit)
    for words, message in (
        (np.zeros((89, 2), np.uint64), r"shape \[90, words\]"),
        (np.zeros(90, np.uint64), r"shape \[90, words\]"),
        (np.zeros((90, 2), np.int64), "must be uint64, got int64"),
    ):
        with pytest.raises(ValueError, match=message):
            engine.run_bits(words)  # type: ignore[arg-type]


def test_words_of_any_layout(build: Build, circuit: Circuit) -> None:
    words = np.random.default_rng(0).integers(0, 2**64, (90, 20), dtype=np.uint64)
    engine = build(circuit)
    expected = engine.run_bits(words)
    np.testing.assert_array_equal(engine.run_bits(np.asfortranarray(words)), expected)
    np.testing.assert_array_equal(engine.run_bits(misaligned(words)), expected)
    np.testing.assert_array_equal(engine.run_bits(words[:, ::-1]), expected[:, ::-1])


def test_unknown_simd_and_threads_are_refused(circuit: Circuit) -> None:
    with pytest.raises(ValueError, match=r"simd must be one of .*base.*, got 'sse9'"):
        Engine(circuit, simd="sse9")
    for threads in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="threads must be a whole number of at least 1"):
            Engine(circuit, threads=threads)  # type: ignore[arg-type]


def test_results_do_not_keep_what_was_in_memory(build: Build, circuit: Circuit) -> None:
    # The engine writes into fresh arrays and reuses its scratch: what another run left there must not show.
    engine = build(circuit)
    ones, x = np.full((1000, 90), 255, np.uint8), samples(1000, 90, "uint8")
    expected = evaluate.scores(circuit, x)
    for batch in (1, 63, 64, 65, 513, 1000):
        engine.scores(ones)
        np.testing.assert_array_equal(engine.scores(x[:batch]), expected[:batch])
