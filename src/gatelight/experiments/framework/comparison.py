"""OP against IWP, over depth and over steps: judgments and a figure that several experiments share."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gatelight import plots
from gatelight.experiments.framework import accuracy, figures
from gatelight.experiments.framework.accuracy import percent, points
from gatelight.experiments.framework.experiment import FAILS, HOLDS, IN_PART, Judgement, Results, verdict
from gatelight.experiments.framework.training import RunConfig, Training

#: The depth scale at which soft and rounded accuracy are compared.
BARS = 5


def accuracies(results: Results, parametrization: str, depth: int, what: str = "discrete_accuracy") -> list[float]:
    """Test accuracy of the best weights for each seed."""
    found = results.all(Training, lambda c: _is(c.config, parametrization, depth))
    return [result["best"][what] for _, result in found]


def depths(results: Results) -> list[int]:
    """The depth scales, ascending."""
    return sorted({c.config.model.depth_scale for c, _ in results.all(Training)})


def _is(config: RunConfig, parametrization: str, depth: int) -> bool:
    return config.model.gates.parametrization == parametrization and config.model.depth_scale == depth


def ahead(results: Results) -> Judgement:
    """IWP against OP at each depth."""
    pairs = {d: (accuracies(results, "iwp", d), accuracies(results, "op", d)) for d in depths(results)}
    text = "; ".join(f"D={d}: {percent(iwp)} and {percent(op)}" for d, (iwp, op) in pairs.items())
    leads = [fmean(iwp) > fmean(op) for iwp, op in pairs.values()]
    clear = [fmean(iwp) - fmean(op) > max(figures.deviation(iwp), figures.deviation(op)) for iwp, op in pairs.values()]
    return Judgement(
        f"IWP and OP, {text}",
        verdict(*clear),
        f"IWP's mean is ahead at {sum(leads)} of {len(leads)} depths, by more than the seeds' spread at {sum(clear)}",
    )


def stable(results: Results) -> Judgement:
    """IWP's shallowest network against its deepest."""
    first, last = depths(results)[0], depths(results)[-1]
    iwp = accuracies(results, "iwp", first), accuracies(results, "iwp", last)
    return Judgement(
        f"IWP {percent(iwp[0])} at D={first}, {percent(iwp[1])} at D={last}",
        verdict(fmean(iwp[1]) > fmean(iwp[0]) - 0.01),
        "not degrading is read as losing less than one point from the shallowest to the deepest network",
    )


def gap(results: Results) -> Judgement:
    """What rounding costs at five-fold depth."""
    gaps = {}
    for p in ("op", "iwp"):
        soft, rounded = accuracies(results, p, BARS, "soft_accuracy"), accuracies(results, p, BARS)
        gaps[p] = [s - r for s, r in zip(soft, rounded, strict=True)]
    op, iwp = fmean(gaps["op"]), fmean(gaps["iwp"])
    return Judgement(
        f"soft minus rounded at D={BARS}: OP {points(gaps['op'])}, IWP {points(gaps['iwp'])} points",
        verdict(op > 0.01 and op > iwp, iwp < min(op / 2, 0.02)),
        "OP's loss is read as more than one point and more than IWP's, hardly as less than half of it and two points",
    )


def ratio_of_steps(op: dict[str, Any], iwp: dict[str, Any]) -> float | None:
    """The step of OP's best accuracy over the first step at which IWP is at least as good; None if it never is.

    >>> slow = {"step": [10, 20, 30], "discrete_accuracy": [0.1, 0.2, 0.3]}
    >>> fast = {"step": [10, 20, 30], "discrete_accuracy": [0.3, 0.2, 0.4]}
    >>> ratio_of_steps(slow, fast), ratio_of_steps(fast, slow)
    (3.0, None)
    """
    best = max(op["discrete_accuracy"])
    reached = op["step"][op["discrete_accuracy"].index(best)]
    for step, value in zip(iwp["step"], iwp["discrete_accuracy"], strict=True):
        if value >= best:
            return float(reached / step)
    return None


def _curves(results: Results, parametrization: str) -> dict[int, dict[str, Any]]:
    found = results.all(Training, lambda c: c.config.model.gates.parametrization == parametrization)
    return {cell.config.seed: result["curve"] for cell, result in found}


def ratio(results: Results) -> Judgement:
    """Steps of OP over steps of IWP, for each seed."""
    op, iwp = _curves(results, "op"), _curves(results, "iwp")
    ratios = [ratio_of_steps(op[seed], iwp[seed]) for seed in sorted(op)]
    reached = [r for r in ratios if r is not None]
    if not reached:
        return Judgement("IWP never reaches OP's best", FAILS)
    ends = [curve["step"][curve["discrete_accuracy"].index(max(curve["discrete_accuracy"]))] for curve in op.values()]
    length = op[0]["step"][-1]
    text = ", ".join("never" if r is None else f"{r:.1f}" for r in ratios)
    mean = fmean(reached)
    every = len(reached) == len(ratios)
    held = HOLDS if every and min(reached) >= 8.5 else IN_PART if every and mean > 1 else FAILS
    return Judgement(
        f"{figures.mean_and_deviation(reached, digits=1)}x for {len(reached)} of {len(ratios)} seeds ({text})",
        held,
        f"on validation; OP is best after {fmean(ends):,.0f} of {length:,} steps (mean); the paper trains for 250,000",
    )


def draw(results: Results) -> Figure:
    """Rounded accuracy against depth; bars of soft and rounded accuracy at five-fold depth."""
    figure, (curve, bar) = plots.new_figure(2, width=4.2, height=3.1)
    for index, p in enumerate(("op", "iwp")):
        _curve(curve, results, p, index)
    curve.set_xscale("log")
    shown = sorted({c.config.model.depth_scale for c, _ in results.found(Training)})
    curve.set_xticks(shown, [str(d) for d in shown])
    curve.minorticks_off()
    curve.set(xlabel="depth scale D", ylabel="rounded test accuracy [%]")
    curve.legend()
    found = results.found(Training)
    accuracy.bars(bar, ["OP", "IWP"], [[r for c, r in found if _is(c.config, p, BARS)] for p in ("op", "iwp")])
    figures.legend_above(bar, f"D = {BARS}")
    return figure


def _curve(axes: Axes, results: Results, parametrization: str, index: int) -> None:
    by_depth: dict[int, list[float]] = {}
    for cell, result in results.found(Training, lambda c: c.config.model.gates.parametrization == parametrization):
        by_depth.setdefault(cell.config.model.depth_scale, []).append(100 * result["best"]["discrete_accuracy"])
    if by_depth:
        at = sorted(by_depth)
        figures.points(axes, at, [by_depth[d] for d in at], parametrization.upper(), index)
