"""How many steps IWP needs to pass the best rounded accuracy of OP, at 20-fold depth.

The paper: OP is best after 222,000 steps, IWP passes that accuracy after 26,000: a ratio of 8.5.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import fmean

from matplotlib.figure import Figure

from gatelight import plots
from gatelight.experiments.framework import figures
from gatelight.experiments.framework.accuracy import best_so_far
from gatelight.experiments.framework.cell import Cell
from gatelight.experiments.framework.comparison import ratio
from gatelight.experiments.framework.experiment import Claim, Experiment, Results
from gatelight.experiments.framework.networks import dense, seeds, words
from gatelight.experiments.framework.training import Training

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


def draw(results: Results) -> Figure:
    """Best rounded accuracy so far, against steps."""
    figure, (axes,) = plots.new_figure(width=5.5, height=3.6)
    for index, p in enumerate(("op", "iwp")):
        runs = [result for cell, result in results.found(Training) if cell.config.model.gates.parametrization == p]
        rows = best_so_far(runs)
        if rows:
            figures.line(axes, runs[0]["curve"]["step"], rows, p.upper(), index)
            if p == "op":
                best = fmean(row[-1] for row in rows)
                axes.axhline(best, color="black", linewidth=0.8, linestyle=":", label="OP's best")
    axes.set(xlabel="step", ylabel="best rounded accuracy so far [%]")
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
    claims=(Claim("IWP passes OP's best rounded accuracy in 8.5x fewer steps", "8.5x", ratio),),
    draw=draw,
    place=80,
)
