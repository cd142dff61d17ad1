"""Whether finer thermometers help: 3, 7, 15 and 31 thresholds for logic gate networks and for the paper's CNN.

The paper: the CNN gets better with the resolution, the convolutional logic network does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from gatelight import plots
from gatelight.data.catalog import TASKS
from gatelight.experiments.framework import figures
from gatelight.experiments.framework.accuracy import percent
from gatelight.experiments.framework.cell import Cell
from gatelight.experiments.framework.experiment import (
    FAILS,
    HOLDS,
    IN_PART,
    Claim,
    Experiment,
    Judgement,
    Results,
    verdict,
)
from gatelight.experiments.framework.networks import convolution, dense, few_seeds, words
from gatelight.experiments.framework.neural_network import NeuralNetwork
from gatelight.experiments.framework.training import Training

#: At ``cpu`` the first layers are wide enough to read all bits of 7 thresholds, but not of 31.
THRESHOLDS = {"smoke": (3, 15), "cpu": (3, 7, 31), "paper": (3, 7, 15, 31)}


def _neural(scale: str, thresholds: int, seed: int) -> NeuralNetwork:
    """The paper's CNN; ``cpu`` has 16 of its 256 channels."""
    if scale == "smoke":
        return NeuralNetwork("digits", thresholds, 8, 30, 50, 0.01, False, 10, seed)
    if scale == "cpu":
        return NeuralNetwork("cifar10", thresholds, 16, 2_000, 100, 0.001, True, 200, seed)
    return NeuralNetwork("cifar100", thresholds, 256, 250_000, 100, 0.001, True, 1_000, seed)


def cells(scale: str) -> list[Cell]:
    """The CNN and the dense logic network at each resolution."""
    return [
        *(_neural(scale, t, 0) for t in THRESHOLDS[scale]),
        *(_dense(scale, t, seed) for seed in few_seeds(scale) for t in THRESHOLDS[scale]),
    ]


def convolutional_cells(scale: str) -> list[Cell]:
    """The CNN and the convolutional logic network at each resolution."""
    return [
        *(_neural(scale, t, 0) for t in THRESHOLDS[scale]),
        *(_convolution(scale, t, seed) for seed in few_seeds(scale) for t in THRESHOLDS[scale]),
    ]


def _dense(scale: str, thresholds: int, seed: int) -> Training:
    wider = {"cpu": {"width": 12_000}}.get(scale, {})
    return dense(scale, 1, seed, thresholds=thresholds, **wider)


def _convolution(scale: str, thresholds: int, seed: int) -> Training:
    wider: dict[str, Any] = {"cpu": {"width": 24, "temperature": 17.32}}.get(scale, {})
    return convolution(scale, 1, seed, thresholds=thresholds, **wider)


def _by_threshold(found: Sequence[tuple[Any, dict[str, Any]]], part: str, what: str) -> dict[int, list[float]]:
    groups: dict[int, list[float]] = {}
    for cell, result in found:
        thresholds: int = (cell.config.model.thresholds or 0) if isinstance(cell, Training) else cell.thresholds
        groups.setdefault(thresholds, []).append(result[part][what])
    return dict(sorted(groups.items()))


def _series(groups: dict[int, list[float]]) -> str:
    return ", ".join(f"{t}: {percent(values)}" for t, values in groups.items())


def _neural_gains(results: Results) -> Judgement:
    groups = _by_threshold(results.all(NeuralNetwork), "last", "soft_accuracy")
    first, last = fmean(groups[min(groups)]), fmean(groups[max(groups)])
    return Judgement(_series(groups), verdict(last > first + 0.01), "noticeable is read as more than one point")


def _logic_does_not(results: Results) -> Judgement:
    groups = _by_threshold(results.all(Training), "best", "discrete_accuracy")
    coarsest = fmean(groups[min(groups)])
    gained = max(fmean(values) - coarsest for values in groups.values())
    shares = {c.config.model.thresholds or 0: share_read(c) for c, _ in results.all(Training)}
    unread = ", ".join(f"{100 * share:.0f}% of {t}" for t, share in sorted(shares.items()) if share < 1)
    return Judgement(
        _series(groups),
        FAILS if gained > 0.01 else IN_PART if unread else HOLDS,
        f"a finer one gains {100 * gained:.1f} points at most; improving is read as more than one"
        + (f"; the first layer can read only {unread} thresholds, so those had little chance" if unread else ""),
    )


def share_read(cell: Training) -> float:
    """The share of the encoder's bits that first-layer gates read at most: all of them in the paper's networks."""
    c = cell.config
    shape, thresholds, width = TASKS[c.dataset].shape, c.model.thresholds or 1, c.model.width or 1
    if c.model.model == "cdlgn":
        return min(1.0, (1 << c.model.tree_depth) * width / (9 * shape[0] * thresholds))
    return min(1.0, 2 * width / (math.prod(shape) * thresholds))


def _expressive(results: Results) -> Judgement:
    logic = _by_threshold(results.all(Training), "train", "soft_accuracy")
    neural = _by_threshold(results.all(NeuralNetwork), "train", "soft_accuracy")
    ahead = [fmean(logic[t]) >= fmean(neural[t]) - 0.01 for t in logic]
    return Judgement(
        f"training accuracy, logic network {_series(logic)}; CNN {_series(neural)}",
        verdict(*ahead),
        "the networks of this scale are smaller and trained for fewer steps than the paper's",
    )


def draw(results: Results) -> Figure:
    """Training and test accuracy against the number of thresholds."""
    figure, panels = plots.new_figure(2, width=3.8, height=3.0)
    networks: list[tuple[str, list[tuple[Any, dict[str, Any]]]]] = [
        ("logic network", list(results.found(Training))),
        ("CNN", list(results.found(NeuralNetwork))),
    ]
    ticks = sorted({t for _, found in networks for t in _by_threshold(found, "train", "soft_accuracy")})
    for axes, part in zip(panels, ("train", "test"), strict=True):
        for index, (name, found) in enumerate(networks):
            logic_test = part == "test" and name == "logic network"
            what = "discrete_accuracy" if logic_test else "soft_accuracy"
            key = "train" if part == "train" else "best" if logic_test else "last"
            groups = _by_threshold(found, key, what)
            if groups:
                figures.points(axes, list(groups), [[100 * v for v in g] for g in groups.values()], name, index)
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [str(t) for t in ticks])
        axes.minorticks_off()
        label = "training accuracy, soft [%]" if part == "train" else "test accuracy, logic rounded [%]"
        axes.set(xlabel="thresholds of the thermometer", ylabel=label)
        axes.legend()
    return figure


_CLAIMS = (
    Claim("the CNN improves noticeably with the resolution", "as drawn", _neural_gains),
    Claim("the logic network does not", "no improvement", _logic_does_not),
    Claim("the logic network fits the training set no worse than the CNN", "not behind", _expressive),
)


def settings(scale: str) -> str:
    """The networks in words."""
    return f"dense network: {words(_dense(scale, 3, 0).config, len(few_seeds(scale)))}; {_neural_words(scale)}"


def convolutional_settings(scale: str) -> str:
    """The networks in words."""
    return f"logic network: {words(_convolution(scale, 3, 0).config, len(few_seeds(scale)))}; {_neural_words(scale)}"


def _neural_words(scale: str) -> str:
    cnn = _neural(scale, 3, 0)
    return f"CNN: {cnn.channels} channels, {cnn.steps:,} steps of {cnn.batch} samples, lr {cnn.lr}, one seed"


EXPERIMENT = Experiment(
    name="resolution",
    title="Thermometer resolution, dense network and CNN",
    figures="fig:cnn-vs-clgn (there convolutional)",
    settings=settings,
    cells=cells,
    claims=_CLAIMS,
    draw=draw,
    place=130,
)

CONVOLUTIONAL_EXPERIMENT = Experiment(
    name="resolution-convolutional",
    title="Thermometer resolution, convolutional network and CNN",
    figures="fig:cnn-vs-clgn",
    settings=convolutional_settings,
    cells=convolutional_cells,
    claims=_CLAIMS,
    draw=draw,
    place=130,
)
