"""What the exporters share: expressions, statements and their memory, thresholds, names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gatelight.circuit import Circuit
from gatelight.circuit.features import byte_levels
from gatelight.circuit.random import layered_circuit, random_circuit
from gatelight.export.input_order import plan
from gatelight.export.logic import expression, least, live_gates
from gatelight.export.names import check_identifier, class_lines, comment
from gatelight.export.scratch import Step, allocate
from gatelight.export.statements import Statement, statements

Samples = Callable[[Circuit, int], NDArray[np.uint8]]


def steps_of(body: list[Statement]) -> list[Step]:
    return [Step(statement.net, statement.leaves()) for statement in body]


def _value(text: str, bits: tuple[int, ...]) -> int:
    return int(eval(text.format(*bits))) & 1


@pytest.mark.parametrize("arity", [0, 1, 2, 3])
def test_every_expression_of_a_small_arity(arity: int) -> None:
    for table in range(1 << (1 << arity)):
        for entry, bits in enumerate(product((0, 1), repeat=arity)):
            assert _value(expression(table, arity), bits) == table >> entry & 1


@given(st.integers(4, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, (1 << (1 << n)) - 1))))
def test_any_expression_of_a_large_arity(case: tuple[int, int]) -> None:
    arity, table = case
    for entry, bits in enumerate(product((0, 1), repeat=arity)):
        assert _value(expression(table, arity), bits) == table >> entry & 1


def test_expressions_of_two_operands_are_minimal() -> None:
    cost = {"0": 0, "1": 0, "a": 0, "b": 0, "~a": 1, "~b": 1}
    for table in range(16):
        text = expression(table, 2).format("a", "b")
        operations = sum(text.count(sign) for sign in "~&|^")
        # One operation where no negation is needed, two otherwise; no function needs more.
        assert operations == cost.get(text, 1 if table in (0b0110, 0b1000, 0b1110) else 2)


@given(
    st.lists(st.integers(3, 6), max_size=6).flatmap(
        lambda nets: st.tuples(st.just(tuple(nets)), st.integers(0, (1 << (1 << len(nets))) - 1))
    )
)
def test_least_is_the_same_function(case: tuple[tuple[int, ...], int]) -> None:
    nets, table = case
    small, kept = least(table, nets)
    assert len(set(kept)) == len(kept)
    for bits in product((0, 1), repeat=4):
        value = dict(zip(range(3, 7), bits, strict=True))
        entry = int("0" + "".join(str(value[net]) for net in nets), 2)
        small_entry = int("0" + "".join(str(value[net]) for net in kept), 2)
        assert table >> entry & 1 == small >> small_entry & 1


def test_dead_gates_are_left_out() -> None:
    circuit = replace(random_circuit(4, 50, outputs=1, seed=3), outputs=np.array([4], np.int32))
    assert [gate.net for gate in live_gates(circuit)] == [4]


def test_places_are_not_overwritten_while_needed(circuits: dict[str, Circuit], samples: Samples) -> None:
    for name, circuit in circuits.items():
        body = statements(circuit.outputs.tolist(), live_gates(circuit))
        inputs = list(range(circuit.inputs))[::-1]
        places = allocate(circuit.outputs.tolist(), inputs, steps_of(body))
        bits = circuit.bits(samples(circuit, 8))
        memory = np.zeros((places.size, 8), np.int64)
        memory[len(circuit.outputs) : len(circuit.outputs) + circuit.inputs] = bits.T[inputs]
        names = {net: f"w[{place}]" for net, place in places.place.items()}
        for statement in body:
            memory[places.place[statement.net]] = eval(statement.write(names), {"w": memory})
        for to, source in places.copies:
            memory[to] = memory[source]
        made = memory[: len(circuit.outputs)].T & 1
        np.testing.assert_array_equal(made, circuit.outputs_of(bits), err_msg=name)


def test_memory_is_used_again() -> None:
    circuit = layered_circuit(50, (300,) * 10, classes=10)
    body = statements(circuit.outputs.tolist(), live_gates(circuit))
    assert allocate(circuit.outputs.tolist(), list(range(50)), steps_of(body)).size < 700


@pytest.mark.parametrize("kind", ["bits", "bytes", "reals"])
def test_byte_levels_are_exact(kind: str) -> None:
    plain = np.arange(256, dtype=np.float32)
    values = {"bits": plain.clip(0, 1), "bytes": plain / np.float32(255), "reals": plain}[kind]
    near = np.concatenate([values, np.nextafter(values, np.float32(-9)), np.nextafter(values, np.float32(9))])
    threshold = np.concatenate([near, np.array([-np.inf, np.inf, -0.0, -3, 3], np.float32)])
    levels = byte_levels(threshold, kind)
    np.testing.assert_array_equal(np.arange(256)[:, None] > levels, values[:, None] > threshold)


@pytest.mark.parametrize(("name", "gather"), [("planes", False), ("features_first", False), ("odd1", True)])
def test_plans_hold_every_input_once(circuits: dict[str, Circuit], name: str, gather: bool) -> None:
    circuit = circuits[name]
    made = plan(circuit, np.arange(circuit.inputs))
    assert made.gather == gather
    assert sorted(made.inputs.tolist()) == list(range(circuit.inputs))
    covered = [at for run in made.runs for at in range(run.start, run.start + run.length)]
    assert covered == list(range(circuit.inputs))
    if not gather:
        features = [run.feature + k for run in made.runs for k in range(run.length)]
        assert circuit.encoder_feature[made.inputs].tolist() == features


def test_gaps_are_filled_where_that_makes_runs(circuits: dict[str, Circuit]) -> None:
    circuit = circuits["planes"]
    made = plan(circuit, np.arange(0, circuit.inputs, 2))
    assert not made.gather
    assert sorted(made.inputs.tolist()) == list(range(circuit.inputs))


@given(st.text())
def test_comments_are_harmless(text: str) -> None:
    made = comment(text)
    assert made.isascii()
    assert made.isprintable() or made == ""
    assert not set(made) & set("*/\\?`\n\"'#$")
    assert len(made) <= 80


def test_class_lines_are_one_line_each(circuits: dict[str, Circuit]) -> None:
    lines = class_lines(circuits["hostile"])
    assert len(lines) == 10
    assert lines[3] == "class 3: outputs 6 to before 8, bias 0, endmodule"


@pytest.mark.parametrize("name", ["net", "_", "Net9", "signals"])
def test_good_identifiers(name: str) -> None:
    assert check_identifier(name) == name


@pytest.mark.parametrize("name", ["", "9", "a.b", "for", "reg", "bool", "restrict", "uwire", "nét"])
def test_bad_identifiers(name: str) -> None:
    with pytest.raises(ValueError, match="name must"):
        check_identifier(name)
