"""The hardware of a circuit, run without any language."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from gatelight.circuit import Circuit, evaluate
from gatelight.export import rtl

Samples = Callable[[Circuit, int], NDArray[np.uint8]]


def run(design: rtl.Design, port: int) -> tuple[list[int], int]:
    """Scores and label for one value of the input port, as if registers were wires."""
    values = {"bits": port, "features": port}
    stages = {signal.name: rtl.stages(signal, delay) for signal, delay in design.delays.items()}

    def of(signal: rtl.Signal) -> int:
        return values[signal.name] if signal.name else signal.value

    for signal, operation, operands in design.wires:
        given = [of(operand) for operand in operands]
        match operation:
            case rtl.Logic(text):
                value = int(eval(text.format(*given))) & 1
            case rtl.Slice(low):
                value = given[0] >> low & ((1 << signal.width) - 1)
            case rtl.Above(level):
                value = int(given[0] > level)
            case rtl.Number(number):
                value = number
            case rtl.Sum():
                value = sum(given)
            case rtl.Biased(bias):
                value = given[0] + bias
            case rtl.Greater():
                value = int(given[1] > given[0])
            case rtl.Choose():
                value = given[2] if given[0] else given[1]
        low = -(1 << signal.width - 1) if signal.signed else 0
        assert low <= value < low + (1 << signal.width), signal
        values |= dict.fromkeys(stages.get(signal.name, [signal.name]), value)
    return [of(score) for score in design.scores], of(design.label)


def number(values: NDArray[np.uint8], width: int) -> int:
    return sum(int(value) << width * index for index, value in enumerate(values.tolist()))


@pytest.mark.parametrize("encoder", [False, True])
def test_designs_compute_scores_and_labels(circuits: dict[str, Circuit], samples: Samples, encoder: bool) -> None:
    for name, circuit in circuits.items():
        x = samples(circuit, 4)
        design = rtl.build(circuit, pipeline=2, encoder=encoder)
        given = x if encoder else circuit.bits(x)
        for row, scores in zip(given, evaluate.scores(circuit, x).tolist(), strict=True):
            assert run(design, number(row, 8 if encoder else 1)) == (scores, scores.index(max(scores))), name


@pytest.mark.parametrize("pipeline", [0, 1, 2, 5])
def test_all_paths_cross_as_many_registers(circuits: dict[str, Circuit], pipeline: int) -> None:
    for name, circuit in circuits.items():
        design = rtl.build(circuit, pipeline, encoder=True)
        stage = {"bits": 0, "features": 0}
        names = {signal.name: rtl.stages(signal, delay) for signal, delay in design.delays.items()}
        for signal, _, operands in design.wires:
            arrivals = {stage[operand.name] for operand in operands if operand.level is not None}
            assert len(arrivals) <= 1, name
            first = arrivals.pop() if arrivals else 0
            stage |= {made: first + delay for delay, made in enumerate(names.get(signal.name, [signal.name]))}
        for last in (*design.scores, design.label):
            if last.level is not None:
                assert stage[last.name] == design.latency, name
        assert (design.latency == 0) == (pipeline == 0)


@pytest.mark.parametrize("pipeline", [-1, 1.5, True, "2"])
def test_odd_pipelines_are_refused(circuits: dict[str, Circuit], pipeline: int) -> None:
    with pytest.raises(ValueError, match="pipeline must be a whole number of levels"):
        rtl.build(circuits["odd1"], pipeline)
