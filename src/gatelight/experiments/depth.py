"""Discretised accuracy against depth, for the dense and the convolutional network.

The paper: IWP stays ahead of OP at every depth of the dense network; of the convolutional one, both start together
and at five-fold depth IWP is 1.3 times as accurate, because OP loses most of its accuracy in rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gatelight import plots
from gatelight.config import RunConfig
from gatelight.experiments import style
from gatelight.experiments.cell import Cell
from gatelight.experiments.experiment import Claim, Experiment, Judgement, Results, verdict
from gatelight.experiments.training import Training, convolutional, recipe, weight_decay, words

#: Depth scales; at ``cpu`` fewer than in the paper.
DENSE = {"smoke": (1, 5), "cpu": (1, 2, 5, 20), "paper": (1, 2, 3, 4, 5, 10, 20)}
CONVOLUTIONAL = {"smoke": (1, 5), "cpu": (1, 2, 5), "paper": (1, 2, 3, 4, 5)}
BARS = 5


def seeds(scale: str) -> range:
    """The seeds of a scale."""
    return range(2 if scale == "smoke" else 3)


def few_seeds(scale: str) -> range:
    """The seeds of experiments with many variants."""
    return range(3 if scale == "paper" else 2)


def dense(scale: str, depth: int, seed: int, **changes: Any) -> Training:
    """A dense network of a depth, as in the experiments that share these runs.

    At ``cpu`` it is wider than the recipe's, because the rounding error of deep networks falls with the width, and
    trained with smaller batches, which pays for it.
    """
    own = {"cpu": {"width": 8_000, "batch": 32}}.get(scale, {})
    return Training(recipe(scale, **{**own, "depth_scale": depth, "seed": seed, **changes}))


def convolution(scale: str, depth: int, seed: int, parametrization: str = "iwp", **changes: Any) -> Training:
    """A convolutional network of a depth."""
    decay = weight_decay(parametrization)
    pieces = 4 if scale == "paper" and depth >= 4 else 1
    config = convolutional(
        scale,
        depth_scale=depth,
        seed=seed,
        parametrization=parametrization,
        weight_decay=decay,
        accumulate=pieces,
        **changes,
    )
    return Training(config)


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


def accuracies(results: Results, parametrization: str, depth: int, what: str = "discrete_accuracy") -> list[float]:
    """Test accuracy of the best weights for each seed."""
    found = results.all(Training, lambda c: _is(c.config, parametrization, depth))
    return [result["best"][what] for _, result in found]


def depths(results: Results) -> list[int]:
    """The depth scales, ascending."""
    return sorted({c.config.model.depth_scale for c, _ in results.all(Training)})


def _is(config: RunConfig, parametrization: str, depth: int) -> bool:
    return config.model.gates.parametrization == parametrization and config.model.depth_scale == depth


def _percent(values: list[float]) -> str:
    return f"{style.mean_spread(values, 100, 1)} %"


def ahead(results: Results) -> Judgement:
    """IWP against OP at each depth."""
    pairs = {d: (accuracies(results, "iwp", d), accuracies(results, "op", d)) for d in depths(results)}
    text = "; ".join(f"D={d}: {_percent(iwp)} and {_percent(op)}" for d, (iwp, op) in pairs.items())
    leads = [fmean(iwp) > fmean(op) for iwp, op in pairs.values()]
    clear = [fmean(iwp) - fmean(op) > max(style.spread(iwp), style.spread(op)) for iwp, op in pairs.values()]
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
        f"IWP {_percent(iwp[0])} at D={first}, {_percent(iwp[1])} at D={last}",
        verdict(fmean(iwp[1]) > fmean(iwp[0]) - 0.01),
        "not degrading is read as losing less than one point from the shallowest to the deepest network",
    )


def gap(results: Results) -> Judgement:
    """What rounding costs at five-fold depth."""
    gaps = {}
    for p in ("op", "iwp"):
        soft, hard = accuracies(results, p, BARS, "soft_accuracy"), accuracies(results, p, BARS)
        gaps[p] = [s - h for s, h in zip(soft, hard, strict=True)]
    op, iwp = fmean(gaps["op"]), fmean(gaps["iwp"])
    return Judgement(
        f"soft minus discretised at D={BARS}: OP {style.mean_spread(gaps['op'], 100, 1)}, "
        f"IWP {style.mean_spread(gaps['iwp'], 100, 1)} points",
        verdict(op > 0.01 and op > iwp, iwp < min(op / 2, 0.02)),
        "OP's loss is read as more than one point and more than IWP's, hardly as less than half of it and two points",
    )


def _from_rounding(results: Results) -> Judgement:
    ahead = {}
    for what in ("soft", "discrete"):
        iwp, op = (fmean(accuracies(results, p, BARS, f"{what}_accuracy")) for p in ("iwp", "op"))
        ahead[what] = 100 * (iwp - op)
    return Judgement(
        f"at D={BARS} IWP is ahead by {ahead['discrete']:.1f} points rounded and by {ahead['soft']:.1f} soft",
        verdict(ahead["discrete"] > 0 and ahead["soft"] < ahead["discrete"] / 2),
        "mainly is read as: IWP is ahead after rounding, and by less than half of that before",
    )


def _shallow(results: Results) -> Judgement:
    iwp, op = accuracies(results, "iwp", 1), accuracies(results, "op", 1)
    return Judgement(
        f"D=1: IWP {_percent(iwp)}, OP {_percent(op)}",
        verdict(abs(fmean(iwp) - fmean(op)) < 0.02),
        "almost is read as within two points",
    )


def _deep(results: Results) -> Judgement:
    iwp, op = accuracies(results, "iwp", 5), accuracies(results, "op", 5)
    ratio = fmean(iwp) / fmean(op)
    return Judgement(
        f"D=5: IWP {_percent(iwp)}, OP {_percent(op)}: {ratio:.2f}x",
        verdict(ratio > 1.0, ratio > 1.3),
        "" if ratio > 1.3 else "the ratio of the paper is on CIFAR-100 with 250 000 steps of a far wider network",
    )


def draw(results: Results) -> Figure:
    """Accuracy against depth; soft and discretised bars at five-fold depth."""
    figure, (curve, bar) = plots.new_figure(2, width=4.2, height=3.1)
    for index, p in enumerate(("op", "iwp")):
        _curve(curve, results, p, index)
    curve.set_xscale("log")
    shown = sorted({c.config.model.depth_scale for c, _ in results.found(Training)})
    curve.set_xticks(shown, [str(d) for d in shown])
    curve.minorticks_off()
    curve.set(xlabel="depth scale D", ylabel="discretised test accuracy [%]")
    curve.legend()
    found = results.found(Training)
    values = {
        label: [[100 * r[part][what] for c, r in found if _is(c.config, p, BARS)] for p in ("op", "iwp")]
        for label, part, what in (
            ("training, soft", "train", "soft_accuracy"),
            ("test, soft", "best", "soft_accuracy"),
            ("test, discretised", "best", "discrete_accuracy"),
        )
    }
    style.bars(bar, ["OP", "IWP"], values)
    bar.set(ylabel="accuracy [%]")
    style.legend_above(bar, f"D = {BARS}")
    return figure


def _curve(axes: Axes, results: Results, parametrization: str, index: int) -> None:
    by_depth: dict[int, list[float]] = {}
    for cell, result in results.found(Training, lambda c: c.config.model.gates.parametrization == parametrization):
        by_depth.setdefault(cell.config.model.depth_scale, []).append(100 * result["best"]["discrete_accuracy"])
    if by_depth:
        at = sorted(by_depth)
        style.points(axes, at, [by_depth[d] for d in at], parametrization.upper(), index)


def settings(make: Callable[[str, int, int], Training], depths: dict[str, tuple[int, ...]], scale: str) -> str:
    """The networks in words."""
    cell = make(scale, 1, 0)
    return f"{words(cell.config, len(seeds(scale)))}; D = {', '.join(map(str, depths[scale]))}; residual init"


EXPERIMENT = Experiment(
    name="depth",
    title="Discretised accuracy against depth, dense network",
    figures="fig:performance-depth-iwp-op-lgn, fig:performance-bars-iwp-op-lgn",
    settings=partial(settings, dense, DENSE),
    cells=dense_cells,
    claims=(
        Claim("IWP is ahead of OP at every depth", "OP levels off near 28 % (CIFAR-100)", ahead),
        Claim("depth does not degrade IWP", "stable to D = 20", stable),
        Claim("at five-fold depth OP loses accuracy in rounding, IWP hardly", "as drawn", gap),
    ),
    draw=draw,
)

CONVOLUTIONAL_EXPERIMENT = Experiment(
    name="depth-convolutional",
    title="Discretised accuracy against depth, convolutional network",
    figures="fig:performance-depth-iwp-op-clgn, fig:performance-bars-iwp-op-clgn",
    settings=lambda scale: (
        f"{settings(convolution, CONVOLUTIONAL, scale)}; weight decay {weight_decay('op')} for OP, none for IWP"
    ),
    cells=convolutional_cells,
    claims=(
        Claim("the shallow networks perform almost equally", "almost equal", _shallow),
        Claim("at D = 5 IWP is more than 1.3 times as accurate", "38.2 % and 29.0 % (CIFAR-100)", _deep),
        Claim("the difference at D = 5 is mainly OP's discretisation error", "soft OP trails little", _from_rounding),
    ),
    draw=draw,
)
