from __future__ import annotations

import numpy as np
import pytest

from gatelight.circuit.random import layered_circuit, random_circuit


def test_same_seed_same_circuit() -> None:
    assert random_circuit(5, 30, seed=4).equal(random_circuit(5, 30, seed=4))
    assert not random_circuit(5, 30, seed=4).equal(random_circuit(5, 30, seed=5))


def test_kinds_of_features() -> None:
    for kind in ("bits", "bytes", "reals"):
        assert random_circuit(5, 3, feature_kind=kind).feature_kind == kind
        assert layered_circuit(5, (3,), classes=1, feature_kind=kind).feature_kind == kind
    assert random_circuit(5, 3).feature_kind == layered_circuit(5, (3,), classes=1).feature_kind == "bytes"


def test_arities_reach_and_outputs() -> None:
    circuit = random_circuit(3, 200, arities=(1, 4), reach=2, outputs=7, outputs_anywhere=False)
    assert set(circuit.arity.tolist()) == {1, 4}
    assert circuit.depth > 60
    assert circuit.outputs.tolist() == list(range(196, 203))


def test_extremes() -> None:
    assert random_circuit(0, 3, outputs=2).arity[0] == 0
    assert random_circuit(2, 0).gates == 0
    assert random_circuit(0, 0, outputs=0).classes == 2
    with pytest.raises(ValueError, match="cannot have outputs"):
        random_circuit(0, 0)


def test_layers_read_the_layer_before() -> None:
    circuit = layered_circuit(5, (8, 6, 4), arity=3, classes=2)
    assert circuit.levels.tolist() == [0] * 5 + [1] * 8 + [2] * 6 + [3] * 4
    assert np.array_equal(circuit.outputs, np.arange(19, 23))
