from collections.abc import Callable

import pytest

from gatelight.experiments.framework.experiment import HOLDS, Results
from gatelight.experiments.paper.gradient_concentration import BINS, EXPERIMENT, Derivatives, remaining

Smoke = Callable[[str], Results]


@pytest.fixture
def results(smoke: Smoke) -> Results:
    return smoke("gradient-concentration")


def _get(results: Results, parametrization: str, strength: float) -> dict[str, float]:
    return results.one(
        Derivatives,
        lambda c: (c.parametrization, c.init, c.strength) == (parametrization, "gaussian", strength),
    )


def test_ten_thousand_op_gates_gather_around_zero(results: Results) -> None:
    cells = results.all(Derivatives, lambda c: c.init == "gaussian")
    assert {cell.samples for cell, _ in cells} == {10_000}
    narrow, wide = _get(results, "op", 1.0), _get(results, "op", 4.0)
    assert abs(narrow["mean"]) < 0.01
    assert 0.5 < narrow["near_zero"] < 0.62
    assert 0.25 < wide["near_zero"] < 0.36
    assert narrow["deviation"] < 0.15 < wide["deviation"]
    assert _get(results, "iwp", 1.0)["mean_magnitude"] > 2 * narrow["mean_magnitude"]


def test_histograms_are_symmetric_with_their_peak_at_zero(results: Results) -> None:
    for _, result in results.all(Derivatives, lambda c: c.init == "gaussian" and c.parametrization == "op"):
        histogram = result["histogram"]
        assert sum(histogram) == pytest.approx(1.0, abs=1e-3)
        assert max(range(BINS), key=lambda b: histogram[b]) == BINS // 2
        assert abs(sum(histogram[: BINS // 2]) - sum(histogram[BINS // 2 + 1 :])) < 0.04


@pytest.mark.parametrize(("z", "share"), [(3.0, 0.5440), (5.0, 0.9021)])
def test_the_closed_form(results: Results, z: float, share: float) -> None:
    measured = results.one(Derivatives, lambda c: c.init == "residual" and c.strength == z)
    assert remaining(z) == pytest.approx(share, abs=1e-4)
    assert measured["mean"] == pytest.approx(remaining(z), abs=1e-6)
    assert measured["deviation"] < 1e-6


def test_all_claims_hold(results: Results) -> None:
    assert [claim.judged(results).verdict for claim in EXPERIMENT.claims] == [HOLDS] * 3
