from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatelight.circuit import evaluate
from gatelight.circuit.passes import map_to_arity
from gatelight.circuit.random import layered_circuit, random_circuit


@pytest.mark.parametrize("k", [2, 3, 4, 6])
@given(data=st.data())
def test_outputs_stay_and_gates_never_grow(k: int, data: st.DataObject, circuits: Any, every_input: Any) -> None:
    circuit = data.draw(circuits(max_arity=k))
    mapped = map_to_arity(circuit, k)
    bits = every_input(circuit.inputs)
    assert np.array_equal(evaluate.outputs(mapped, bits), evaluate.outputs(circuit, bits))
    assert mapped.gates <= circuit.gates
    assert mapped.arity.max(initial=0) <= k


def test_a_tree_becomes_one_gate() -> None:
    tree = layered_circuit(6, (1,), classes=1)
    fields = {name: getattr(tree, name) for name in type(tree).__dataclass_fields__}
    fields |= {
        "fanin": [[0, 1], [2, 3], [4, 5], [6, 7], [9, 8]], "arity": [2] * 5, "table": [6, 8, 14, 6, 7],
        "outputs": [10],
    }  # fmt: skip
    tree = type(tree)(**fields)
    assert [map_to_arity(tree, k).gates for k in (2, 3, 4, 6)] == [5, 3, 2, 1]
    bits = (np.arange(64)[:, None] >> np.arange(6) & 1).astype(np.uint8)
    assert np.array_equal(evaluate.outputs(map_to_arity(tree, 6), bits), evaluate.outputs(tree, bits))


def test_shared_gates_and_outputs_are_not_swallowed() -> None:
    circuit = layered_circuit(40, (60, 60, 60), seed=3).simplify()
    mapped = map_to_arity(circuit, 6)
    assert mapped.gates < circuit.gates
    bits = np.random.default_rng(0).integers(0, 2, (500, 40))
    assert np.array_equal(mapped.outputs_of(bits), circuit.outputs_of(bits))


def test_method_and_refusals() -> None:
    circuit = random_circuit(5, 20, arities=(2, 3))
    assert circuit.map_to_arity(4).equal(map_to_arity(circuit, 4))
    for k in (1, 7, True, "3"):
        with pytest.raises(ValueError, match="k must be a whole number from 2 to 6"):
            map_to_arity(circuit, k)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs gates of at most 2, got arity 3"):
        map_to_arity(circuit, 2)
