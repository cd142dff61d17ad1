"""How many steps IWP needs to pass the best discretised accuracy of OP, at 20-fold depth.

The paper: OP is best after 222 000 steps, IWP passes that accuracy after 26 000: a ratio of 8.5.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from gatelight import plots
from gatelight.experiments import style
from gatelight.experiments.cell import Cell
from gatelight.experiments.depth import dense, seeds
from gatelight.experiments.experiment import FAILS, HOLDS, IN_PART, Claim, Experiment, Judgement, Results
from gatelight.experiments.training import Training, words

DEPTH = 20


def cells(scale: str) -> list[Cell]:
    """Both parametrizations for each seed; the runs are those of the depth experiment."""
    depth = 5 if scale == "smoke" else DEPTH
    return [dense(scale, depth, seed, parametrization=p) for seed in seeds(scale) for p in ("op", "iwp")]


def running_best(values: Sequence[float]) -> list[float]:
    """The best so far.

    >>> running_best([1, 3, 2])
    [1, 3, 3]
    """
    return list(itertools.accumulate(values, max))


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
        f"{style.mean_spread(reached, digits=1)}x for {len(reached)} of {len(ratios)} seeds ({text})",
        held,
        f"on validation; OP is best after {fmean(ends):,.0f} of {length:,} steps (mean); the paper trains for 250 000",
    )


def draw(results: Results) -> Figure:
    """Running best discretised accuracy against steps."""
    figure, (axes,) = plots.new_figure(width=5.5, height=3.6)
    for index, p in enumerate(("op", "iwp")):
        found = [item for item in results.found(Training) if item[0].config.model.gates.parametrization == p]
        rows = [[100 * v for v in running_best(r["curve"]["discrete_accuracy"])] for _, r in found]
        if rows:
            style.line(axes, found[0][1]["curve"]["step"], rows, p.upper(), index)
            if p == "op":
                best = fmean(row[-1] for row in rows)
                axes.axhline(best, color="black", linewidth=0.8, linestyle=":", label="OP's best")
    axes.set(xlabel="step", ylabel="best discretised accuracy so far [%]")
    axes.legend(loc="lower right")
    return figure


EXPERIMENT = Experiment(
    name="convergence",
    title="Steps to OP's best accuracy at 20-fold depth",
    figures="fig:faster-convergence-iwp",
    settings=lambda scale: (
        f"{words(dense(scale, DEPTH, 0).config, len(seeds(scale)))}; D = {5 if scale == 'smoke' else DEPTH}"
    ),
    cells=cells,
    claims=(Claim("IWP passes OP's best discretised accuracy in 8.5x fewer steps", "8.5x", ratio),),
    draw=draw,
)
