"""Distribution of the coefficients right after the init, ``omega = estimator(theta)`` with ``theta ~ N(mu, sigma)``."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

import torch
from matplotlib.figure import Figure

from gatelight import plots
from gatelight.experiments.framework.cell import Cell, Context
from gatelight.experiments.framework.experiment import Claim, Experiment, Judgement, Results, verdict
from gatelight.parametrize import IWP, Init

BINS = 50
SAMPLES = 100_000
#: Estimator, mu, sigma: the paper's four distributions of the inits and the narrow one of its appendix.
SHAPES = (
    ("sin", 0.0, 1.0),
    ("sin", 1.2, 0.25),
    ("sigmoid", 3.0, 0.5),
    ("sigmoid", 3.0, 1.0),
    ("sin", 1.5, 0.125),
)


@dataclass(frozen=True)
class Coefficients:
    """Coefficients that lean to 1.

    Attributes:
        estimator: Of IWP.
        mu: How far theta is shifted.
        sigma: Standard deviation of theta.
        seed: Draws theta.
    """

    version: ClassVar[int] = 1
    timed: ClassVar[bool] = False
    estimator: str
    mu: float
    sigma: float
    seed: int

    @property
    def label(self) -> str:
        """Estimator and distribution."""
        return f"{self.estimator} mu={self.mu:g} sigma={self.sigma:g} seed={self.seed}"

    @property
    def seconds(self) -> float:
        """About how long it takes."""
        return 0.1

    def run(self, _context: Context) -> dict[str, Any]:
        """Histogram over [0, 1], mean, shares above 0.9 and between 1/4 and 3/4, drawn by the init that layers use."""
        iwp = IWP(2, self.estimator)
        generator = torch.Generator().manual_seed(self.seed)
        theta = iwp.init(SAMPLES // 4, Init("true", self.mu, self.sigma), generator)
        omega = iwp.table(theta).flatten()
        return {
            "histogram": (torch.histc(omega, BINS, 0.0, 1.0) / len(omega)).tolist(),
            "mean": float(omega.double().mean()),
            "above": float((omega > 0.9).double().mean()),
            "undecided": float(((omega > 0.25) & (omega < 0.75)).double().mean()),
        }


def share_between(cell: Coefficients, low: float, high: float) -> float:
    """The exact probability that a coefficient lies between two values of [0, 1].

    >>> round(share_between(Coefficients("sigmoid", 0.0, 1.0, 0), 0.5, 1.0), 6)
    0.5
    """
    theta = NormalDist(cell.mu, cell.sigma)
    if cell.estimator == "sigmoid":
        return theta.cdf(_logit(high)) - theta.cdf(_logit(low))
    first, last = math.asin(2 * low - 1), math.asin(2 * high - 1)
    turns = [2 * math.pi * k for k in range(-3, 4)]
    rising = sum(theta.cdf(last + t) - theta.cdf(first + t) for t in turns)
    falling = sum(theta.cdf(math.pi - first + t) - theta.cdf(math.pi - last + t) for t in turns)
    return rising + falling


def _logit(value: float) -> float:
    return math.inf if value >= 1 else -math.inf if value <= 0 else math.log(value / (1 - value))


def cells(_scale: str) -> list[Cell]:
    """The five distributions."""
    return [Coefficients(*shape, seed=0) for shape in SHAPES]


def _get(results: Results, *shape: object) -> dict[str, Any]:
    return results.one(Coefficients, lambda c: (c.estimator, c.mu, c.sigma) == shape)


def _sin(results: Results) -> Judgement:
    shifted = _get(results, *SHAPES[1])
    return Judgement(
        f"mean {shifted['mean']:.3f}, {shifted['above']:.1%} above 0.9",
        verdict(shifted["above"] > 0.5),
        "a heavy tail is read as half of them above 0.9; where the table has a 0, the same tail is at 0",
    )


def _plain(results: Results) -> Judgement:
    plain = _get(results, *SHAPES[0])
    return Judgement(
        f"mean {plain['mean']:.3f}, {plain['undecided']:.1%} between 1/4 and 3/4",
        verdict(abs(plain["mean"] - 0.5) < 0.01, plain["undecided"] > 0.5),
        "symmetric, but the sine piles N(0, 1) up at 0 and 1: an even spread would have 50% there",
    )


def _sigmoid(results: Results) -> Judgement:
    tight, loose = _get(results, *SHAPES[2]), _get(results, *SHAPES[3])
    return Judgement(
        f"{tight['above']:.1%} above 0.9 with sigma = 0.5, {loose['above']:.1%} with sigma = 1",
        verdict(tight["above"] > 0.5, loose["above"] > 0.5),
        "read as half of them above 0.9; the paper's caption prints 1/(1 + exp(theta)), its text and figure mean "
        "1/(1 + exp(-theta))",
    )


def _narrow(results: Results) -> Judgement:
    normal, narrow = _get(results, *SHAPES[1]), _get(results, *SHAPES[4])
    return Judgement(
        f"mean {normal['mean']:.3f} -> {narrow['mean']:.4f}, {narrow['above']:.1%} above 0.9",
        verdict(narrow["mean"] > normal["mean"], narrow["above"] >= normal["above"]),
    )


def draw(results: Results) -> Figure:
    """One histogram for each distribution, with the exact one as a line."""
    found = results.found(Coefficients)
    figure, panels = plots.new_figure(len(found), width=2.6, height=2.6)
    edges = [b / BINS for b in range(BINS + 1)]
    for axes, (cell, result) in zip(panels, found, strict=True):
        axes.stairs([100 * h for h in result["histogram"]], edges, fill=True, alpha=0.7, label="drawn")
        exact = [100 * share_between(cell, a, b) for a, b in itertools.pairwise(edges)]
        axes.stairs(exact, edges, color="black", linewidth=0.8, label="exact")
        title = f"{cell.estimator}, $\\mu$ = {cell.mu:g}, $\\sigma$ = {cell.sigma:g}"
        axes.set(xlabel="coefficient $\\omega$", ylabel="coefficients [%]", title=title)
    panels[0].legend()
    return figure


EXPERIMENT = Experiment(
    name="coefficients",
    title="Distribution of the coefficients at the start",
    figures="fig:sin-act-dist-comparison, fig:sigmoid-act-dist-comparison, fig:reducing-variance-deeper-clgn-dist",
    settings=lambda _scale: f"{SAMPLES:,} coefficients for each distribution, one seed; the same at every scale",
    cells=cells,
    claims=(
        Claim("sin with mu = 1.2, sigma = 0.25 has a heavy tail", "as drawn", _sin),
        Claim("with N(0, 1) the coefficients concentrate symmetrically around 1/2", "around 1/2", _plain),
        Claim("sigmoid gets a heavy tail by shifting theta by 3.0", "as drawn", _sigmoid),
        Claim("mu = 1.5, sigma = 0.125 concentrates the coefficients further", "as drawn", _narrow),
    ),
    draw=draw,
    place=50,
)
