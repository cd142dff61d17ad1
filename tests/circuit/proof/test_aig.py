from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatelight.circuit import evaluate
from gatelight.circuit.proof.aig import Aig, Builder, cone, from_aiger, to_aig, to_aiger
from gatelight.circuit.random import layered_circuit


def run(aig: Aig, bits: np.ndarray) -> np.ndarray:
    """The graph's outputs, gate by gate."""
    values = np.zeros((1 + aig.inputs + len(aig.ands), len(bits)), np.uint8)
    values[1 : 1 + aig.inputs] = bits.T
    for gate, (a, b) in enumerate(aig.ands.tolist(), 1 + aig.inputs):
        values[gate] = (values[a >> 1] ^ (a & 1)) & (values[b >> 1] ^ (b & 1))
    return np.asarray((values[aig.outputs >> 1] ^ (aig.outputs & 1)[:, None].astype(np.uint8)).T)


@given(data=st.data())
def test_graph_equals_circuit_and_survives_aiger(data: st.DataObject, circuits: Any, every_input: Any) -> None:
    circuit = data.draw(circuits())
    aig = to_aig(circuit)
    bits = every_input(circuit.inputs)
    assert np.array_equal(run(aig, bits), evaluate.outputs(circuit, bits))
    again = from_aiger(to_aiger(aig))
    assert again.inputs == aig.inputs
    assert np.array_equal(again.ands, aig.ands)
    assert np.array_equal(again.outputs, aig.outputs)


@given(data=st.data())
def test_graph_is_well_formed(data: st.DataObject, circuits: Any) -> None:
    aig = to_aig(data.draw(circuits()))
    left = 2 * (1 + aig.inputs + np.arange(len(aig.ands)))
    assert (left > aig.ands[:, 0]).all()
    assert (aig.ands[:, 0] > aig.ands[:, 1]).all()
    assert (aig.ands[:, 1] > 1).all()  # no constant is left among the operands
    assert len(np.unique(aig.ands, axis=0)) == len(aig.ands)


@pytest.mark.parametrize(("table", "ands"), [(0b1000, 1), (0b1110, 1), (0b0110, 3), (0b1011, 1), (0b1010, 0), (0, 0)])
def test_two_input_functions_are_small(table: int, ands: int) -> None:
    builder = Builder(2)
    a, b = builder.input_literals()[:, None]
    builder.lookup(np.array([table], np.uint64), [a, b])
    assert len(builder.ands) == ands


def test_equal_gates_are_made_once_also_while_the_table_grows() -> None:
    circuit = layered_circuit(50, (4000, 4000), seed=1)
    builder = Builder(50)
    first = builder.add(circuit)
    count = len(builder.ands)
    assert count > 2048
    assert np.array_equal(builder.add(circuit), first)
    assert len(builder.ands) == count
    bits = np.random.default_rng(0).integers(0, 2, (64, 50)).astype(np.uint8)
    assert np.array_equal(run(builder.finish(first[circuit.outputs]), bits), circuit.outputs_of(bits))


def test_known_file() -> None:
    aig = Aig(2, np.array([[4, 2]]), np.array([7, 2]))  # not (b and a), a
    data = to_aiger(aig, ["a", "b"], ["nand", "wire"], "hello")
    assert data == b"aig 3 2 0 2 1\n7\n2\n\x02\x02i0 a\ni1 b\no0 nand\no1 wire\nc\nhello\n"
    assert np.array_equal(from_aiger(data).ands, [[4, 2]])


def test_long_numbers_round_trip() -> None:
    inputs = 1 << 21
    aig = Aig(inputs, np.array([[2 * inputs, 2], [300, 3]]), np.array([2 * inputs + 4]))
    assert np.array_equal(from_aiger(to_aiger(aig)).ands, aig.ands)


def test_cone_keeps_what_is_needed() -> None:
    aig = Aig(3, np.array([[4, 2], [6, 4], [10, 2]]), np.array([13]))
    small = cone(aig)
    assert small.ands.tolist() == [[6, 4], [8, 2]]
    assert small.outputs.tolist() == [11]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"aag 1 1 0 1 0\n2\n",
        b"aig 3 2 0 1 1",
        b"aig 4 2 1 1 1\n6\n\x02\x02",
        b"aig 9 2 0 1 1\n6\n\x02\x02",
        b"aig 3 2 0 1 1\n9\n\x02\x02",
        b"aig 3 2 0 1 1\n-6\n\x02\x02",
        b"aig 3 2 0 1 1\n6\n\x02",
        b"aig 3 2 0 1 1\n6\n\x00\x02",
        b"aig 3 2 0 1 1\n6\n\x02\x7f",
        b"aig 3 2 0 1 1\n6\n\x82\x80\x80\x80\x80\x80\x00\x02",
        b"aig 99999999999 2 0 1 99999999997\n6\n\x02\x02",
    ],
)
def test_malformed_files_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="AIGER"):
        from_aiger(data)
