from collections.abc import Callable
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gatelight.experiments.framework.experiment import HOLDS, Results
from gatelight.experiments.paper.rounding import EXPERIMENT, NORMS, Example, Roundings, distances
from gatelight.parametrize import ESTIMATORS, IWP

Smoke = Callable[[str], Results]


@given(st.lists(st.floats(-4, 4), min_size=4, max_size=4), st.sampled_from(sorted(ESTIMATORS)))
def test_no_function_is_nearer_than_the_rounded_one(theta: list[float], estimator: str) -> None:
    iwp = IWP(2, estimator)
    parameters = torch.tensor([theta], dtype=torch.float64)
    table, rounded = iwp.table(parameters), iwp.rounded(parameters)
    taken = distances(table - rounded)[:, 0]
    for function in product((0.0, 1.0), repeat=4):
        assert (taken <= distances(table - torch.tensor([function], dtype=torch.float64))[:, 0] + 1e-9).all()


def test_random_gates(smoke: Smoke) -> None:
    results = smoke("rounding")
    for cell, result in results.all(Roundings):
        if cell.parametrization == "iwp":
            assert result["not_nearest"] == [0.0] * len(NORMS)
        else:
            assert min(result["not_nearest"]) > 0
            assert min(result["excess"]) > 0
    half = results.one(Roundings, lambda c: c.parametrization == "op" and c.deviation == 1.0)
    assert 0.35 < half["not_nearest"][NORMS.index(2.0)] < 0.55


def test_the_papers_example(smoke: Smoke) -> None:
    result = smoke("rounding").one(Example)
    assert result["table"] == pytest.approx([0.0, 0.6, 0.7, 1.0])
    assert result["rounded"] == {"op": "a", "iwp": "or"}
    one_norm = NORMS.index(1.0)
    assert result["distance"]["a"][one_norm] == pytest.approx(0.9)
    assert result["distance"]["or"][one_norm] == pytest.approx(0.7)
    assert all(near < far for near, far in zip(result["distance"]["or"], result["distance"]["a"], strict=True))


def test_all_claims_hold(smoke: Smoke) -> None:
    results = smoke("rounding")
    assert [claim.judged(results).verdict for claim in EXPERIMENT.claims] == [HOLDS] * 3
