"""The order in which generated code makes the input bits, so that it reads memory in runs.

>>> from gatelight.circuit.random import layered_circuit
>>> plan(layered_circuit(40, (8,)), np.arange(40)).runs
[Run(feature=0, start=0, length=40)]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatelight.circuit import Circuit

#: The longest run; generated code keeps a byte for each bit of a run on its stack.
RUN_LENGTH = 256
#: Runs shorter than this on average are not worth the loop around them.
_MIN_MEAN_RUN = 16


class Run(NamedTuple):
    """Consecutive bits of the plan that read consecutive features."""

    feature: int
    start: int
    length: int


class Plan(NamedTuple):
    """The order in which generated code makes the input bits.

    Attributes:
        inputs: The input bits in that order.
        runs: Pieces of it. If ``gather``, bit i of any run reads feature ``encoder_feature[inputs[i]]``.
        gather: Whether runs would be too short, so that features are looked up one by one.
    """

    inputs: NDArray[np.int64]
    runs: list[Run]
    gather: bool


def plan(circuit: Circuit, needed: NDArray[np.int64]) -> Plan:
    """Order the needed input bits so that bits of neighboring features are neighbors.

    With several thresholds for each feature, the first of every feature come first, then the second, and so on.
    If bits that are not needed leave too many gaps, all bits are made: that is still faster than a look-up.
    """
    order = _ordered(circuit, needed)
    if order.gather:
        whole = _ordered(circuit, np.arange(circuit.inputs, dtype=np.int64))
        return order if whole.gather else whole
    return order


def _ordered(circuit: Circuit, needed: NDArray[np.int64]) -> Plan:
    feature = circuit.encoder_feature[needed].astype(np.int64)
    by_feature = np.argsort(feature, kind="stable")
    ordered = feature[by_feature]
    occurrence = np.arange(len(ordered)) - np.searchsorted(ordered, ordered, side="left")
    inputs = needed[by_feature[np.lexsort((ordered, occurrence))]]
    feature = circuit.encoder_feature[inputs].astype(np.int64)
    breaks = np.flatnonzero(np.diff(feature) != 1) + 1
    gather = len(inputs) < _MIN_MEAN_RUN * (len(breaks) + 1)
    starts = [0] if gather else [0, *breaks.tolist()]
    runs = []
    for start, stop in zip(starts, [*starts[1:], len(inputs)], strict=True):
        for at in range(start, stop, RUN_LENGTH):
            first = 0 if gather else int(feature[at])
            runs.append(Run(first, at, min(RUN_LENGTH, stop - at)))
    return Plan(inputs, runs, gather)
