"""Circuits made by Hypothesis, and the rule for tests that need a prover."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from gatelight.circuit import Circuit
from gatelight.circuit.features import KINDS
from gatelight.circuit.proof.prover import provers

CircuitStrategy: TypeAlias = Callable[..., st.SearchStrategy[Circuit]]


@st.composite
def _circuits(
    draw: st.DrawFn, max_inputs: int = 6, max_gates: int = 14, max_arity: int = 6, max_outputs: int = 8
) -> Circuit:
    """Any small circuit: all arities, shared and dead gates, constants, repeated fanins, inputs put out."""
    inputs = draw(st.integers(0, max_inputs))
    gates = draw(st.integers(0, max_gates))
    # A short reach back makes deep circuits, a long one flat ones.
    reach = draw(st.sampled_from([2, 5, 100]))
    fanin, arity, table = [], [], []
    for net in range(inputs, inputs + gates):
        count = draw(st.integers(0, max_arity)) if net else 0
        row = [draw(st.integers(max(0, net - reach), net - 1)) for _ in range(count)]
        arity.append(count)
        fanin.append(row + [-1] * (max_arity - count))
        size = 1 << count
        plain = st.sampled_from([0, (1 << size) - 1, 1, 1 << (size - 1)])
        table.append(draw(st.one_of(plain, st.integers(0, (1 << size) - 1))))
    nets = inputs + gates
    outputs = draw(st.lists(st.integers(0, nets - 1), max_size=max_outputs)) if nets else []
    classes = draw(st.integers(1, 3))
    cuts = sorted(draw(st.lists(st.integers(0, len(outputs)), min_size=classes - 1, max_size=classes - 1)))
    return Circuit(
        inputs=inputs,
        fanin=np.array(fanin, np.int32).reshape(gates, max_arity),
        arity=np.array(arity, np.uint8),
        table=np.array(table, np.uint64),
        outputs=np.array(outputs, np.int32),
        group_start=np.array([0, *cuts, len(outputs)], np.int32),
        bias=np.array(draw(st.lists(st.integers(-3, 3), min_size=classes, max_size=classes)), np.int32),
        temperature=draw(st.sampled_from([0.5, 1.0, 10.0])),
        features=inputs,
        encoder_feature=np.arange(inputs, dtype=np.int32),
        encoder_threshold=np.full(inputs, 0.5, np.float32),
        feature_kind=draw(st.sampled_from(KINDS)),
    )


@pytest.fixture(scope="session")
def circuits() -> CircuitStrategy:
    """The strategy that makes circuits, to draw from."""
    return _circuits


@pytest.fixture(scope="session")
def every_input() -> Callable[[int], NDArray[np.uint8]]:
    """All values of some input bits, uint8 [2**inputs, inputs]."""
    return lambda inputs: (np.arange(1 << inputs)[:, None] >> np.arange(inputs) & 1).astype(np.uint8)


@pytest.fixture(scope="session")
def installed_provers() -> tuple[str, ...]:
    """The provers to test with; none is a reason to skip, but on CI a failure."""
    found = provers()
    if not found:
        reason = "neither ABC nor aigverse is installed"
        if os.environ.get("CI") == "true":
            pytest.fail(reason + ", and CI must have one")
        pytest.skip(reason)
    return found
