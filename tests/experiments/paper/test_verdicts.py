"""Verdicts on made-up numbers: a judge must not call a claim held when they say otherwise."""

from collections.abc import Callable
from typing import Any

import pytest

from gatelight.experiments.framework.experiment import FAILS, HOLDS, IN_PART, Experiment, Results
from gatelight.experiments.framework.gradients import GradientNorms
from gatelight.experiments.framework.training import Training
from gatelight.experiments.paper import and_or, class_head, depth, gap, init_variance, narrow, regularizers, resolution
from gatelight.experiments.paper.gradient_norm import EXPERIMENT as GRADIENT_NORM
from gatelight.experiments.paper.training_cost import ESTIMATORS, Cost
from gatelight.experiments.paper.training_cost import EXPERIMENT as TRAINING_COST

Numbers = Callable[[Training], tuple[float, float]]


def results(experiment: Experiment, numbers: Numbers, train: Numbers | None = None) -> Results:
    """Soft and rounded test accuracy of every training of an experiment at scale ``cpu``, in percent."""
    made: list[tuple[Any, dict[str, Any]]] = []
    for cell in experiment.cells("cpu"):
        if isinstance(cell, Training):
            soft, hard = (value / 100 for value in numbers(cell))
            on_test = {"soft_accuracy": soft, "discrete_accuracy": hard}
            fit = (train or numbers)(cell)[0] / 100
            on_train = {"soft_accuracy": fit, "discrete_accuracy": fit}
            curve = {"step": [1, 2], "discrete_accuracy": [hard / 2, hard], "soft_accuracy": [soft / 2, soft]}
            made.append((cell, {"best": on_test, "last": on_test, "train": on_train, "curve": curve}))
    return Results(experiment.cells("cpu"), made)


def verdict_of(experiment: Experiment, words: str, numbers: Numbers, train: Numbers | None = None) -> str:
    (claim,) = [claim for claim in experiment.claims if words in claim.text]
    return claim.judged(results(experiment, numbers, train)).verdict


def by_parametrization(op: tuple[float, float], iwp: tuple[float, float]) -> Numbers:
    return lambda cell: op if cell.config.model.gates.parametrization == "op" else iwp


@pytest.mark.parametrize(
    ("op", "iwp", "expected"),
    [
        ((60, 58), (30, 29.5), FAILS),
        ((30, 28.5), (60, 59.9), FAILS),
        ((58, 40), (60, 59), HOLDS),
    ],
)
def test_what_the_difference_comes_from(op: tuple[float, float], iwp: tuple[float, float], expected: str) -> None:
    assert verdict_of(depth.CONVOLUTIONAL_EXPERIMENT, "mainly OP's", by_parametrization(op, iwp)) == expected


@pytest.mark.parametrize(
    ("op", "iwp", "expected"),
    [
        ((44, 42.5), (46, 44), FAILS),  # IWP loses more
        ((50, 40), (50, 45.6), IN_PART),  # less than half, but 4.4 points
        ((50, 40), (50, 49), HOLDS),
        ((50, 49.5), (50, 49.9), IN_PART),
    ],
)
@pytest.mark.parametrize("experiment", [depth.EXPERIMENT, narrow.EXPERIMENT, gap.EXPERIMENT])
def test_hardly_losing(
    experiment: Experiment, op: tuple[float, float], iwp: tuple[float, float], expected: str
) -> None:
    assert verdict_of(experiment, "IWP hardly", by_parametrization(op, iwp)) == expected


@pytest.mark.parametrize(
    ("residual", "and_or_", "gap_verdict", "slight"),
    [
        ((60, 46), (60, 20), IN_PART, FAILS),
        ((45, 44), (44, 40), HOLDS, HOLDS),
        ((45, 44), (10, 9), IN_PART, IN_PART),
    ],
)
def test_and_or(residual: tuple[float, float], and_or_: tuple[float, float], gap_verdict: str, slight: str) -> None:
    def numbers(cell: Training) -> tuple[float, float]:
        return and_or_ if cell.config.model.gates.init == "and-or" else residual

    assert verdict_of(and_or.EXPERIMENT, "clear rounding gap", numbers) == gap_verdict
    assert verdict_of(and_or.EXPERIMENT, "slightly more accurate", numbers) == slight


def test_equal_estimators_are_not_superior() -> None:
    def spread(cell: Training) -> tuple[float, float]:
        value = 42 + 2 * (cell.config.seed - 1) + (0.1 if cell.config.model.gates.estimator == "sin" else 0)
        return value, value

    assert verdict_of(init_variance.EXPERIMENT, "than sigmoid", spread) == FAILS

    def better(cell: Training) -> tuple[float, float]:
        return (45, 45) if cell.config.model.gates.estimator == "sin" else (42, 42)

    assert verdict_of(init_variance.EXPERIMENT, "than sigmoid", better) == HOLDS


def test_regularizers() -> None:
    def dropout(plain: float, *dropped: float) -> Numbers:
        table = dict(zip((0.0, *regularizers.DROPOUT), (plain, *dropped), strict=True))
        return lambda cell: (table[cell.config.model.dropout],) * 2

    assert verdict_of(regularizers.EXPERIMENT, "dropout degrades", dropout(30, 50, 49, 50)) == FAILS
    assert verdict_of(regularizers.EXPERIMENT, "dropout degrades", dropout(50, 49, 48, 47)) == HOLDS

    def connections(with_them: float) -> Numbers:
        return lambda cell: (with_them if cell.config.model.residual_fraction else 45.0,) * 2

    assert verdict_of(regularizers.EXPERIMENT, "a little accuracy", connections(10)) == FAILS
    assert verdict_of(regularizers.EXPERIMENT, "a little accuracy", connections(43)) == HOLDS
    assert verdict_of(regularizers.EXPERIMENT, "a little accuracy", connections(46)) == FAILS


def test_thresholds_that_nobody_reads_decide_nothing() -> None:
    def gains(cell: Training) -> tuple[float, float]:
        return (50 + (cell.config.model.thresholds or 0),) * 2

    for experiment in (resolution.EXPERIMENT, resolution.CONVOLUTIONAL_EXPERIMENT):
        assert verdict_of(experiment, "the logic network does not", lambda _cell: (50, 50)) == IN_PART
        assert verdict_of(experiment, "the logic network does not", gains) == FAILS


def test_class_heads() -> None:
    def numbers(cell: Training) -> tuple[float, float]:
        return (20, 20) if cell.config.model.wide_head else (15, 15)

    assert verdict_of(class_head.EXPERIMENT, "wider last layer", numbers) == HOLDS


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [((0.9, 0.1, 0.01, 0.001), IN_PART), ((0.2, 0.4, 0.6, 0.9), HOLDS), ((2, 1, 0.4, 0.3), FAILS)],
)
def test_the_sigmoid_catches_up_at_the_end(ratios: tuple[float, ...], expected: str) -> None:
    cells = GRADIENT_NORM.cells("cpu")
    made: list[tuple[Any, dict[str, Any]]] = [
        (c, {"norms": [[r if c.config.model.gates.estimator == "sigmoid" else 1.0] * 40 for r in ratios]})
        for c in cells
        if isinstance(c, GradientNorms)
    ]
    (claim,) = [claim for claim in GRADIENT_NORM.claims if "catches up" in claim.text]
    assert claim.judged(Results(cells, made)).verdict == expected


@pytest.mark.parametrize(("backward", "expected"), [(2.0, IN_PART), (0.5, IN_PART), (0.96, HOLDS)])
def test_hardly_changing_backward(backward: float, expected: str) -> None:
    cells = TRAINING_COST.cells("cpu")
    slow, fast = {"forward": [1.0], "backward": [1.0]}, {"forward": [0.5], "backward": [backward]}
    made: list[tuple[Any, dict[str, Any]]] = [
        (c, {"times": {e: fast if e == "linear-st" else slow for e in ESTIMATORS}})
        for c in cells
        if isinstance(c, Cost) and c.networks == ESTIMATORS
    ]
    (claim,) = [claim for claim in TRAINING_COST.claims if "linear-st" in claim.text]
    assert claim.judged(Results(cells, made)).verdict == expected
