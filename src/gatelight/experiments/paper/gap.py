"""The rounding gap of the convolutional network at depth scale 1 and 3, over the course of training.

The paper: for deeper networks a large rounding error keeps OP behind, while IWP's stays small. The network is
CIFAR-10 S with the recipe of ``gatelight train``, whose learning rate falls to zero, so that the gap at the end is
that of a network that has converged.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from gatelight import plots
from gatelight.experiments.framework import figures
from gatelight.experiments.framework.cell import Cell
from gatelight.experiments.framework.experiment import Claim, Experiment, Judgement, Results, verdict
from gatelight.experiments.framework.networks import convolution, weight_decay, words
from gatelight.experiments.framework.training import Training

DEPTHS = (1, 3)
RUNS = [(p, depth) for depth in DEPTHS for p in ("op", "iwp")]

_RECIPES: dict[str, dict[str, Any]] = {
    "smoke": {},
    "cpu": {"steps": 9_000, "eval_every": 500},
    "paper": {"steps": 250_000, "eval_every": 1_000},
}
_SIZE_S: dict[str, Any] = {
    "dataset": "cifar10", "size": "S", "width": 32, "temperature": 20.0, "batch": 128, "lr": 0.02, "wide_head": False,
    "schedule": "cosine", "augment": "flip", "validation": 0.05,
}  # fmt: skip


def run(scale: str, parametrization: str, depth: int) -> Training:
    """The training of one network."""
    size = {} if scale == "smoke" else _SIZE_S
    return convolution(scale, depth, 0, parametrization, **size, **_RECIPES[scale])


def cells(scale: str) -> list[Cell]:
    """Both parametrizations at both depths, slow ones first."""
    return [run(scale, p, depth) for p, depth in reversed(RUNS)]


def _of(results: Results, parametrization: str, depth: int) -> dict[str, Any]:
    return results.one(
        Training,
        lambda c: c.config.model.gates.parametrization == parametrization and c.config.model.depth_scale == depth,
    )


def gap(result: dict[str, Any]) -> float:
    """Soft minus rounded test accuracy of the last weights, in points."""
    last = result["last"]
    return float(100 * (last["soft_accuracy"] - last["discrete_accuracy"]))


def _said(results: Results, depth: int) -> str:
    def one(p: str) -> str:
        last = _of(results, p, depth)["last"]
        soft, rounded = 100 * last["soft_accuracy"], 100 * last["discrete_accuracy"]
        return f"{p.upper()} {soft:.1f}% soft, {rounded:.1f}% rounded ({soft - rounded:.1f} points)"

    return f"D={depth}: {one('op')}; {one('iwp')}"


def _loses(results: Results) -> Judgement:
    op, iwp = (gap(_of(results, p, DEPTHS[-1])) for p in ("op", "iwp"))
    return Judgement(
        " ".join(_said(results, depth) + "." for depth in DEPTHS),
        verdict(op > 1 and op > iwp, iwp < min(op / 2, 2)),
        "one seed, last weights; hardly is read as less than half of OP's loss and less than two points",
    )


def _grows(results: Results) -> Judgement:
    op, iwp = (gap(_of(results, p, DEPTHS[-1])) - gap(_of(results, p, DEPTHS[0])) for p in ("op", "iwp"))
    return Judgement(
        f"from D={DEPTHS[0]} to D={DEPTHS[-1]} OP's gap grows by {op:.1f} points, IWP's by {iwp:.1f}",
        verdict(op > 0, op > iwp),
        "one seed",
    )


def _ahead(results: Results) -> Judgement:
    op, iwp = (100 * _of(results, p, DEPTHS[-1])["last"]["discrete_accuracy"] for p in ("op", "iwp"))
    return Judgement(f"IWP {iwp:.1f}%, OP {op:.1f}%", verdict(iwp > op), "one seed")


def draw(results: Results) -> Figure:
    """The gap over training, on validation; test accuracies at the end."""
    figure, (curve, bar) = plots.new_figure(2, width=4.4, height=3.3)
    found = {(c.config.model.gates.parametrization, c.config.model.depth_scale): r for c, r in results.found(Training)}
    for index, (p, depth) in enumerate(RUNS):
        if (p, depth) in found:
            rows = found[p, depth]["curve"]
            gaps = [100 * (s - d) for s, d in zip(rows["soft_accuracy"], rows["discrete_accuracy"], strict=True)]
            figures.line(curve, rows["step"], [gaps], f"{p.upper()}, D = {depth}", index)
    curve.axhline(0, color="black", linewidth=0.8)
    curve.set(xlabel="step", ylabel="soft - rounded validation accuracy [points]")
    curve.legend()
    values = {
        label: [[100 * found[one]["last"][what]] if one in found else [] for one in RUNS]
        for label, what in (("test, soft", "soft_accuracy"), ("test, rounded", "discrete_accuracy"))
    }
    figures.bars(bar, [f"{p.upper()}, D = {depth}" for p, depth in RUNS], values)
    bar.set(ylabel="accuracy [%]")
    figures.legend_above(bar)
    return figure


def settings(scale: str) -> str:
    """The networks in words."""
    config = run(scale, "iwp", 1).config
    decay = f"weight decay {weight_decay('op')} for OP, none for IWP"
    return f"{words(config, 1)}; learning rate: {config.optimization.schedule}; residual init; {decay}"


EXPERIMENT = Experiment(
    name="gap-convolutional",
    title="Rounding gap at depth scale 1 and 3, convolutional network",
    figures="fig:performance-bars-iwp-op-clgn, at other depths",
    settings=settings,
    cells=cells,
    claims=(
        Claim("in the deeper network OP loses accuracy in rounding, IWP hardly", "as drawn for D = 5", _loses),
        Claim("OP's gap grows with depth and faster than IWP's", "drawn for D = 5 only", _grows),
        Claim("at D = 3 IWP is ahead after rounding", "as drawn (CIFAR-100)", _ahead),
    ),
    draw=draw,
    place=70,
)
