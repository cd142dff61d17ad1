"""What a training step costs: parameter memory and time of OP and IWP against the batch size, and of the estimators."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import cross_entropy

from gatelight import ops, plots
from gatelight.experiments.framework import figures
from gatelight.experiments.framework.cell import Cell, Context, dataset
from gatelight.experiments.framework.experiment import Claim, Experiment, Judgement, Results, verdict
from gatelight.experiments.framework.training import build, from_flat
from gatelight.nn import LogicNetwork
from gatelight.ops.backends import cpu

PARAMETRIZATIONS = ("op", "iwp")
ESTIMATORS = ("sin", "sigmoid-st", "linear-st")


@dataclass(frozen=True)
class Cost:
    """Times of forward and backward of several networks, interleaved so that a busy moment hits all of them.

    Attributes:
        dataset: Its first images are the batches.
        layers: Of each network.
        width: Gates of a layer.
        batch: Samples.
        networks: Each a parametrization, or an estimator of IWP.
        repeats: Batches that are timed, after one that is not.
    """

    version: ClassVar[int] = 1
    timed: ClassVar[bool] = True
    dataset: str
    layers: int
    width: int
    batch: int
    networks: tuple[str, ...]
    repeats: int

    @property
    def label(self) -> str:
        """Networks and batch size."""
        return f"{' and '.join(self.networks)}, batch {self.batch}"

    @property
    def seconds(self) -> float:
        """About how long it takes on two cores."""
        gates = self.layers * self.width
        step = gates * (max(self.batch, 16) * 1.3e-9 + 10e-9)
        return len(self.networks) * (1 + (self.repeats + 1) * step)

    def run(self, context: Context) -> dict[str, Any]:
        """Seconds of each pass of each network, and the bytes of its parameters."""
        train = dataset(self.dataset, context.data).train
        nets = {name: self._build(name).to(context.device).train() for name in self.networks}
        sizes = {name: sum(p.numel() * p.element_size() for p in net.parameters()) for name, net in nets.items()}
        times: dict[str, dict[str, list[float]]] = {name: {"forward": [], "backward": []} for name in nets}
        for turn in range(self.repeats + 1):
            at = turn * self.batch % (len(train) - self.batch)
            x = torch.from_numpy(train.x[at : at + self.batch]).to(context.device)
            y = torch.from_numpy(train.y[at : at + self.batch]).to(context.device)
            for name, net in nets.items():
                forward, backward = _time(net, net.encode(x), y)
                if turn:
                    times[name]["forward"].append(forward)
                    times[name]["backward"].append(backward)
            context.advanced((turn + 1) / (self.repeats + 1), self.label)
        threads = cpu.get_threads() if ops.get_backend() == "cpu" else torch.get_num_threads()
        return {"bytes": sizes, "times": times, "threads": threads, "device": context.device}

    def _build(self, name: str) -> LogicNetwork:
        options: dict[str, Any] = {"parametrization": name} if name in PARAMETRIZATIONS else {"estimator": name}
        size = {"dataset": self.dataset, "layers": self.layers, "width": self.width}
        return build(from_flat({**size, **options, "seed": 0}))


def _time(net: LogicNetwork, bits: Tensor, y: Tensor) -> tuple[float, float]:
    """Seconds of forward and backward; the work of a GPU is waited for."""
    net.zero_grad(set_to_none=True)
    begun = _now(bits)
    loss = cross_entropy(net.scores(bits), y)
    middle = _now(bits)
    loss.backward()
    return middle - begun, _now(bits) - middle


def _now(where: Tensor) -> float:
    if where.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter()


def cells(scale: str) -> list[Cell]:
    """Both parametrizations at each batch size, the estimators at one."""
    name, layers, width, batches, repeats = {
        "smoke": ("digits", 8, 200, (1, 20), 3),
        "cpu": ("cifar100", 80, 12_000, (1, 5, 10, 25, 50, 100), 20),
        "paper": ("cifar100", 80, 128_000, (1, 5, 10, 25, 50, 100), 20),
    }[scale]
    return [
        *(Cost(name, layers, width, batch, PARAMETRIZATIONS, repeats) for batch in batches),
        Cost(name, layers, width, 20 if scale == "smoke" else 25, ESTIMATORS, repeats),
    ]


def _costs(results: Results) -> list[tuple[Cost, dict[str, Any]]]:
    return results.all(Cost, lambda c: c.networks == PARAMETRIZATIONS)


def speed_ups(result: dict[str, Any], what: str) -> list[float]:
    """OP's time over IWP's, for each batch."""
    op, iwp = (result["times"][name][what] for name in PARAMETRIZATIONS)
    return [a / b for a, b in zip(op, iwp, strict=True)]


def _median(result: dict[str, Any], name: str, what: str) -> float:
    times: list[float] = result["times"][name][what]
    return statistics.median(times)


def _memory(results: Results) -> Judgement:
    _, result = _costs(results)[0]
    op, iwp = (result["bytes"][name] for name in PARAMETRIZATIONS)
    return Judgement(f"{op / 1e6:.1f} MB and {iwp / 1e6:.1f} MB: {op / iwp:g}x", verdict(op == 4 * iwp))


def _small_batch(results: Results) -> Judgement:
    result = min(_costs(results), key=lambda item: item[0].batch)[1]
    forward, backward = (statistics.median(speed_ups(result, what)) for what in ("forward", "backward"))
    return Judgement(
        f"forward {forward:.2f}x, backward {backward:.2f}x faster at batch 1",
        verdict(forward > 1.05, backward > 1.3),
        "faster is read as 1.05x and 1.3x; "
        f"kernels for tiles of 16 samples on {result['device']}, threads: {result['threads']}; medians over batches",
    )


def _large_batch(results: Results) -> Judgement:
    ordered = sorted(_costs(results), key=lambda item: item[0].batch)
    both = [[statistics.median(speed_ups(r, what)) for _, r in ordered] for what in ("forward", "backward")]
    text = "; ".join(
        f"{what} {values[0]:.2f}x -> {values[-1]:.2f}x"
        for what, values in zip(("forward", "backward"), both, strict=True)
    )
    return Judgement(
        f"batch {ordered[0][0].batch} -> {ordered[-1][0].batch}: {text}",
        verdict(*(values[-1] < values[0] for values in both)),
    )


def _estimators(results: Results) -> Judgement:
    result = results.one(Cost, lambda c: c.networks == ESTIMATORS)
    saved = {
        what: 1 - _median(result, "linear-st", what) / _median(result, "sin", what) for what in ("forward", "backward")
    }
    return Judgement(
        f"linear-st saves {saved['forward']:.0%} of forward and {saved['backward']:.0%} of backward",
        verdict(saved["forward"] > 0.05, abs(saved["backward"]) < 0.1),
        "medians; read as more than 5% of forward and less than 10% of backward; "
        "the map from parameters to tables is a small part of a step in our kernels",
    )


def draw(results: Results) -> Figure:
    """Times against the batch size, parameter memory, estimators."""
    figure, (forward, backward, memory, estimators) = plots.new_figure(4, width=2.9, height=2.8)
    found = results.found(Cost, lambda c: c.networks == PARAMETRIZATIONS)
    for axes, what in ((forward, "forward"), (backward, "backward")):
        for index, name in enumerate(PARAMETRIZATIONS):
            groups = [_milliseconds(result["times"][name][what]) for _, result in found]
            figures.points(axes, [cell.batch for cell, _ in found], groups, name.upper(), index)
        axes.set(xlabel="batch [samples]", ylabel=f"{what} pass [ms]", ylim=(0, None))
        axes.legend()
    if found:
        sizes = [[found[0][1]["bytes"][name] / 1e6] for name in PARAMETRIZATIONS]
        figures.bars(memory, [name.upper() for name in PARAMETRIZATIONS], {"parameters": sizes})
    memory.set(ylabel="parameters [MB]")
    for _, result in results.found(Cost, lambda c: c.networks == ESTIMATORS):
        passes = {w: [_milliseconds(result["times"][e][w]) for e in ESTIMATORS] for w in ("forward", "backward")}
        figures.bars(estimators, ESTIMATORS, passes)
        figures.legend_above(estimators)
        estimators.tick_params(axis="x", labelsize=7)
    estimators.set(ylabel="pass [ms]")
    return figure


def _milliseconds(seconds: Sequence[float]) -> list[float]:
    return [1e3 * s for s in seconds]


def settings(scale: str) -> str:
    """The networks in words."""
    cell = cells(scale)[0]
    assert isinstance(cell, Cost)
    return f"{cell.layers} layers of {cell.width:,} gates, {cell.repeats} batches of {cell.dataset}, residual init"


EXPERIMENT = Experiment(
    name="training-cost",
    title="Parameter memory and time of a training step at 20-fold depth",
    figures="fig:frontpage-performance-bars-5d, fig:train-time, fig:iwp-act-st-runtime",
    settings=settings,
    cells=cells,
    claims=(
        Claim("IWP needs 4x less parameter memory", "4x", _memory),
        Claim("at batch 1 forward and backward are faster", "1.11x, 1.86x", _small_batch),
        Claim("the speed-up fades with the batch size", "fades", _large_batch),
        Claim("linear-st speeds forward up and hardly changes backward", "22%, 4%", _estimators),
    ),
    draw=draw,
    place=10,
)
