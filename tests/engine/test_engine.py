"""The engine equals the numpy evaluator, whatever the circuit."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gatelight.circuit import Circuit, evaluate
from gatelight.circuit.evaluate import pack_samples, simulate
from gatelight.circuit.random import layered_circuit, random_circuit
from gatelight.engine import Engine

Build = Callable[..., Engine]
ARITIES = ((0,), (1,), (2,), (3,), (4,), (5,), (6,), (0, 1, 2, 3, 4, 5, 6))


def on_bits(inputs: int, fanin: Any, **fields: Any) -> Circuit:
    """A circuit whose features are its inputs; a gate's inputs end where -1 begins."""
    fields |= {"arity": (np.asarray(fanin) >= 0).sum(1), "temperature": 1.0, "features": inputs}
    fields |= {"encoder_feature": np.arange(inputs), "encoder_threshold": np.full(inputs, 0.5)}
    return Circuit(inputs=inputs, fanin=fanin, **fields)


def changed(circuit: Circuit, **fields: Any) -> Circuit:
    return dataclasses.replace(circuit, **fields)


def features(circuit: Circuit, batch: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (batch, circuit.features), dtype=np.uint8)


def assert_equal(engine: Engine, x: NDArray[Any]) -> None:
    expected = evaluate.scores(engine.circuit, x)
    got = engine.scores(x)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, expected)
    labels = engine.predict(x)
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(labels, evaluate.predict(engine.circuit, x))


@pytest.mark.parametrize("arities", ARITIES, ids=str)
@pytest.mark.parametrize("reach", [None, 12])
def test_random_circuits_of_every_arity(build: Build, arities: tuple[int, ...], reach: int | None) -> None:
    for seed in range(3):
        circuit = random_circuit(40, 300, outputs=150, classes=7, arities=arities, reach=reach, seed=seed)
        engine = build(circuit)
        for batch in (1, 40, 130):
            assert_equal(engine, features(circuit, batch, seed))


def test_every_function_of_two_and_three_inputs(build: Build) -> None:
    tables = [(2, t) for t in range(16)] + [(3, t) for t in range(256)]
    fanin = np.array([[0, 1, 2 if arity == 3 else -1] for arity, _ in tables])
    circuit = on_bits(
        inputs=3,
        fanin=fanin,
        table=[table for _, table in tables],
        # Sixteen of each, so that whole groups are summed without being written; each function is a class.
        outputs=np.repeat(np.arange(3, 3 + len(tables)), 16),
        group_start=np.arange(0, 16 * len(tables) + 1, 16),
        bias=np.zeros(len(tables), np.int32),
    )
    every = (np.arange(8)[:, None] >> np.arange(3) & 1).astype(np.uint8) * 255
    engine = build(circuit)
    for x in (every, every[:1], np.tile(every, (20, 1))):
        assert_equal(engine, x)


def test_gates_are_fused_with_sums_in_both_polarities(build: Build) -> None:
    rng = np.random.default_rng(0)
    gates = 600
    circuit = on_bits(
        inputs=50,
        fanin=rng.integers(0, 50, (gates, 2)),
        table=rng.choice([6, 9, 8, 7], gates),
        outputs=np.arange(50, 50 + gates),
        group_start=[0, 200, 600],
        bias=[0, 3],
    )
    engine = build(circuit)
    assert engine.stats.code_bytes or engine.stats.fused_gates > 400
    for batch in (1, 64, 512):
        assert_equal(engine, features(circuit, batch))


@pytest.mark.parametrize("batch", [0, 1, 2, 63, 64, 65, 127, 511, 512, 513, 577, 1024, 10_000])
def test_any_batch_size(build: Build, batch: int) -> None:
    circuit = layered_circuit(70, (200, 200, 100), classes=10)
    assert_equal(build(circuit), features(circuit, batch))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads_do_not_change_the_result(build: Build, threads: int) -> None:
    circuit = layered_circuit(70, (200, 200, 100), classes=10)
    assert_equal(build(circuit, threads=threads), features(circuit, 3000))


def test_no_gates_no_inputs_no_outputs(build: Build) -> None:
    for inputs, gates, outputs in ((5, 0, 20), (0, 4, 9), (5, 5, 0), (0, 0, 0), (1, 0, 1)):
        circuit = random_circuit(inputs, gates, outputs=outputs, arities=(0, 2), classes=3, seed=1)
        engine = build(circuit)
        for batch in (1, 70, 600):
            assert_equal(engine, features(circuit, batch))


@pytest.mark.parametrize("classes", [1, 2, 10, 100])
def test_classes_with_empty_groups_and_bias(build: Build, classes: int) -> None:
    rng = np.random.default_rng(classes)
    base = random_circuit(30, 100, outputs=250, seed=3)
    start = np.sort(rng.integers(0, 251, classes + 1))
    start[0], start[-1] = 0, 250
    circuit = changed(base, group_start=start, bias=rng.integers(-50, 50, classes))
    for batch in (1, 60, 520):
        assert_equal(build(circuit), features(circuit, batch))


def test_the_first_of_equals_wins(build: Build) -> None:
    base = random_circuit(4, 0, outputs=0, classes=5)
    circuit = changed(base, bias=[-7, -3, -3, -9, -3])
    for batch in (1, 64, 512):
        assert build(circuit).predict(features(circuit, batch)).tolist() == [1] * batch


def test_bias_at_the_ends_of_int32(build: Build) -> None:
    base = random_circuit(20, 60, outputs=21, classes=3, seed=5)
    low, high = -(2**31), 2**31 - 1
    for bias in ([low, 0, high - 7], [high - 7, low, low]):
        circuit = changed(base, bias=bias)
        for batch in (1, 100):
            assert_equal(build(circuit), features(circuit, batch))


def test_repeated_outputs_and_large_groups(build: Build) -> None:
    rng = np.random.default_rng(0)
    base = random_circuit(30, 80, outputs=1, classes=1, arities=(2, 3), seed=2)
    for size in (7, 8, 9, 63, 64, 65, 511, 513, 4097, 40_000):
        outputs = rng.integers(0, 110, size)
        # Half of the samples are alike, so that counts come near the size.
        outputs[: size // 2] = outputs[0]
        circuit = changed(base, outputs=outputs, group_start=[0, size])
        for batch in (1, 66):
            assert_equal(build(circuit), features(circuit, batch))


def test_counts_reach_the_size_of_the_group(build: Build) -> None:
    base = random_circuit(2, 0, outputs=0, classes=1)
    for size in (1, 7, 8, 15, 16, 64, 255, 256, 512, 4096, 32_768, 70_000):
        circuit = changed(base, outputs=np.zeros(size, np.int32), group_start=[0, size])
        x = np.full((65, 2), 255, np.uint8)
        assert build(circuit).scores(x).tolist() == [[size]] * 65
        assert build(circuit).scores(x[:1]).tolist() == [[size]]


def test_more_rows_than_16_bits_can_name(build: Build) -> None:
    inputs = 70_000
    rng = np.random.default_rng(0)
    circuit = on_bits(
        inputs=inputs,
        fanin=np.stack([np.arange(0, inputs, 2), np.arange(1, inputs, 2)], 1),
        table=rng.integers(0, 16, inputs // 2),
        outputs=np.arange(inputs + inputs // 2),
        group_start=[0, 50_000, inputs + inputs // 2],
        bias=[0, 0],
    )
    engine = build(circuit)
    assert engine.stats.slots > 65_536
    for batch in (1, 20, 70):
        assert_equal(engine, features(circuit, batch))


@pytest.mark.parametrize("words", [0, 1, 2, 7, 8, 9, 25])
def test_run_bits(build: Build, words: int) -> None:
    circuit = random_circuit(33, 200, outputs=90, arities=(0, 1, 2, 3, 6), seed=4)
    packed = np.random.default_rng(words).integers(0, 2**64, (33, words), dtype=np.uint64)
    got = build(circuit, threads=2).run_bits(packed)
    assert got.dtype == np.uint64
    np.testing.assert_array_equal(got, simulate(circuit, packed)[circuit.outputs])


def test_run_bits_of_packed_samples(build: Build) -> None:
    circuit = random_circuit(33, 200, outputs=90, seed=4)
    bits = circuit.bits(features(circuit, 100))
    got = build(circuit).run_bits(pack_samples(bits))
    np.testing.assert_array_equal(got[:, 0] & np.uint64(1), circuit.outputs_of(bits)[0])


def test_one_wrong_table_bit_is_noticed(build: Build) -> None:
    circuit = layered_circuit(20, (40, 40, 40), classes=4)
    table = circuit.table.copy()
    table[-1] ^= np.uint64(1)
    other = changed(circuit, table=table)
    x = features(circuit, 500)
    assert not np.array_equal(build(other).scores(x), evaluate.scores(circuit, x))


def test_more_values_at_a_time_than_registers_and_short_distances(build: Build) -> None:
    # Values made first are read last, and there are more of them than rows that one byte can name.
    inputs, width = 5000, 9000
    rng = np.random.default_rng(1)
    layers = [rng.integers(0, inputs, (width, 2))]
    for layer in range(2):
        below = inputs + layer * width
        layers.append(np.stack([below + rng.permutation(width), below + rng.permutation(width)], 1))
    gates = 3 * width
    circuit = on_bits(
        inputs=inputs,
        fanin=np.concatenate(layers),
        table=rng.choice([1, 2, 4, 6, 7, 8, 9, 11, 13, 14], gates),
        outputs=np.arange(inputs + width, inputs + gates),
        group_start=[0, 7000, 2 * width],
        bias=[40, 0],
    )
    assert_equal(build(circuit), features(circuit, 100))


def test_many_classes_and_labels_of_many_bits(build: Build) -> None:
    base = random_circuit(30, 300, outputs=3000, seed=8)
    circuit = changed(base, group_start=np.arange(0, 3001, 3), bias=np.arange(1000) // 300)
    engine = build(circuit)
    assert len(set(engine.predict(features(circuit, 512)))) > 5
    assert engine.predict(features(circuit, 512)).max() > 900
    assert_equal(engine, features(circuit, 130))


def test_a_gate_that_everything_reads(build: Build) -> None:
    gates = 20_000
    fanin = np.stack([np.zeros(gates, np.int32), np.arange(gates)], 1)
    fanin[0] = [0, 1]
    fanin[1:, 0] = 20
    fanin[1:, 1] = np.random.default_rng(0).integers(0, 20, gates - 1)
    circuit = on_bits(
        inputs=20,
        fanin=fanin,
        table=np.random.default_rng(1).integers(1, 15, gates),
        outputs=np.arange(20, 20 + gates),
        group_start=[0, 5000, gates],
        bias=[0, 0],
    )
    assert_equal(build(circuit), features(circuit, 70))


def test_a_chain_as_deep_as_it_is_long(build: Build) -> None:
    gates = 30_000
    fanin = np.stack([np.arange(9, 9 + gates), np.random.default_rng(0).integers(0, 10, gates)], 1)
    circuit = on_bits(
        inputs=10,
        fanin=fanin,
        table=np.random.default_rng(1).choice([6, 9, 6, 14, 8], gates),
        outputs=[9 + gates, 10, 9 + gates // 2],
        group_start=[0, 1, 3],
        bias=[0, 0],
    )
    assert_equal(build(circuit), features(circuit, 70))


def test_gates_that_wait_for_long_ladders_and_outputs_that_repeat(build: Build) -> None:
    # Whoever looks far for the gate to come next, and does so for every output, takes hours for this.
    rng = np.random.default_rng(0)
    inputs, ladders, length, waiting, repeats = 300, 8, 600, 64, 20_000
    first = np.stack([rng.integers(100 * k, 100 * k + 100, waiting) for k in range(3)], 1)
    rows = [list(row) for row in first]
    ends = []
    for ladder in range(ladders):
        start = inputs + len(rows)
        rows += [[3 * ladder + i, 100 + 3 * ladder, 200 + 3 * ladder] for i in range(3)]
        rows += [[start + i - 1, start + i - 2, start + i - 3] for i in range(3, length)]
        ends.append(inputs + len(rows) - 1)
    rows += [[inputs + gate, end, -1] for gate in range(waiting) for end in ends]
    gates = len(rows)
    pairs = waiting * ladders
    outputs = np.concatenate(
        [inputs + np.arange(waiting), np.zeros(repeats, int), inputs + gates - 1 - np.arange(pairs)]
    )
    circuit = on_bits(
        inputs=inputs,
        fanin=rows,
        table=[0x96] * waiting + [0xE8] * (gates - pairs - waiting) + [6] * pairs,
        outputs=outputs,
        group_start=[0, waiting + repeats, len(outputs)],
        bias=[0, 9_000],
    )
    assert_equal(build(circuit), features(circuit, 70))


@pytest.mark.parametrize("too_many", ["gates", "classes"])
def test_what_would_be_too_much_code_is_interpreted(too_many: str) -> None:
    if too_many == "gates":
        circuit = layered_circuit(64, (1000, 400_000), classes=2)
    else:
        circuit = changed(random_circuit(8, 8, outputs=0, classes=1), group_start=[0] * 200_001, bias=[0] * 200_000)
    engine = Engine(circuit)
    assert engine.stats.code_bytes == 0
    x = features(circuit, 66)
    np.testing.assert_array_equal(engine.predict(x), evaluate.predict(circuit, x))


RUN_BITS_AFTER_A_LACK_OF_MEMORY = """
import resource, sys
import numpy as np
from gatelight.circuit.evaluate import simulate
from gatelight.circuit.random import random_circuit
from gatelight.engine import Engine
circuit = random_circuit(100, 200_000, outputs=50_000, arities=(3,), seed=0)
words = np.random.default_rng(0).integers(0, 2**64, (100, 1), dtype=np.uint64)
expected = simulate(circuit, words)[circuit.outputs]
failed = 0
for more in range(1 << 20, 24 << 20, 1 << 20):
    engine = Engine(circuit)
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, resource.RLIM_INFINITY))
    try:
        engine.run_bits(words)
    except MemoryError:
        failed += 1
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert np.array_equal(engine.run_bits(words), expected)
assert failed, "memory was never short"
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_run_bits_starts_afresh_after_a_lack_of_memory() -> None:
    command = [sys.executable, "-c", RUN_BITS_AFTER_A_LACK_OF_MEMORY]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


MEMORY_DENY_WRITE_EXECUTE = """
import ctypes, sys
import numpy as np
from gatelight.circuit import evaluate
from gatelight.circuit.random import layered_circuit
from gatelight.engine import Engine
PR_SET_MDWE, REFUSE_EXEC_GAIN = 65, 1
if ctypes.CDLL(None).prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0):
    sys.exit(77)
circuit = layered_circuit(70, (200, 200, 100), classes=10)
x = np.random.default_rng(0).integers(0, 256, (600, 70), np.uint8)
engine = Engine(circuit)
assert engine.stats.code_bytes == 0
assert np.array_equal(engine.predict(x), evaluate.predict(circuit, x))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux to refuse code")
def test_where_the_system_refuses_code_it_is_interpreted() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", MEMORY_DENY_WRITE_EXECUTE], capture_output=True, text=True, check=False
    )
    if ended.returncode == 77:
        pytest.skip("this kernel cannot be asked to refuse code")
    assert ended.returncode == 0, ended.stderr


def test_stats_count_what_is_left() -> None:
    circuit = layered_circuit(70, (200, 200, 100), classes=10)
    interpreted = Engine(circuit, code=False).stats
    assert 0 < interpreted.gates + interpreted.fused_gates <= circuit.gates
    for stats in (interpreted, Engine(circuit).stats):
        assert stats.summed_bits >= 80
        assert stats.encoder_words == 2
        assert stats.program_bytes < 64 * circuit.gates + 10_000


def test_stats_are_of_code_or_of_a_program(build: Build) -> None:
    stats = build(layered_circuit(70, (200, 200, 100), classes=10)).stats
    if stats.code_bytes:
        assert stats.gates == stats.runs == stats.gate_reads == 0
        assert stats.code_gates > stats.summed_bits
        assert stats.code_reads > 0
        # Ten scores and the label, of four bits each.
        assert stats.code_writes >= 44
        assert stats.program_bytes > 2 * stats.code_bytes
    else:
        assert stats.gates > 0
        assert stats.code_gates == stats.code_reads == stats.code_writes == 0


def test_copies_outlive_the_original() -> None:
    circuit = layered_circuit(16, (32, 20), seed=2)
    x = np.random.default_rng(0).random((70, 16))
    engine = Engine(circuit, "base", threads=2, code=False)
    made = [copy.copy(engine), copy.deepcopy(engine), pickle.loads(pickle.dumps(engine))]
    del engine
    gc.collect()
    for other in made:
        assert np.array_equal(other.scores(x), evaluate.scores(circuit, x))
        assert (other.threads, other.stats.simd) == (2, "base")
