"""Whether deep networks want coefficients closer to 0 and 1 at the start, and which estimator is better.

The paper: for a convolutional network of two-fold depth, N(1.5, 0.125) instead of N(1.2, 0.25) improves nothing; the
sine is slightly more accurate than the sigmoid. The dense network of five-fold depth is run as well.
"""

from __future__ import annotations

from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from gatelight import plots
from gatelight.experiments.framework import figures
from gatelight.experiments.framework.accuracy import best_so_far, percent
from gatelight.experiments.framework.cell import Cell
from gatelight.experiments.framework.experiment import Claim, Experiment, Judgement, Results, verdict
from gatelight.experiments.framework.networks import convolution, dense, seeds, words
from gatelight.experiments.framework.training import RunConfig, Training

DENSE_DEPTH, CONVOLUTIONAL_DEPTH = 5, 2
#: What differs from the standard init and estimator.
VARIANTS: dict[str, dict[str, Any]] = {
    "sin 1.2, 0.25": {},
    "sin 1.5, 0.125": {"init_strength": 1.5, "init_spread": 0.125},
    "sigmoid 3.0, 0.5": {"estimator": "sigmoid"},
}
NORMAL, NARROW, SIGMOID = VARIANTS


def dense_cells(scale: str) -> list[Cell]:
    """Each variant of the dense network; the standard one is a run of the depth experiment."""
    return [dense(scale, DENSE_DEPTH, s, **changes) for s in seeds(scale) for changes in VARIANTS.values()]


def convolutional_cells(scale: str) -> list[Cell]:
    """Both inits of the convolutional network."""
    return [
        convolution(scale, CONVOLUTIONAL_DEPTH, s, **VARIANTS[name]) for s in seeds(scale) for name in (NORMAL, NARROW)
    ]


def variant(config: RunConfig) -> str:
    """The name of a run's variant."""
    return (
        NARROW
        if config.model.gates.init_strength is not None
        else SIGMOID
        if config.model.gates.estimator == "sigmoid"
        else NORMAL
    )


def _accuracies(results: Results, name: str) -> list[float]:
    found = results.all(Training, lambda c: variant(c.config) == name)
    return [result["best"]["discrete_accuracy"] for _, result in found]


def _narrow(results: Results) -> Judgement:
    normal, narrow = _accuracies(results, NORMAL), _accuracies(results, NARROW)
    better = fmean(narrow) - fmean(normal)
    return Judgement(
        f"{NORMAL}: {percent(normal)}; {NARROW}: {percent(narrow)}",
        verdict(better < max(figures.deviation(normal), figures.deviation(narrow), 0.005)),
        f"the narrow init changes the mean by {100 * better:+.1f} points; better would be more than the seeds' spread",
    )


def _sigmoid(results: Results) -> Judgement:
    sin, sigmoid = _accuracies(results, NORMAL), _accuracies(results, SIGMOID)
    return Judgement(
        f"sin {percent(sin)}, sigmoid {percent(sigmoid)}",
        verdict(fmean(sin) - fmean(sigmoid) > max(figures.deviation(sin), figures.deviation(sigmoid))),
        f"difference of the means {100 * (fmean(sin) - fmean(sigmoid)):+.1f} points; read as above the seeds' spread",
    )


def draw(results: Results) -> Figure:
    """Curves of each variant and its test accuracy."""
    figure, (curve, bar) = plots.new_figure(2, width=4.2, height=3.1)
    found = results.found(Training)
    names = [name for name in VARIANTS if any(variant(c.config) == name for c, _ in found)]
    groups = []
    for index, name in enumerate(names):
        runs = [result for cell, result in found if variant(cell.config) == name]
        figures.line(curve, runs[0]["curve"]["step"], best_so_far(runs), name, index)
        groups.append([100 * r["best"]["discrete_accuracy"] for r in runs])
    curve.set(xlabel="step", ylabel="best rounded accuracy so far [%]")
    curve.legend(fontsize=7, loc="lower right")
    figures.bars(bar, names, {"test, rounded": groups})
    bar.tick_params(axis="x", labelsize=7)
    bar.set(ylabel="rounded test accuracy [%]")
    return figure


_NARROW = Claim("a lower variance of the init does not improve the test accuracy", "no better", _narrow)

EXPERIMENT = Experiment(
    name="init-variance",
    title="Initial variance and estimator, dense network",
    figures="fig:reducing-variance-deeper-clgn-perf (there convolutional), fig:iwp-act-performance",
    settings=lambda scale: f"{words(dense(scale, DENSE_DEPTH, 0).config, len(seeds(scale)))}; D = {DENSE_DEPTH}",
    cells=dense_cells,
    claims=(_NARROW, Claim("sin is slightly more accurate than sigmoid", "slightly superior", _sigmoid)),
    draw=draw,
    place=110,
)

CONVOLUTIONAL_EXPERIMENT = Experiment(
    name="init-variance-convolutional",
    title="Initial variance, convolutional network",
    figures="fig:reducing-variance-deeper-clgn-perf",
    settings=lambda scale: (
        f"{words(convolution(scale, CONVOLUTIONAL_DEPTH, 0).config, len(seeds(scale)))}; D = {CONVOLUTIONAL_DEPTH}"
    ),
    cells=convolutional_cells,
    claims=(_NARROW,),
    draw=draw,
    place=110,
)
