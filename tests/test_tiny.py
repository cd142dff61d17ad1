"""The whole way in a few seconds: train, round, compile, prove, run."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

import gatelight as gl


def test_from_data_to_a_circuit_that_runs(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((400, 6)).astype(np.float32)
    y = (x[:, 0] > 0.5).astype(np.int64) + (x[:, 1] > 0.5)
    net = nn.Sequential(
        gl.nn.Thermometer.even(1),
        gl.nn.LogicDense(6, 60, seed=0),
        gl.nn.LogicDense(60, 30, seed=1),
        gl.nn.GroupSum(3, temperature=3.0),
    )
    fit = gl.fit(net, x, y, steps=60, lr=0.1, eval_every=20)
    assert fit.accuracy > 0.9
    circuit, report = gl.compile(fit.model)
    assert report.proof is not None
    assert report.proof.proved, report
    with gl.rounded(net):
        rounded = net(torch.from_numpy(x)).argmax(1).numpy()
    circuit.save(tmp_path / "tiny.gl")
    assert (gl.Circuit.load(tmp_path / "tiny.gl").predict(x) == rounded).all()
    assert "module" in gl.export.verilog(circuit)
