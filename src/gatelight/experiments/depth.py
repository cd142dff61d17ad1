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
from gatelight.config import TrainConfig
from gatelight.experiments import style
from gatelight.experiments.cell import Cell
from gatelight.experiments.experiment import Claim, Experiment, Judgement, Results, verdict
from gatelight.experiments.training import Training, convolutional, recipe, weight_decay, words

#: Depth scales of the dense network; those of the convolutional one at ``cpu`` are fewer, as it is slower.
DENSE = {"smoke": (1, 5), "cpu": (1, 2, 5, 10, 20), "paper": (1, 2, 3, 4, 5, 10, 20)}
CONVOLUTIONAL = {"smoke": (1, 5), "cpu": (1, 2, 5), "paper": (1, 2, 3, 4, 5)}
BARS = 5


def seeds(scale: str) -> range:
    """The seeds of a scale."""
    return range(2 if scale == "smoke" else 3)


def dense(scale: str, depth: int, seed: int, **changes: Any) -> Training:
    """A dense network of a depth, as in the experiments that share these runs."""
    return Training(recipe(scale, depth_scale=depth, seed=seed, **changes))


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
    return sorted({c.config.depth_scale for c, _ in results.all(Training)})


def _is(config: TrainConfig, parametrization: str, depth: int) -> bool:
    return config.parametrization == parametrization and config.depth_scale == depth


def _percent(values: list[float]) -> str:
    return f"{style.mean_spread(values, 100, 1)} %"


def _ahead(results: Results) -> Judgement:
    pairs = {d: (accuracies(results, "iwp", d), accuracies(results, "op", d)) for d in depths(results)}
    text = "; ".join(f"D={d}: {_percent(iwp)} and {_percent(op)}" for d, (iwp, op) in pairs.items())
    ahead = [fmean(iwp) > fmean(op) for iwp, op in pairs.values()]
    return Judgement(
        f"IWP and OP, {text}", verdict(*ahead), f"IWP's mean is ahead at {sum(ahead)} of {len(ahead)} depths"
    )


def _stable(results: Results) -> Judgement:
    first, last = depths(results)[0], depths(results)[-1]
    iwp = accuracies(results, "iwp", first), accuracies(results, "iwp", last)
    return Judgement(
        f"IWP {_percent(iwp[0])} at D={first}, {_percent(iwp[1])} at D={last}",
        verdict(fmean(iwp[1]) > fmean(iwp[0]) - 0.01),
        "not degrading is read as losing less than one point from the shallowest to the deepest network",
    )


def _gap(results: Results) -> Judgement:
    gaps = {}
    for p in ("op", "iwp"):
        soft, hard = accuracies(results, p, BARS, "soft_accuracy"), accuracies(results, p, BARS)
        gaps[p] = [s - h for s, h in zip(soft, hard, strict=True)]
    return Judgement(
        f"soft minus discretised at D={BARS}: OP {style.mean_spread(gaps['op'], 100, 1)}, "
        f"IWP {style.mean_spread(gaps['iwp'], 100, 1)} points",
        verdict(fmean(gaps["op"]) > 0.01, fmean(gaps["op"]) > 2 * fmean(gaps["iwp"])),
        "substantial is read as more than one point and more than twice IWP's",
    )


def _shallow(results: Results) -> Judgement:
    iwp, op = accuracies(results, "iwp", 1), accuracies(results, "op", 1)
    return Judgement(f"D=1: IWP {_percent(iwp)}, OP {_percent(op)}", verdict(abs(fmean(iwp) - fmean(op)) < 0.02))


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
    shown = sorted({c.config.depth_scale for c, _ in results.found(Training)})
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
    for cell, result in results.found(Training, lambda c: c.config.parametrization == parametrization):
        by_depth.setdefault(cell.config.depth_scale, []).append(100 * result["best"]["discrete_accuracy"])
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
        Claim("IWP is ahead of OP at every depth", "OP levels off near 28 % (CIFAR-100)", _ahead),
        Claim("depth does not degrade IWP", "stable to D = 20", _stable),
        Claim("at five-fold depth OP loses accuracy in rounding, IWP hardly", "as drawn", _gap),
    ),
    draw=draw,
)

CONVOLUTIONAL_EXPERIMENT = Experiment(
    name="depth-convolutional",
    title="Discretised accuracy against depth, convolutional network",
    figures="fig:performance-depth-iwp-op-clgn, fig:performance-bars-iwp-op-clgn",
    settings=partial(settings, convolution, CONVOLUTIONAL),
    cells=convolutional_cells,
    claims=(
        Claim("the shallow networks perform almost equally", "almost equal", _shallow),
        Claim("at D = 5 IWP is more than 1.3 times as accurate", "38.2 % and 29.0 % (CIFAR-100)", _deep),
        Claim("the gap at D = 5 is mainly OP's discretisation error", "as drawn", _gap),
    ),
    draw=draw,
)
