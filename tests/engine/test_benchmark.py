from __future__ import annotations

import pytest

from gatelight.circuit.random import layered_circuit
from gatelight.engine import bench


@pytest.mark.parametrize("kind", ["bits", "bytes", "reals"])
def test_bench_measures_and_tells(kind: str) -> None:
    circuit = layered_circuit(20, (60, 40), classes=4, feature_kind=kind)
    result = bench(circuit, batch=70, seconds=0.01, threads=2, code=False)
    assert (result.gates, result.depth, result.outputs, result.batch, result.threads) == (100, 2, 40, 70, 2)
    assert result.samples_per_second > 0
    assert result.seconds_for_one > 0
    lines = str(result).splitlines()
    assert lines[0] == "circuit      100 gates in 2 levels, 40 bits summed"
    assert ", interpreted, prepared in " in lines[1]
    assert lines[2].endswith(" M samples/s, uint8 features to labels, 2 thread(s)")
    assert lines[3].startswith("one sample   ")


@pytest.mark.parametrize("wrong", [{"batch": 0}, {"seconds": 0.0}, {"threads": 0}])
def test_bench_refuses(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        bench(layered_circuit(4, (4,), classes=2), **wrong)  # type: ignore[arg-type]
