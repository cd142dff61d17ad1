"""Distribution of gate outputs over the layers, right after each heavy-tail init and as a residual network trains.

The paper: inits to one of AND, OR, XOR move all outputs to 0, 1 and 1/2; residual drifts to 1/2 in later layers
and clears up from the first layers on as it is trained; AND-OR keeps outputs near 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from matplotlib.figure import Figure

from gatelight import plots
from gatelight.experiments.framework import figures
from gatelight.experiments.framework.cell import Cell, Context, dataset
from gatelight.experiments.framework.experiment import Claim, Experiment, Judgement, Results, verdict
from gatelight.experiments.framework.gradients import LAYERS, network
from gatelight.experiments.framework.training import RunConfig, seconds_of, snapshots
from gatelight.nn import LogicNetwork
from gatelight.training.metrics import activation_histograms

BINS = 20
INITS = ("and", "or", "xor", "residual", "and-or", "uniform", "and-or-residual")


@dataclass(frozen=True)
class GateOutputs:
    """Histograms of the outputs of each layer on a batch of images, after some steps of training.

    Attributes:
        config: The network and its training; outputs are those of one batch of the same size.
        steps: The steps at which outputs are recorded, ascending.
    """

    version: ClassVar[int] = 1
    timed: ClassVar[bool] = False
    config: RunConfig
    steps: tuple[int, ...]

    @property
    def label(self) -> str:
        """Init and seed."""
        return f"{self.config.model.gates.init} after {', '.join(map(str, self.steps))} steps seed={self.config.seed}"

    @property
    def seconds(self) -> float:
        """About how long it takes on two cores."""
        return seconds_of(self.config, 1 + self.steps[-1])

    def run(self, context: Context) -> dict[str, Any]:
        """For each step and layer the shares of outputs in equal parts of [0, 1]."""
        images = dataset(self.config.dataset, context.data).test.x[: self.config.optimization.batch]
        x = torch.from_numpy(images).to(context.device)

        def measure(model: LogicNetwork) -> list[list[float]]:
            rows: list[list[float]] = activation_histograms(model.eval(), x, BINS).tolist()
            return [[round(value, 5) for value in row] for row in rows]

        return {"histograms": snapshots(self.config, self.steps, measure, context)}


def cells(scale: str) -> list[Cell]:
    """Each init at the start; the residual one also in training."""
    later = {"smoke": (0, 10, 20, 50), "cpu": (0, 100, 200, 500), "paper": (0, 100, 200, 500)}[scale]
    narrow = {"width": 200} if scale == "smoke" else {}
    return [GateOutputs(network(scale, init=init, **narrow), later if init == "residual" else (0,)) for init in INITS]


def _histograms(results: Results, init: str) -> list[list[list[float]]]:
    found: list[list[list[float]]] = results.one(GateOutputs, lambda c: c.config.model.gates.init == init)["histograms"]
    return found


def at_zero(row: Sequence[float]) -> float:
    """Share of outputs below 0.2."""
    return sum(row[: BINS // 5])


def at_one(row: Sequence[float]) -> float:
    """Share of outputs above 0.8."""
    return sum(row[-(BINS // 5) :])


def at_half(row: Sequence[float]) -> float:
    """Share of outputs between 0.4 and 0.6."""
    return sum(row[2 * BINS // 5 : 3 * BINS // 5])


def _single(results: Results) -> Judgement:
    last = {init: _histograms(results, init)[0][-1] for init in ("and", "or", "xor")}
    zero, one, half = at_zero(last["and"]), at_one(last["or"]), at_half(last["xor"])
    return Judgement(
        f"last layer: AND {zero:.0%} below 0.2, OR {one:.0%} above 0.8, XOR {half:.0%} within 0.4 to 0.6",
        verdict(zero > 0.9, one > 0.9, half > 0.9),
        "the paper's text swaps AND and OR; its figure and algebra say AND to 0, OR to 1",
    )


def _residual(results: Results) -> Judgement:
    rows = _histograms(results, "residual")[0]
    first, last = at_half(rows[0]), at_half(rows[-1])
    return Judgement(
        f"within 0.4 to 0.6: {first:.0%} in layer 1, {at_half(rows[LAYERS // 2]):.0%} in layer {LAYERS // 2 + 1}, "
        f"{last:.0%} in layer {LAYERS}",
        verdict(last > 0.5 and last > 2 * first),
        "read as more than half of the last layer's outputs, and twice the first layer's share",
    )


def _and_or(results: Results) -> Judgement:
    row, residual = _histograms(results, "and-or")[0][-1], _histograms(results, "residual")[0][-1]
    tails, others = at_zero(row) + at_one(row), at_zero(residual) + at_one(residual)
    return Judgement(
        f"last layer: {at_zero(row):.0%} below 0.2 and {at_one(row):.0%} above 0.8; residual {others:.0%} in all",
        verdict(tails > others, tails > 0.8),
        f"{tails:.0%} in all, where a uniform spread would have 40%; close to 0 and 1 is read as more than 80%",
    )


def _training(results: Results) -> Judgement:
    stages = _histograms(results, "residual")
    steps = results.all(GateOutputs, lambda c: c.config.model.gates.init == "residual")[0][0].steps
    front = [sum(at_half(row) for row in rows[: LAYERS // 2]) / (LAYERS // 2) for rows in stages]
    back = [sum(at_half(row) for row in rows[LAYERS // 2 :]) / (LAYERS - LAYERS // 2) for rows in stages]
    text = "; ".join(f"{s} batches {a:.0%} and {b:.0%}" for s, a, b in zip(steps, front, back, strict=True))
    return Judgement(
        f"within 0.4 to 0.6, mean of the first and the second half of the layers: {text}",
        verdict(front[-1] < front[0], back[-1] < back[0], all(a < b for a, b in zip(front, back, strict=True))),
        "expected: both fall, and the first half is always ahead",
    )


def draw(results: Results) -> Figure:
    """Each init at the start, then residual as it trains."""
    figure, panels = plots.new_figure(5, 2, width=2.7, height=2.4)
    shown = [(cell.config.model.gates.init, result["histograms"][0]) for cell, result in results.found(GateOutputs)]
    for cell, result in results.found(GateOutputs, lambda c: len(c.steps) > 1):
        later = list(zip(cell.steps, result["histograms"], strict=True))[1:]
        shown += [(f"residual, {step} batches", rows) for step, rows in later]
    for index, (title, rows) in enumerate(shown):
        figures.heat(figure, panels[index], rows, title, bar=index % 5 == 4)
    for empty in panels[len(shown) :]:
        empty.set_axis_off()
    return figure


def settings(scale: str) -> str:
    """The network in words."""
    c = network(scale)
    width = 200 if scale == "smoke" else c.model.width
    how = c.optimization
    return f"IWP, {LAYERS} layers of {width:,} gates, {how.batch} test images of {c.dataset}, lr {how.lr}, one seed"


EXPERIMENT = Experiment(
    name="gate-outputs",
    title="Distribution of gate outputs over the layers",
    figures="fig:iwp-ri-collapses-to-0.5, fig:ri-consecutive-collapse, fig:feature-dist-standalone-heavy-tail",
    settings=settings,
    cells=cells,
    claims=(
        Claim("AND, OR and XOR alone concentrate outputs at 0, 1 and 1/2", "as drawn", _single),
        Claim("with the residual init outputs drift to 1/2 in later layers", "as drawn", _residual),
        Claim("AND-OR keeps outputs close to 0 and 1", "as drawn", _and_or),
        Claim("a residual network clears up from earlier to later layers as it trains", "as drawn", _training),
    ),
    draw=draw,
    place=40,
)
