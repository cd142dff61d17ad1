from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from gatelight.circuit import Circuit, Encoder
from gatelight.circuit import evaluate as evaluators
from gatelight.circuit.describe import kinds
from gatelight.circuit.random import random_circuit


def small(**changes: Any) -> Circuit:
    """AND and XOR of two bits, then a three-input majority of all; three outputs in two classes."""
    fields: dict[str, Any] = {
        "inputs": 2,
        "fanin": [[0, 1, -1], [1, 0, -1], [0, 2, 3]],
        "arity": [2, 2, 3],
        "table": [0b1000, 0b0110, 0b11101000],
        "outputs": [2, 4, 1],
        "group_start": [0, 2, 3],
        "bias": [0, 1],
        "temperature": 2.0,
        "features": 2,
        "encoder_feature": [0, 1],
        "encoder_threshold": [0.5, 0.25],
    }
    return Circuit(**(fields | changes))


def test_counts() -> None:
    circuit = small()
    assert (circuit.gates, circuit.classes, circuit.depth) == (3, 2, 2)
    assert repr(circuit) == "Circuit(inputs=2, gates=3, depth=2, outputs=3, classes=2)"
    assert circuit.levels.tolist() == [0, 0, 1, 1, 2]
    assert circuit.fanout.tolist() == [3, 3, 2, 1, 1]


def test_depth_counts_only_what_outputs_see() -> None:
    assert small(outputs=[2, 2, 1]).depth == 1
    assert small(outputs=[0, 1, 1]).depth == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fanin": [[0, 2, -1], [1, 0, -1], [0, 2, 3]]}, r"fanin\[0, 1\] must be a net from 0 to 1, got 2"),
        ({"fanin": [[0, -1, -1], [1, 0, -1], [0, 2, 3]]}, r"fanin\[0, 1\] must be a net"),
        ({"fanin": [[0, 1, 0], [1, 0, -1], [0, 2, 3]]}, r"fanin\[0, 2\] must be -1"),
        ({"fanin": [[0, 1, -1], [1, 0, -1], [0, 2, 4]]}, r"fanin\[2, 2\] must be a net from 0 to 3, got 4"),
        ({"fanin": [[0.0, 1.0, -1.0]] * 3}, "whole numbers"),
        ({"fanin": [[0, 2**40, -1], [1, 0, -1], [0, 2, 3]]}, "must fit in int32"),
        ({"fanin": [0, 1, 2]}, "2 axes"),
        ({"fanin": np.full((3, 7), -1)}, "at most 6 columns"),
        ({"arity": [2, 2]}, "one row for each gate"),
        ({"arity": [2, 2, 4]}, r"arity\[2\] must be at most the 3 columns"),
        ({"arity": [2, 2, -3]}, "must fit in uint8"),
        ({"table": [0b1000, 0b10110, 0]}, r"table\[1\] must have 4 bits"),
        ({"outputs": [2, 5, 1]}, r"outputs\[1\] must be a net from 0 to 4, got 5"),
        ({"outputs": [-1, 2, 1]}, r"outputs\[0\]"),
        ({"group_start": [0, 2, 4]}, "group_start must rise"),
        ({"group_start": [1, 2, 3]}, "group_start must rise"),
        ({"group_start": [0, 4, 3]}, "group_start must rise"),
        ({"group_start": [0]}, "group_start must rise"),
        ({"bias": [0]}, "bias must have one entry"),
        ({"bias": [2**31 - 1, 0]}, r"bias \+ group size"),
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": float("inf")}, "temperature"),
        ({"temperature": "1"}, "temperature"),
        ({"inputs": 3}, "inputs must be the encoder's 2 bits"),
        ({"inputs": True}, "inputs must be"),
        ({"features": 1}, r"encoder_feature\[1\] must be from 0 to 0, got 1"),
        ({"features": -1}, "features must be a whole number"),
        ({"encoder_feature": [0, -1]}, r"encoder_feature\[1\]"),
        ({"encoder_feature": [0]}, "one entry for each input bit"),
        ({"encoder_threshold": [0.5, float("nan")]}, "must not hold NaN, got one at index 1"),
        ({"encoder_threshold": ["a", "b"]}, "must hold numbers"),
        ({"class_names": ("a",)}, "class_names must be empty or 2 names"),
        ({"class_names": ("a", 1)}, "printable strings"),
        ({"class_names": ("a", "b\n")}, "printable strings"),
        ({"feature_shape": (3,)}, "must multiply to 2"),
        ({"feature_shape": (-1, -2)}, "whole numbers >= 0"),
        ({"feature_kind": "byte"}, "feature_kind must be one of bits, bytes, reals, got 'byte'"),
        ({"feature_kind": None}, "feature_kind must be one of"),
    ],
)
def test_construction_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**changes)


def test_arrays_are_copies_and_read_only() -> None:
    table = np.array([0b1000, 0b0110, 0b11101000], np.uint64)
    circuit = small(table=table)
    table[0] = 0
    assert circuit.table[0] == 0b1000
    with pytest.raises(ValueError, match="read-only"):
        circuit.fanin[0, 0] = 1
    with pytest.raises(FrozenInstanceError):
        circuit.inputs = 3  # type: ignore[misc]


def test_dtypes_are_exact() -> None:
    circuit = small()
    wanted = {
        "fanin": np.int32, "arity": np.uint8, "table": np.uint64, "outputs": np.int32, "group_start": np.int32,
        "bias": np.int32, "encoder_feature": np.int32, "encoder_threshold": np.float32,
    }  # fmt: skip
    for name, dtype in wanted.items():
        array = getattr(circuit, name)
        assert array.dtype == dtype
        assert array.flags.c_contiguous


def test_equal_ignores_empty_columns_only() -> None:
    circuit = small()
    assert circuit.equal(small(fanin=[[0, 1, -1, -1], [1, 0, -1, -1], [0, 2, 3, -1]]))
    for changes in (
        {"table": [8, 6, 1]},
        {"bias": [0, 0]},
        {"temperature": 3.0},
        {"class_names": ("a", "b")},
        {"feature_kind": "bits"},
    ):
        assert not circuit.equal(small(**changes))
    assert not circuit.equal(random_circuit(2, 3))


def test_replace_validates_again() -> None:
    with pytest.raises(ValueError, match="outputs"):
        replace(small(), outputs=np.array([9, 9, 9]))


def test_summary_counts_kinds() -> None:
    circuit = small()
    assert dict(kinds(circuit)) == {"and": 1, "xor": 1, "lut3": 1}
    text = circuit.summary()
    assert "features  2 bytes\n" in text
    assert "features  2 reals (1, 2)\n" in small(feature_shape=(1, 2), feature_kind="reals").summary()
    for part in ("2 features -> 2 bits", "3 in 2 levels", "lut3 1", "by level  0 2 1", "most 2", "bias 0 1"):
        assert part in text
    assert "none" in random_circuit(3, 0).summary()


def test_constants_have_kinds_and_level_zero() -> None:
    circuit = small(fanin=np.full((3, 1), -1), arity=[0, 0, 0], table=[0, 1, 1])
    assert dict(kinds(circuit)) == {"true": 2, "false": 1}
    assert circuit.depth == 0


def test_levels_of_a_chain_too_deep_to_repeat() -> None:
    chain = np.arange(300)[:, None]
    levels = evaluators.levels(1, chain.astype(np.int32))
    assert levels.tolist() == list(range(301))


@pytest.mark.parametrize("block", [1, 7, 1000])
@pytest.mark.parametrize("rounds", [1, 3, 64])
def test_levels_in_blocks(block: int, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = random_circuit(4, 120, arities=(0, 1, 2, 5), reach=9, seed=block)
    wanted = [0] * 4
    for row, arity in zip(circuit.fanin.tolist(), circuit.arity.tolist(), strict=True):
        wanted.append(1 + max((wanted[net] for net in row[:arity]), default=-1))
    monkeypatch.setattr(evaluators, "_LEVEL_BLOCK", block)
    monkeypatch.setattr(evaluators, "_LEVEL_ROUNDS", rounds)
    assert evaluators.levels(4, circuit.fanin).tolist() == wanted


def test_encoder_property_matches_the_fields() -> None:
    circuit = small()
    assert isinstance(circuit.encoder, Encoder)
    assert circuit.encoder.feature is circuit.encoder_feature


def test_lists_of_very_large_tables_stay_exact() -> None:
    circuit = small(fanin=[[0, 1, 0, 1, 0, 1]] * 3, arity=[6, 6, 6], table=[2**63 + 1, 1, 2**64 - 1])
    assert circuit.table.tolist() == [2**63 + 1, 1, 2**64 - 1]
    for wrong in ([2**64, 0, 0], [2**63, 0.5, 0], [2**63, -1, 0]):
        with pytest.raises(ValueError, match="table must hold whole numbers"):
            small(table=wrong)
    with pytest.raises(ValueError, match="must fit in int32"):
        small(bias=[2**63, 0])
