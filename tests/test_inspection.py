from __future__ import annotations

import json

import numpy as np
import torch

from gatelight import inspection
from gatelight.nn import GroupSum, LogicDense, LogicNetwork
from gatelight.training import metrics


def test_measures_are_those_of_metrics() -> None:
    layers = [LogicDense(8, 20, init="uniform", seed=0), LogicDense(20, 10, init="uniform", seed=1)]
    model = LogicNetwork(None, layers, GroupSum(2))
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 2, (30, 8), generator=generator).float()
    y = torch.randint(0, 2, (30,), generator=generator)
    found = inspection.inspect(model, x, y)
    assert not model.training
    assert found.gates == [20, 10]
    assert found.gradient_norms == metrics.gradient_norms(model, x, y)
    assert found.function_shares == metrics.function_shares(model)
    assert found.table_distances == metrics.table_distances(model)
    np.testing.assert_allclose(found.activation_histograms.sum(1), 1, rtol=1e-6)
    assert all(0 <= share <= 1 for share in found.undecided)
    assert json.loads(json.dumps(found.as_dict())).keys() == {
        "gradient_norms",
        "activation_histograms",
        "function_shares",
        "table_distances",
    }
