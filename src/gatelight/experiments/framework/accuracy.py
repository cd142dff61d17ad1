"""Accuracies of trained networks: in words, over the steps of a run, and as bars."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from gatelight.experiments.framework import figures

#: What the bars show: a label, and where a result of a training has the number.
_BARS = (
    ("training, soft", "train", "soft_accuracy"),
    ("test, soft", "best", "soft_accuracy"),
    ("test, rounded", "best", "discrete_accuracy"),
)


def percent(values: Sequence[float]) -> str:
    """Mean and deviation of shares.

    >>> percent([0.5, 0.6])
    '55.0 ± 7.1%'
    """
    return f"{figures.mean_and_deviation(values, 100, 1)}%"


def points(values: Sequence[float]) -> str:
    """Mean and deviation of differences between shares, in percentage points.

    >>> points([0.012])
    '1.2'
    """
    return figures.mean_and_deviation(values, 100, 1)


def running_best(values: Sequence[float]) -> list[float]:
    """The best so far.

    >>> running_best([1, 3, 2])
    [1, 3, 3]
    """
    return list(itertools.accumulate(values, max))


def best_so_far(results: Sequence[dict[str, Any]]) -> list[list[float]]:
    """The best rounded accuracy up to each evaluation of each training, in percent."""
    return [[100 * value for value in running_best(r["curve"]["discrete_accuracy"])] for r in results]


def bars(axes: Axes, names: Sequence[str], groups: Sequence[Sequence[dict[str, Any]]]) -> None:
    """Bars of soft and rounded accuracy, one group of trainings for each name."""
    values = {label: [[100 * r[part][what] for r in group] for group in groups] for label, part, what in _BARS}
    figures.bars(axes, names, values)
    axes.set(ylabel="accuracy [%]")
