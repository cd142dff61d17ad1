"""Residual against AND-OR init at 5-fold and 20-fold depth: accuracy and rounding gap.

The paper: both are similar up to 20 layers; at 80 layers AND-OR shows a clear gap between soft and rounded accuracy.
"""

from __future__ import annotations

from statistics import fmean

from matplotlib.figure import Figure

from gatelight import plots
from gatelight.experiments.framework import accuracy, figures
from gatelight.experiments.framework.accuracy import percent, points
from gatelight.experiments.framework.cell import Cell
from gatelight.experiments.framework.experiment import Claim, Experiment, Judgement, Results, verdict
from gatelight.experiments.framework.networks import dense, seeds, words
from gatelight.experiments.framework.training import Training

INITS = ("residual", "and-or")


def depths(scale: str) -> tuple[int, int]:
    """The two depth scales."""
    return (2, 5) if scale == "smoke" else (5, 20)


def cells(scale: str) -> list[Cell]:
    """Both inits of IWP at both depths; the residual runs are those of the depth experiment."""
    return [dense(scale, d, seed, init=init) for d in depths(scale) for seed in seeds(scale) for init in INITS]


def _get(results: Results, init: str, depth: int, what: str) -> list[float]:
    found = results.all(Training, lambda c: c.config.model.gates.init == init and c.config.model.depth_scale == depth)
    return [result["best"][what] for _, result in found]


def _gaps(results: Results, init: str, depth: int) -> list[float]:
    soft, rounded = (_get(results, init, depth, f"{what}_accuracy") for what in ("soft", "discrete"))
    return [s - r for s, r in zip(soft, rounded, strict=True)]


def _both_depths(results: Results) -> tuple[int, int]:
    low, high = sorted({c.config.model.depth_scale for c, _ in results.all(Training)})
    return low, high


def _shallow(results: Results) -> Judgement:
    depth, _ = _both_depths(results)
    residual, and_or = (_get(results, init, depth, "discrete_accuracy") for init in INITS)
    return Judgement(
        f"D={depth}: residual {percent(residual)}, and-or {percent(and_or)}",
        verdict(abs(fmean(residual) - fmean(and_or)) < 0.02),
        "similar is read as within two points",
    )


def _deep_gap(results: Results) -> Judgement:
    _, depth = _both_depths(results)
    residual, and_or = (_gaps(results, init, depth) for init in INITS)
    return Judgement(
        f"D={depth}, soft minus rounded: residual {points(residual)}, and-or {points(and_or)} points",
        verdict(fmean(and_or) > max(0.01, 2 * fmean(residual)), fmean(residual) < 0.02),
        "a clear gap is read as more than one point and twice that of residual, a low one as less than two points",
    )


def _deep(results: Results) -> Judgement:
    _, depth = _both_depths(results)
    text, lead = [], []
    for what in ("soft", "discrete"):
        residual, and_or = (_get(results, init, depth, f"{what}_accuracy") for init in INITS)
        name = "soft" if what == "soft" else "rounded"
        text.append(f"{name} {percent(residual)} and {percent(and_or)}")
        lead.append(fmean(residual) - fmean(and_or))
    return Judgement(
        f"D={depth}, residual and and-or: {'; '.join(text)}",
        verdict(all(points > 0 for points in lead), all(abs(points) < 0.05 for points in lead)),
        "slightly is read as up to five points; and-or rounded by seed: "
        + ", ".join(f"{100 * value:.1f}%" for value in and_or),
    )


def draw(results: Results) -> Figure:
    """Soft and rounded accuracy of both inits, one panel for each depth."""
    found = results.found(Training)
    shown = sorted({c.config.model.depth_scale for c, _ in found})
    figure, panels = plots.new_figure(len(shown), width=3.6, height=3.0)
    for axes, depth in zip(panels, shown, strict=True):
        here = [(c.config.model.gates.init, result) for c, result in found if c.config.model.depth_scale == depth]
        accuracy.bars(axes, INITS, [[result for init, result in here if init == one] for one in INITS])
        figures.legend_above(axes, f"D = {depth}")
    return figure


EXPERIMENT = Experiment(
    name="and-or",
    title="Residual against AND-OR init",
    figures="fig:and-or-vs-ri-performance-bars",
    settings=lambda scale: (
        f"IWP; {words(dense(scale, 1, 0).config, len(seeds(scale)))}; D = {' and '.join(map(str, depths(scale)))}"
    ),
    cells=cells,
    claims=(
        Claim("at 5-fold depth both inits are similarly accurate", "similar", _shallow),
        Claim("at 20-fold depth AND-OR has a clear rounding gap, residual a low one", "as drawn", _deep_gap),
        Claim("at 20-fold depth residual is slightly more accurate, soft and rounded", "as drawn", _deep),
    ),
    draw=draw,
    place=100,
)
