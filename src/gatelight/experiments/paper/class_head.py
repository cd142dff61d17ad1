"""CIFAR-100's ten times as many classes: a lower temperature, or a ten times wider last layer.

The paper: the wider layer is better; at unchanged width, dividing the temperature by sqrt(10) is right, and dividing
it once more by sqrt(10) changes little.
"""

from __future__ import annotations

import math
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from gatelight import plots
from gatelight.experiments.framework import figures
from gatelight.experiments.framework.accuracy import percent
from gatelight.experiments.framework.cell import Cell
from gatelight.experiments.framework.experiment import NOT_RUN, Claim, Experiment, Judgement, Results, verdict
from gatelight.experiments.framework.networks import convolution, dense, few_seeds, words
from gatelight.experiments.framework.training import Training

#: Temperature of the CIFAR-10 network at each scale, dense; ``smoke`` uses the digits and has no wide head.
TEMPERATURES = {"smoke": 10.0, "cpu": 25.0, "paper": 100.0}
#: The same for the convolutional networks.
CONVOLUTIONAL_TEMPERATURES = {"smoke": 5.0, "cpu": 14.14, "paper": 40.0}
#: Wide head, and how often the temperature is divided by sqrt(10).
VARIANTS = {"tau": (False, 0), "tau/√10": (False, 1), "tau/10": (False, 2), "10x wider, tau": (True, 0)}
PLAIN, ROOT, TENTH, WIDE = VARIANTS


def _changes(scale: str, name: str, temperature: float) -> dict[str, Any]:
    wide, divided = VARIANTS[name]
    return {
        "dataset": "digits" if scale == "smoke" else "cifar100",
        "temperature": round(temperature / math.sqrt(10) ** divided, 3),
        "wide_head": wide,
    }


def _names(scale: str) -> list[str]:
    return [name for name in VARIANTS if scale != "smoke" or name != WIDE]


def cells(scale: str) -> list[Cell]:
    """Each head of the dense network of depth 1."""
    return [
        dense(scale, 1, seed, **_changes(scale, name, TEMPERATURES[scale]))
        for seed in few_seeds(scale)
        for name in _names(scale)
    ]


def convolutional_cells(scale: str) -> list[Cell]:
    """Each head of the convolutional network of depth 1."""
    return [
        convolution(scale, 1, seed, **_changes(scale, name, CONVOLUTIONAL_TEMPERATURES[scale]))
        for seed in few_seeds(scale)
        for name in _names(scale)
    ]


def _groups(results: Results, found: list[tuple[Training, dict[str, Any]]]) -> dict[str, list[float]]:
    """Accuracies by variant; temperatures descend through the variants of unchanged width."""
    temperatures = sorted(
        {c.config.model.temperature or 0.0 for c in _trainings(results) if not c.config.model.wide_head}
    )[::-1]
    groups: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for cell, result in found:
        rank = 0 if cell.config.model.wide_head else temperatures.index(cell.config.model.temperature or 0.0)
        name = WIDE if cell.config.model.wide_head else (PLAIN, ROOT, TENTH)[rank]
        groups[name].append(result["best"]["discrete_accuracy"])
    return groups


def _trainings(results: Results) -> list[Training]:
    return [cell for cell in results.wanted if isinstance(cell, Training)]


def _wider(results: Results) -> Judgement:
    groups = _groups(results, results.all(Training))
    if not groups[WIDE]:
        return Judgement("", NOT_RUN, "this scale has no wide head")
    wide, root = groups[WIDE], groups[ROOT]
    return Judgement(
        f"wider {percent(wide)}, lower temperature {percent(root)}",
        verdict(fmean(wide) > fmean(root)),
    )


def _temperature(results: Results) -> Judgement:
    groups = _groups(results, results.all(Training))
    plain, root, tenth = (fmean(groups[name]) for name in (PLAIN, ROOT, TENTH))
    text = ", ".join(f"{name}: {percent(groups[name])}" for name in (PLAIN, ROOT, TENTH))
    return Judgement(
        text,
        verdict(root >= plain, abs(tenth - root) < 0.02),
        "minor changes are read as less than two points",
    )


def draw(results: Results) -> Figure:
    """Test accuracy of each head."""
    figure, (axes,) = plots.new_figure(width=4.6, height=3.2)
    groups = {n: g for n, g in _groups(results, results.found(Training)).items() if g}
    figures.bars(axes, list(groups), {"test, rounded": [[100 * v for v in g] for g in groups.values()]})
    axes.set(ylabel="rounded test accuracy [%]", xlabel="head")
    return figure


_CLAIMS = (
    Claim("a ten times wider last layer improves on a lower temperature", "better", _wider),
    Claim("dividing the temperature by sqrt(10) is right, once more changes little", "minor changes", _temperature),
)

EXPERIMENT = Experiment(
    name="class-head",
    title="Head width and temperature for 100 classes, dense network",
    figures="fig:cifar-100-width-temp-increase-lgn",
    settings=lambda scale: words(_trainings(Results(cells(scale), []))[0].config, len(few_seeds(scale))),
    cells=cells,
    claims=_CLAIMS,
    draw=draw,
    place=120,
)

CONVOLUTIONAL_EXPERIMENT = Experiment(
    name="class-head-convolutional",
    title="Head width and temperature for 100 classes, convolutional network",
    figures="fig:cifar-100-width-temp-increase-clgn",
    settings=lambda scale: words(_trainings(Results(convolutional_cells(scale), []))[0].config, len(few_seeds(scale))),
    cells=convolutional_cells,
    claims=_CLAIMS,
    draw=draw,
    place=120,
)
