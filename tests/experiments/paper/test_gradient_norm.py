from collections.abc import Callable

from gatelight.experiments.framework.experiment import Results
from gatelight.experiments.framework.gradients import LAYERS, GradientNorms
from gatelight.experiments.paper.gradient_norm import MULTIPLE, SINGLE

Smoke = Callable[[str], Results]


def _first(results: Results, init: str, parametrization: str = "iwp", estimator: str = "sin") -> float:
    norms = results.one(
        GradientNorms,
        lambda c: (
            (c.config.model.gates.init, c.config.model.gates.parametrization, c.config.model.gates.estimator)
            == (init, parametrization, estimator)
        ),
    )["norms"]
    assert {len(row) for row in norms} == {LAYERS}
    return float(norms[0][0])


def test_gaussian_gradients_vanish_as_in_the_paper(smoke: Smoke) -> None:
    results = smoke("gradient-norm")
    assert 0 < _first(results, "gaussian", "op") < 1e-25
    assert 1e-20 < _first(results, "gaussian") < 1e-12


def test_residual_gradients_do_not(smoke: Smoke) -> None:
    results = smoke("gradient-norm")
    op, iwp = _first(results, "residual", "op"), _first(results, "residual")
    assert iwp > 5 * op > 1e-8


def test_of_single_functions_residual_alone_is_stable(smoke: Smoke) -> None:
    results = smoke("gradient-norm")
    for init in SINGLE:
        assert _first(results, init) < 1e-25
    for init in MULTIPLE:
        assert 1e-12 < _first(results, init) < _first(results, "residual")


def test_sigmoid_starts_below_sin(smoke: Smoke) -> None:
    results = smoke("gradient-norm")
    assert 0.01 < _first(results, "residual", estimator="sigmoid") / _first(results, "residual") < 1
