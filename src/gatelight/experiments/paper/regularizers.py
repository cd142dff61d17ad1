"""Three regularizers that did not help: path-connected dropout, gate interventions, fixed residual connections.

The paper: dropout degrades the test accuracy with its probability; interventions narrow the generalization gap but
stay below the plain network; fixed residual connections keep gradients and cost a little accuracy.
"""

from __future__ import annotations

import itertools
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from gatelight import plots
from gatelight.experiments.framework import accuracy, figures
from gatelight.experiments.framework.accuracy import percent
from gatelight.experiments.framework.cell import Cell
from gatelight.experiments.framework.experiment import Claim, Experiment, Judgement, Results, verdict
from gatelight.experiments.framework.gradients import GradientNorms, network
from gatelight.experiments.framework.networks import dense, words
from gatelight.experiments.framework.training import RunConfig, Training
from gatelight.nn.regularize import INTERVENTIONS

DROPOUT = (0.02, 0.05, 0.1)
INTERVENTION = 0.05
#: Interventions draw a random number for every gate and sample, which is slow.
SEEDS = {"smoke": 2, "cpu": 1, "paper": 3}
#: Residual connections are meant for deep networks.
DEEP = 5
PLAIN, DEEP_PLAIN, FIXED = "none", "residual init", "residual connections"


def _fixed(init: str = "gaussian") -> dict[str, Any]:
    return {"residual_fraction": 1.0, "init": init}


def cells(scale: str) -> list[Cell]:
    """Each regularizer for each seed, and gradient norms with residual connections and with residual init."""
    made: list[Cell] = []
    values = ("uniform", "bernoulli") if scale == "smoke" else INTERVENTIONS
    for seed in range(SEEDS[scale]):
        shallow: list[dict[str, Any]] = [{}, *({"dropout": p} for p in DROPOUT)]
        shallow += [{"intervention": INTERVENTION, "intervention_value": value} for value in values]
        made += [dense(scale, 1, seed, **changes) for changes in shallow]
        made += [dense(scale, DEEP, seed, **changes) for changes in ({}, _fixed())]
    made += [GradientNorms(network(scale, **changes), (0,)) for changes in ({}, _fixed(), {"init": "gaussian"})]
    return made


def name_of(config: RunConfig) -> str:
    """The regularizer of a run."""
    if config.model.dropout:
        return f"dropout {config.model.dropout:g}"
    if config.model.intervention:
        return f"intervention {config.model.intervention_value}"
    if config.model.residual_fraction:
        return FIXED
    return DEEP_PLAIN if config.model.depth_scale == DEEP else PLAIN


def _get(results: Results, name: str, part: str = "best", what: str = "discrete_accuracy") -> list[float]:
    found = results.all(Training, lambda c: name_of(c.config) == name)
    return [result[part][what] for _, result in found]


def _gap(results: Results, name: str) -> float:
    """Training minus test accuracy of the soft network."""
    return fmean(_get(results, name, "train", "soft_accuracy")) - fmean(_get(results, name, "best", "soft_accuracy"))


def _dropout(results: Results) -> Judgement:
    names = [PLAIN, *(f"dropout {p:g}" for p in DROPOUT)]
    means = [fmean(_get(results, name)) for name in names]
    text = ", ".join(f"{n}: {percent(_get(results, n))}" for n in names)
    return Judgement(
        text,
        verdict(all(mean < means[0] for mean in means[1:]), all(a > b for a, b in itertools.pairwise(means[1:]))),
        "read as: each is below the plain network, and the means fall",
    )


def _interventions(results: Results) -> Judgement:
    names = sorted({name_of(c.config) for c, _ in results.all(Training, lambda c: c.config.model.intervention > 0)})
    plain = fmean(_get(results, PLAIN))
    text = ", ".join(f"{n.split()[1]} {100 * fmean(_get(results, n)):.1f}%" for n in names)
    below = [fmean(_get(results, n)) < plain for n in names]
    narrower = [_gap(results, n) < _gap(results, PLAIN) for n in names]
    gaps = ", ".join(f"{n.split()[1]} {100 * _gap(results, n):.1f}" for n in names)
    return Judgement(
        f"none {100 * plain:.1f}%, {text}",
        verdict(all(below), all(narrower)),
        f"soft training minus test accuracy: none {100 * _gap(results, PLAIN):.1f}, {gaps} points",
    )


def _connections(results: Results) -> Judgement:
    plain, fixed = _get(results, DEEP_PLAIN), _get(results, FIXED)
    train = [fmean(_get(results, n, "train", "soft_accuracy")) for n in (DEEP_PLAIN, FIXED)]
    return Judgement(
        f"D={DEEP}: init {percent(plain)}, connections {percent(fixed)}",
        verdict(0 < fmean(plain) - fmean(fixed) < 0.05, 0 < train[0] - train[1] < 0.05),
        f"soft training accuracy {100 * train[0]:.1f}% and {100 * train[1]:.1f}%; a little is read as up to 5 points",
    )


def _norms(results: Results, *, fixed: bool, init: str) -> list[float]:
    """Norms of the layers that have parameters, first to last."""
    found = results.one(
        GradientNorms, lambda c: bool(c.config.model.residual_fraction) == fixed and c.config.model.gates.init == init
    )
    return [norm for norm in found["norms"][0] if norm is not None]


def _gradients(results: Results) -> Judgement:
    kept = {}
    for label, fixed, init in (
        ("residual init", False, "residual"),
        ("connections and gaussian init", True, "gaussian"),
    ):
        norms = _norms(results, fixed=fixed, init=init)
        kept[label] = norms[0] / max(norms)
    alone = _norms(results, fixed=False, init="gaussian")
    return Judgement(
        "; ".join(
            f"{label}: the first of 40 layers has {share:.1e} of the largest norm" for label, share in kept.items()
        ),
        verdict(kept["connections and gaussian init"] > kept["residual init"]),
        f"gaussian init without connections: {alone[0] / max(alone):.1e}",
    )


def draw(results: Results) -> Figure:
    """Training and test accuracy of each regularizer, and gradient norms."""
    figure, (bar, gradient) = plots.new_figure(2, width=5.0, height=3.4)
    found = results.found(Training)
    names = list(dict.fromkeys(name_of(c.config) for c, _ in found))
    if names:
        accuracy.bars(bar, names, [[r for c, r in found if name_of(c.config) == name] for name in names])
        bar.tick_params(axis="x", labelrotation=60, labelsize=6)
        figures.legend_above(bar)
    bar.set(ylabel="accuracy [%]")
    gradient.set_yscale("log")
    for index, (cell, result) in enumerate(results.found(GradientNorms)):
        norms = [(layer, norm) for layer, norm in enumerate(result["norms"][0], 1) if norm]
        label = FIXED + ", gaussian" if cell.config.model.residual_fraction else f"{cell.config.model.gates.init} init"
        figures.line(gradient, [layer for layer, _ in norms], [[norm for _, norm in norms]], label, index)
    gradient.set(xlabel="layer", ylabel="mean |dLoss/d$\\theta$|")
    gradient.legend(fontsize=7)
    return figure


def settings(scale: str) -> str:
    """The networks in words."""
    norms = network(scale)
    width, batch = norms.model.width, norms.optimization.batch
    return (
        f"IWP; {words(dense(scale, 1, 0).config, SEEDS[scale])}; D = 1, residual connections (which start "
        f"gaussian) D = {DEEP}; gradient norms: 40 layers of {width:,} gates, a batch of {batch} of "
        f"{norms.dataset}, one seed"
    )


EXPERIMENT = Experiment(
    name="regularizers",
    title="Dropout, interventions and residual connections",
    figures="fig:regularizing-lgn, fig:regularizing-lgn-rc",
    settings=settings,
    cells=cells,
    claims=(
        Claim("dropout degrades the test accuracy, the more the higher its probability", "as drawn", _dropout),
        Claim(
            "interventions narrow the generalization gap but stay below the plain network", "as drawn", _interventions
        ),
        Claim("fixed residual connections cost a little accuracy, training and test", "slightly lower", _connections),
        Claim(
            "with fixed residual connections gradients are more stable than with residual inits", "as drawn", _gradients
        ),
    ),
    draw=draw,
    place=140,
)
