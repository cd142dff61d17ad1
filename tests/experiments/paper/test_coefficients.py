import math
from collections.abc import Callable
from statistics import NormalDist

import pytest

from gatelight.experiments.framework.experiment import HOLDS, IN_PART, Results
from gatelight.experiments.paper.coefficients import BINS, EXPERIMENT, SHAPES, Coefficients, share_between

Smoke = Callable[[str], Results]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_drawn_coefficients_have_the_exact_distribution(smoke: Smoke, shape: tuple[str, float, float]) -> None:
    cell = Coefficients(*shape, seed=0)
    result = smoke("coefficients").one(Coefficients, lambda c: c == cell)
    for b, share in enumerate(result["histogram"]):
        assert share == pytest.approx(share_between(cell, b / BINS, (b + 1) / BINS), abs=0.006)
    assert result["above"] == pytest.approx(share_between(cell, 0.9, 1.0), abs=0.006)
    assert sum(result["histogram"]) == pytest.approx(1.0, abs=1e-3)


def test_means_are_those_of_the_formulas(smoke: Smoke) -> None:
    for cell, result in smoke("coefficients").all(Coefficients, lambda c: c.estimator == "sin"):
        assert result["mean"] == pytest.approx(
            0.5 + 0.5 * math.sin(cell.mu) * math.exp(-(cell.sigma**2) / 2), abs=0.003
        )
    tight = smoke("coefficients").one(Coefficients, lambda c: c.estimator == "sigmoid" and c.sigma == 0.5)
    assert tight["above"] == pytest.approx(
        NormalDist(3.0, 0.5).cdf(math.inf) - NormalDist(3.0, 0.5).cdf(math.log(9)), abs=0.005
    )


def test_exact_shares_add_up() -> None:
    for shape in SHAPES:
        cell = Coefficients(*shape, seed=0)
        assert sum(share_between(cell, b / 10, (b + 1) / 10) for b in range(10)) == pytest.approx(1.0, abs=1e-9)


def test_verdicts(smoke: Smoke) -> None:
    results = smoke("coefficients")
    assert [claim.judged(results).verdict for claim in EXPERIMENT.claims] == [HOLDS, IN_PART, HOLDS, HOLDS]
