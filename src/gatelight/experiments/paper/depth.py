"""Rounded accuracy against depth, for the dense and the convolutional network.

The paper: IWP stays ahead of OP at every depth of the dense network; of the convolutional one, both start together
and at five-fold depth IWP is 1.3 times as accurate, because OP loses most of its accuracy in rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import fmean

from gatelight.experiments.framework.accuracy import percent
from gatelight.experiments.framework.cell import Cell
from gatelight.experiments.framework.comparison import BARS, accuracies, ahead, draw, gap, stable
from gatelight.experiments.framework.experiment import Claim, Experiment, Judgement, Results, verdict
from gatelight.experiments.framework.networks import convolution, dense, seeds, weight_decay, words
from gatelight.experiments.framework.training import Training

#: Depth scales; at ``cpu`` fewer than in the paper.
DENSE = {"smoke": (1, 5), "cpu": (1, 2, 5, 20), "paper": (1, 2, 3, 4, 5, 10, 20)}
CONVOLUTIONAL = {"smoke": (1, 5), "cpu": (1, 2, 5), "paper": (1, 2, 3, 4, 5)}


def dense_cells(scale: str) -> list[Cell]:
    """Both parametrizations at each depth, shallow first."""
    return [
        dense(scale, depth, seed, parametrization=p)
        for depth in DENSE[scale]
        for seed in seeds(scale)
        for p in ("op", "iwp")
    ]


def convolutional_cells(scale: str) -> list[Cell]:
    """Both parametrizations at each depth, shallow first."""
    return [
        convolution(scale, depth, seed, p)
        for depth in CONVOLUTIONAL[scale]
        for seed in seeds(scale)
        for p in ("op", "iwp")
    ]


def _from_rounding(results: Results) -> Judgement:
    lead = {}
    for what in ("soft", "discrete"):
        iwp, op = (fmean(accuracies(results, p, BARS, f"{what}_accuracy")) for p in ("iwp", "op"))
        lead[what] = 100 * (iwp - op)
    return Judgement(
        f"at D={BARS} IWP is ahead by {lead['discrete']:.1f} points rounded and by {lead['soft']:.1f} soft",
        verdict(lead["discrete"] > 0 and lead["soft"] < lead["discrete"] / 2),
        "mainly is read as: IWP is ahead after rounding, and by less than half of that before",
    )


def _shallow(results: Results) -> Judgement:
    iwp, op = accuracies(results, "iwp", 1), accuracies(results, "op", 1)
    return Judgement(
        f"D=1: IWP {percent(iwp)}, OP {percent(op)}",
        verdict(abs(fmean(iwp) - fmean(op)) < 0.02),
        "almost is read as within two points",
    )


def _deep(results: Results) -> Judgement:
    iwp, op = accuracies(results, "iwp", 5), accuracies(results, "op", 5)
    ratio = fmean(iwp) / fmean(op)
    return Judgement(
        f"D=5: IWP {percent(iwp)}, OP {percent(op)}: {ratio:.2f}x",
        verdict(ratio > 1.0, ratio > 1.3),
        "" if ratio > 1.3 else "the ratio of the paper is on CIFAR-100 with 250,000 steps of a far wider network",
    )


def settings(make: Callable[[str, int, int], Training], depths: dict[str, tuple[int, ...]], scale: str) -> str:
    """The networks in words."""
    cell = make(scale, 1, 0)
    return f"{words(cell.config, len(seeds(scale)))}; D = {', '.join(map(str, depths[scale]))}; residual init"


EXPERIMENT = Experiment(
    name="depth",
    title="Rounded accuracy against depth, dense network",
    figures="fig:performance-depth-iwp-op-lgn, fig:performance-bars-iwp-op-lgn",
    settings=partial(settings, dense, DENSE),
    cells=dense_cells,
    claims=(
        Claim("IWP is ahead of OP at every depth", "OP levels off near 28% (CIFAR-100)", ahead),
        Claim("depth does not degrade IWP", "stable to D = 20", stable),
        Claim("at five-fold depth OP loses accuracy in rounding, IWP hardly", "as drawn", gap),
    ),
    draw=draw,
    place=60,
)

CONVOLUTIONAL_EXPERIMENT = Experiment(
    name="depth-convolutional",
    title="Rounded accuracy against depth, convolutional network",
    figures="fig:performance-depth-iwp-op-clgn, fig:performance-bars-iwp-op-clgn",
    settings=lambda scale: (
        f"{settings(convolution, CONVOLUTIONAL, scale)}; weight decay {weight_decay('op')} for OP, none for IWP"
    ),
    cells=convolutional_cells,
    claims=(
        Claim("the shallow networks perform almost equally", "almost equal", _shallow),
        Claim("at D = 5 IWP is more than 1.3 times as accurate", "38.2% and 29.0% (CIFAR-100)", _deep),
        Claim("the difference at D = 5 is mainly OP's rounding error", "soft OP trails little", _from_rounding),
    ),
    draw=draw,
    place=60,
)
