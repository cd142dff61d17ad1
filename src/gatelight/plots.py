"""Pictures of runs and networks, in one style that prints well and is safe for color-blind readers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from gatelight.circuit import Circuit
from gatelight.circuit.describe import kinds
from gatelight.files import replacing

#: Okabe and Ito's colors.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")

STYLE: dict[Any, Any] = {
    "axes.prop_cycle": cycler(color=COLORS),
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "grid.alpha": 0.3,
    "font.size": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "svg.hashsalt": "gatelight",
}


def new_figure(columns: int = 1, rows: int = 1, width: float = 4.5, height: float = 3.2) -> tuple[Figure, list[Axes]]:
    """A figure with a grid of axes, row by row."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained", dpi=150)
        axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.flat)


def save(figure: Figure, path: Path) -> None:
    """Write a picture atomically; the file's ending gives the format."""
    with replacing(path) as temporary, mpl.rc_context(STYLE):
        figure.savefig(temporary, format=path.suffix.removeprefix("."), metadata=_METADATA.get(path.suffix))


_METADATA: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".png": {"Software": None}}


def curves(rows: Sequence[dict[str, Any]], title: str) -> Figure:
    """Loss, both accuracies and the rounding gap over steps."""
    if not rows:
        raise ValueError("there is nothing to plot: the run has no evaluations yet")
    figure, (loss, accuracy) = new_figure(2)
    steps = [row["step"] for row in rows]
    loss.plot(steps, [row["loss"] for row in rows], label="training, soft")
    loss.plot(steps, [row["soft_loss"] for row in rows], label=f"{rows[-1]['on']}, soft")
    loss.set(xlabel="step", ylabel="cross-entropy [nats]")
    loss.legend()
    soft = 100 * np.array([row["soft_accuracy"] for row in rows])
    rounded = 100 * np.array([row["discrete_accuracy"] for row in rows])
    accuracy.plot(steps, soft, label="soft")
    accuracy.plot(steps, rounded, label="rounded")
    accuracy.fill_between(steps, soft, rounded, color=COLORS[6], alpha=0.12, linewidth=0, label="gap")
    accuracy.set(xlabel="step", ylabel=f"accuracy on {rows[-1]['on']} [%]")
    accuracy.legend(loc="lower right")
    figure.suptitle(title)
    return figure


def comparison(runs: Sequence[tuple[str, Sequence[dict[str, Any]]]]) -> Figure:
    """Rounded accuracy over steps of several runs."""
    figure, (axes,) = new_figure(width=6.0, height=4.0)
    for name, rows in runs:
        if not rows:
            raise ValueError(f"there is nothing to plot: {name} has no evaluations yet")
        accuracy = 100 * np.array([row["discrete_accuracy"] for row in rows])
        axes.plot([row["step"] for row in rows], accuracy, label=name)
    axes.set(xlabel="step", ylabel="rounded accuracy [%]")
    axes.legend(loc="lower right")
    return figure


def inspection(
    gradients: Sequence[float],
    histograms: NDArray[np.float64],
    functions: Sequence[dict[str, float]],
    distances: Sequence[float],
    title: str,
) -> Figure:
    """The measures of a network for each layer: gradients, gate outputs, functions and distance from rounding."""
    figure, (norm, output, share, distance) = new_figure(2, 2)
    layers = np.arange(1, len(gradients) + 1)
    if all(g > 0 for g in gradients):
        norm.set_yscale("log")
    norm.plot(layers, gradients, marker="o", markersize=3)
    norm.set(xlabel="layer", ylabel="mean |dLoss/dtheta|")
    picture = output.imshow(
        histograms.T,
        origin="lower",
        aspect="auto",
        extent=(0.5, len(layers) + 0.5, 0, 1),
        cmap="viridis",
        norm=PowerNorm(0.4),  # most outputs are near 0 and 1; the few in between should be visible
    )
    output.grid(visible=False)
    output.set(xlabel="layer", ylabel="gate output")
    figure.colorbar(picture, ax=output, label="share of outputs")
    _stack_shares(share, layers, functions)
    distance.bar(layers, distances)
    distance.set(xlabel="layer", ylabel="mean distance of tables from {0, 1}", ylim=(0, 0.5))
    figure.suptitle(title)
    return figure


def circuit(net: Circuit, reads: NDArray[np.int64], title: str) -> Figure:
    """A circuit: gates by kind, gates by level, fan-out, and how often each feature is read."""
    figure, (kind, level, fanout, feature) = new_figure(2, 2)
    common = kinds(net).most_common(12)
    kind.barh([name for name, _ in common][::-1], [count for _, count in common][::-1])
    kind.set(xlabel="gates")
    by_level = np.bincount(net.levels[net.inputs :], minlength=2)[1:]
    level.bar(np.arange(1, len(by_level) + 1), by_level)
    level.set(xlabel="level", ylabel="gates")
    counts = np.bincount(np.minimum(net.fanout[net.inputs :], 20))
    fanout.bar(np.arange(len(counts)), counts)
    fanout.set(xlabel="fan-out of a gate (20: or more)", ylabel="gates")
    shape = net.feature_shape if len(net.feature_shape) == 3 else (1, 1, net.features)
    picture = feature.imshow(reads.reshape(shape).sum(0), aspect="equal" if shape[1] > 1 else "auto", cmap="viridis")
    feature.grid(visible=False)
    figure.colorbar(picture, ax=feature, label="gates that read the feature")
    figure.suptitle(title)
    return figure


def _stack_shares(axes: Axes, layers: NDArray[np.int64], functions: Sequence[dict[str, float]], most: int = 7) -> None:
    """Stacked bars of the most common functions; the others share one bar."""
    total: dict[str, float] = {}
    for layer in functions:
        for name, value in layer.items():
            total[name] = total.get(name, 0.0) + value
    common = sorted(total, key=lambda name: -total[name])[:most]
    bottom = np.zeros(len(layers))
    for name, color in zip(common, COLORS, strict=False):
        values = np.array([layer.get(name, 0.0) for layer in functions])
        axes.bar(layers, values, bottom=bottom, label=name, color=color)
        bottom += values
    axes.bar(layers, 1 - bottom, bottom=bottom, label="others", color="#BBBBBB")
    axes.set(xlabel="layer", ylabel="share of rounded gates", ylim=(0, 1))
    axes.legend(fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5))
