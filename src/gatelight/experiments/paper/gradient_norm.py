"""Gradient norm over the layers of a deep network: the mean ``|dLoss/dtheta|`` of each layer for one batch.

The paper: over 40 layers it falls to about 1e-34 for OP and 1e-16 for IWP with gaussian inits and hardly at all with
residual inits, where IWP keeps more than OP. Of the inits that lean to one function only the residual one is stable.
"""

from __future__ import annotations

import math
from statistics import fmean

from matplotlib.figure import Figure

from gatelight import plots
from gatelight.experiments.framework import figures
from gatelight.experiments.framework.cell import Cell
from gatelight.experiments.framework.experiment import Claim, Experiment, Judgement, Results, verdict
from gatelight.experiments.framework.gradients import LAYERS, GradientNorms, network

SINGLE = ("and", "or", "xor")
MULTIPLE = ("and-or", "and-or-residual", "uniform")


def cells(scale: str) -> list[Cell]:
    """Every init for each seed, and the two estimators over the first steps of training."""
    later = {"smoke": (0, 5), "cpu": (0, 10, 100, 500), "paper": (0, 10, 100, 500)}[scale]
    made: list[Cell] = []
    for seed in range(1 if scale == "smoke" else 3):
        for parametrization in ("op", "iwp"):
            made.append(
                GradientNorms(network(scale, parametrization=parametrization, init="gaussian", seed=seed), (0,))
            )
        made.append(GradientNorms(network(scale, parametrization="op", seed=seed), (0,)))
        made += [GradientNorms(network(scale, init=init, seed=seed), (0,)) for init in (*SINGLE, *MULTIPLE)]
        made += [GradientNorms(network(scale, estimator=e, seed=seed), later) for e in ("sin", "sigmoid")]
    return made


def _norms(
    results: Results, init: str, parametrization: str = "iwp", estimator: str = "sin", step: int = 0
) -> list[list[float]]:
    """One row of norms for each seed, after the step with this index."""

    def wanted(cell: GradientNorms) -> bool:
        c = cell.config
        return (c.model.gates.init, c.model.gates.parametrization, c.model.gates.estimator) == (
            init,
            parametrization,
            estimator,
        )

    return [result["norms"][step] for _, result in results.all(GradientNorms, wanted)]


def _first(rows: list[list[float]]) -> float:
    """The first layer's norm, the geometric mean over seeds."""
    return 10 ** fmean(math.log10(max(row[0], 1e-45)) for row in rows)


def _gaussian(results: Results) -> Judgement:
    op, iwp = _first(_norms(results, "gaussian", "op")), _first(_norms(results, "gaussian"))
    return Judgement(
        f"OP {op:.1e}, IWP {iwp:.1e} in the first of 40 layers",
        verdict(op < 1e-25, 1e-20 < iwp < 1e-12),
        "geometric means over seeds; read as below 1e-25 with OP and within 1e-20 to 1e-12 with IWP",
    )


def _residual(results: Results) -> Judgement:
    op, iwp = _norms(results, "residual", "op"), _norms(results, "residual")
    ratio = [a / b for a, b in zip((row[0] for row in iwp), (row[0] for row in op), strict=True)]
    kept = {name: _first(rows) / fmean(row[-1] for row in rows) for name, rows in (("iwp", iwp), ("op", op))}
    return Judgement(
        f"first layer: IWP {_first(iwp):.1e}, OP {_first(op):.1e}, ratio {figures.mean_and_deviation(ratio, digits=1)}",
        verdict(all(r > 1 for r in ratio), kept["iwp"] > kept["op"]),
        f"absolute norms; of the last layer's norm the first keeps {kept['iwp']:.3f} with IWP and "
        f"{kept['op']:.3f} with OP",
    )


def _single(results: Results) -> Judgement:
    first = {init: _first(_norms(results, init)) for init in ("residual", *SINGLE)}
    stable = first["residual"]
    return Judgement(
        ", ".join(f"{init} {norm:.1e}" for init, norm in first.items()),
        verdict(*(norm < 1e-3 * stable for init, norm in first.items() if init != "residual")),
        "first of 40 layers; vanishing is read as below a thousandth of residual",
    )


def _multiple(results: Results) -> Judgement:
    first = {init: _first(_norms(results, init)) for init in ("residual", *MULTIPLE)}
    others = [norm for init, norm in first.items() if init != "residual"]
    return Judgement(
        ", ".join(f"{init} {norm:.1e}" for init, norm in first.items()),
        verdict(
            all(norm > 1e-12 for norm in others), all(0.01 * first["residual"] < n < first["residual"] for n in others)
        ),
        "stable is read as above 1e-12, slightly inferior as less than 100 times below residual",
    )


def _estimators(results: Results) -> Judgement:
    steps = results.all(GradientNorms, lambda c: c.config.model.gates.estimator == "sigmoid")[0][0].steps
    ratios = [
        _middle(_norms(results, "residual", "iwp", "sigmoid", i))
        / _middle(_norms(results, "residual", "iwp", "sin", i))
        for i in range(len(steps))
    ]
    text = ", ".join(f"{ratio:.2f} after {step}" for ratio, step in zip(ratios, steps, strict=True))
    return Judgement(
        f"norm of sigmoid over that of sin: {text} batches",
        verdict(ratios[0] < 1, ratios[-1] > max(ratios[0], 0.5)),
        "geometric means over layers and seeds; catching up is read as more than half at the end",
    )


def _middle(rows: list[list[float]]) -> float:
    """The geometric mean over layers and seeds."""
    return 10 ** fmean(math.log10(max(norm, 1e-45)) for row in rows for norm in row)


def draw(results: Results) -> Figure:
    """Four panels: gaussian and residual, single functions, several functions, estimators."""
    figure, panels = plots.new_figure(2, 2, width=4.4, height=3.2)
    residual = ("residual", "iwp", "sin", 0, "IWP residual")
    groups: list[tuple[str, list[tuple[str, str, str, int, str]]]] = [
        (
            "parametrizations",
            [
                ("gaussian", "op", "sin", 0, "OP gaussian"),
                ("gaussian", "iwp", "sin", 0, "IWP gaussian"),
                ("residual", "op", "sin", 0, "OP residual"),
                residual,
            ],
        ),
        ("IWP, one function", [(init, "iwp", "sin", 0, init) for init in ("residual", *SINGLE)]),
        ("IWP, several functions", [(init, "iwp", "sin", 0, init) for init in ("residual", *MULTIPLE, "gaussian")]),
    ]
    trained = results.found(GradientNorms, lambda c: len(c.steps) > 1)
    steps = trained[0][0].steps if trained else (0,)
    ends = {0: steps[0], len(steps) - 1: steps[-1]}
    shown = [("residual", "iwp", e, i, f"{e}, {s} batches") for e in ("sin", "sigmoid") for i, s in ends.items()]
    groups.append(("IWP residual, estimators", shown))
    for axes, (title, networks) in zip(panels, groups, strict=True):
        axes.set_yscale("log")
        for index, (init, parametrization, estimator, step, label) in enumerate(networks):
            rows = _found(results, init, parametrization, estimator, step)
            if rows:
                figures.line(axes, range(1, len(rows[0]) + 1), rows, label, index)
        axes.set(xlabel="layer", ylabel="mean |dLoss/d$\\theta$|", title=title)
        axes.legend(fontsize=7)
    return figure


def _found(results: Results, init: str, parametrization: str, estimator: str, step: int) -> list[list[float]]:
    found = results.found(
        GradientNorms,
        lambda c: (
            (c.config.model.gates.init, c.config.model.gates.parametrization, c.config.model.gates.estimator)
            == (init, parametrization, estimator)
        ),
    )
    return [result["norms"][step] for _, result in found]


def settings(scale: str) -> str:
    """The network in words."""
    c = network(scale)
    seeds = "one seed" if scale == "smoke" else "3 seeds"
    return f"{LAYERS} layers of {c.model.width:,} gates, one batch of {c.optimization.batch} of {c.dataset}, {seeds}"


EXPERIMENT = Experiment(
    name="gradient-norm",
    title="Gradient norm over 40 layers",
    figures="fig:gradients-original-iwp, fig:gradients-final-comp, fig:gradients-initializations, "
    "fig:iwp-act-gradients",
    settings=settings,
    cells=cells,
    claims=(
        Claim("with gaussian inits the gradient vanishes over 40 layers", "OP 1e-34, IWP 1e-16", _gaussian),
        Claim("with residual inits IWP keeps a higher gradient norm than OP", "IWP above OP", _residual),
        Claim("residual is the only stable init that leans to one function", "AND, OR, XOR vanish", _single),
        Claim("inits of several functions are stable, slightly below residual", "slightly inferior", _multiple),
        Claim(
            "sigmoid starts with smaller gradients than sin and catches up in a few batches", "as drawn", _estimators
        ),
    ),
    draw=draw,
    place=30,
)
