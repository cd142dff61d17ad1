"""A network without an encoder takes bits, and so does everything that is made of it, in whatever dtype they come."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from gatelight.circuit import Circuit
from gatelight.discretization import discretize
from gatelight.engine import Engine
from gatelight.nn import GroupSum, LogicDense, Thermometer, rounded

DTYPES = ("bool", "uint8", "int8", "int64", ">u2", "float16", "float32", ">f8")


def model_of(*first: nn.Module) -> nn.Sequential:
    return nn.Sequential(*first, LogicDense(12, 40, seed=0), LogicDense(40, 30, seed=1), GroupSum(3, 2.0))


def answers(model: nn.Sequential, x: torch.Tensor) -> Any:
    with rounded(model), torch.no_grad():
        return (model(x) * 2.0).round().to(torch.int32).numpy()


@pytest.mark.parametrize("level", [0, 1])
def test_bits_in_every_dtype(
    level: int, simd_paths: Callable[[], list[str]], compile_c: Callable[..., Any], tmp_path: Path
) -> None:
    model = model_of()
    circuit = discretize(model)
    circuit = circuit.simplify() if level else circuit
    circuit.save(tmp_path / "net.gl")
    circuit = Circuit.load(tmp_path / "net.gl")
    assert circuit.feature_kind == "bits"
    x = np.random.default_rng(0).integers(0, 2, (200, 12))
    right = answers(model, torch.from_numpy(x.astype(np.float32)))
    runs = [circuit.scores, *(Engine(circuit, simd=simd).scores for simd in simd_paths())]
    for dtype in DTYPES:
        wrong = x.astype(np.uint8 if dtype == "bool" else dtype)
        wrong[3, 5] = 7
        for scores in runs:
            np.testing.assert_array_equal(scores(x.astype(dtype)), right)
            with pytest.raises(ValueError, match=r"features must be bits, 0 or 1, got 7(\.0)? in sample 3, feature 5"):
                scores(wrong)
    run_c = compile_c(circuit, tmp_path)
    for dtype in ("uint8", "float32"):
        np.testing.assert_array_equal(run_c(x.astype(dtype))[:, :-1], right)


def test_an_encoder_takes_bytes() -> None:
    circuit = discretize(model_of(Thermometer.even(2)), input_shape=(6,))
    assert circuit.feature_kind == "bytes"
    assert circuit.simplify().feature_kind == "bytes"
