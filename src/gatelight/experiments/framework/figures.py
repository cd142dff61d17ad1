"""Parts that the figures share, in the style of :mod:`gatelight.plots`."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from gatelight.plots import COLORS

#: Markers and dashes keep lines apart in black and white.
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (5, 5)))


def deviation(values: Sequence[float]) -> float:
    """Standard deviation over seeds; 0 for a single seed."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def mean_and_deviation(values: Sequence[float], scale: float = 1.0, digits: int = 2) -> str:
    """``mean ± standard deviation`` in words.

    >>> mean_and_deviation([0.5, 0.6], scale=100, digits=1)
    '55.0 ± 7.1'
    """
    mean = f"{scale * statistics.fmean(values):.{digits}f}"
    return f"{mean} ± {scale * deviation(values):.{digits}f}" if len(values) > 1 else mean


def line(axes: Axes, x: Sequence[float], rows: Sequence[Sequence[float]], label: str, index: int, **style: Any) -> None:
    """The mean over seeds with a band of one standard deviation; on a log axis mean and band are of logarithms."""
    values = np.array(rows, float)
    log = axes.get_yscale() == "log"
    if log:
        values = np.log10(np.where(values > 0, values, np.nan))
    middle, low, high = _band(values)
    if log:
        middle, low, high = 10**middle, 10**low, 10**high
    dash = DASHES[index % len(DASHES)]
    (drawn,) = axes.plot(x, middle, label=label, linestyle=dash, color=COLORS[index % len(COLORS)], **style)
    if len(values) > 1:
        axes.fill_between(x, low, high, color=drawn.get_color(), alpha=0.2, linewidth=0)


def _band(values: Any) -> tuple[Any, Any, Any]:
    middle = values.mean(0)
    half = values.std(0, ddof=1) if len(values) > 1 else np.zeros_like(middle)
    return middle, middle - half, middle + half


def points(
    axes: Axes, x: Sequence[float], groups: Sequence[Sequence[float]], label: str, index: int, **style: Any
) -> None:
    """Means over seeds with error bars of one standard deviation, joined by a line."""
    axes.errorbar(
        x,
        [statistics.fmean(g) for g in groups],
        yerr=_errors(groups),
        label=label,
        marker=MARKS[index % len(MARKS)],
        linestyle=DASHES[index % len(DASHES)],
        color=COLORS[index % len(COLORS)],
        markersize=4,
        capsize=2,
        **style,
    )


def bars(axes: Axes, names: Sequence[str], series: Mapping[str, Sequence[Sequence[float]]]) -> None:
    """Grouped bars, one group for each name and one bar for each series, with error bars over seeds."""
    width = 0.8 / len(series)
    hatches = ("", "///", "...", "xxx", "\\\\\\")
    for index, (label, groups) in enumerate(series.items()):
        at = np.arange(len(names)) + (index - (len(series) - 1) / 2) * width
        axes.bar(
            at,
            [statistics.fmean(g) if g else 0.0 for g in groups],
            width,
            yerr=_errors(groups),
            capsize=2,
            label=label,
            color=COLORS[index % len(COLORS)],
            hatch=hatches[index % len(hatches)],
            edgecolor="white",
            error_kw={"linewidth": 1},
        )
    axes.set_xticks(range(len(names)), names)
    axes.grid(visible=False, axis="x")


def heat(figure: Figure, axes: Axes, histograms: Sequence[Sequence[float]], title: str, *, bar: bool = True) -> None:
    """Histograms of gate outputs over the layers, one column for each layer."""
    picture = axes.imshow(
        np.array(histograms).T,
        origin="lower",
        aspect="auto",
        extent=(0.5, len(histograms) + 0.5, 0, 1),
        cmap="viridis",
        norm=PowerNorm(0.4, 0, 1),  # a few outputs between the peaks should still show
    )
    axes.grid(visible=False)
    axes.set(xlabel="layer", ylabel="gate output", title=title)
    if bar:
        figure.colorbar(picture, ax=axes, label="share of outputs")


def _errors(groups: Sequence[Sequence[float]]) -> list[float] | None:
    return [deviation(g) for g in groups] if any(len(g) > 1 for g in groups) else None


def legend_above(axes: Axes, title: str = "") -> None:
    """A legend over the axes, where it hides no bar."""
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=7, title=title, frameon=False)
