"""Rounding: entry by entry it is optimal in every Minkowski norm; the largest weight of OP is not.

For a table ``w`` the nearest function is that of the smallest ``||w - g||_p`` over all 2**(2**n) functions g. The
paper's counter-example 0.4 A + 0.3 B + 0.3 OR has the table (0, 0.6, 0.7, 1): nearest is OR, OP takes A.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from gatelight import plots, truthtable
from gatelight.experiments.framework import figures
from gatelight.experiments.framework.cell import Cell, Context
from gatelight.experiments.framework.experiment import FAILS, HOLDS, Claim, Experiment, Judgement, Results, verdict
from gatelight.parametrize import IWP, OP, Init

NORMS = (0.5, 1.0, 2.0, 3.0, 10.0, float("inf"))
#: The paper's example: function and weight.
EXAMPLE = {"a": 0.4, "b": 0.3, "or": 0.3}


@dataclass(frozen=True)
class Roundings:
    """Round random gates and compare with the nearest function in each norm.

    Attributes:
        parametrization: ``iwp`` or ``op``.
        arity: Inputs of a gate.
        deviation: Of the gaussian parameters.
        samples: Gates.
        seed: Draws them.
    """

    version: ClassVar[int] = 1
    timed: ClassVar[bool] = False
    parametrization: str
    arity: int
    deviation: float
    samples: int
    seed: int

    @property
    def label(self) -> str:
        """Parametrization, arity and seed."""
        return f"{self.parametrization} arity={self.arity} deviation={self.deviation:g} seed={self.seed}"

    @property
    def seconds(self) -> float:
        """About how long it takes."""
        return 0.3 if self.arity < 3 else 2.0

    def run(self, _context: Context) -> dict[str, Any]:
        """For each norm the share of gates not rounded to a nearest function, and the mean of the excess distance."""
        maker = IWP(self.arity) if self.parametrization == "iwp" else OP(self.arity)
        generator = torch.Generator().manual_seed(self.seed)
        theta = maker.init(self.samples, Init("gaussian", std=self.deviation), generator)
        soft, rounded = maker.table(theta).double(), maker.rounded(theta).double()
        taken = distances(soft - rounded)
        nearest = torch.full_like(taken, float("inf"))
        for function in torch.from_numpy(truthtable.all_tables(self.arity)).double():
            nearest = torch.minimum(nearest, distances(soft - function))
        excess = taken - nearest
        return {
            "not_nearest": (excess > 1e-9).double().mean(1).tolist(),
            "excess": excess.mean(1).tolist(),
            "error": taken.mean(1).tolist(),
        }


@dataclass(frozen=True)
class Example:
    """The paper's counter-example; its only setting is the weights."""

    version: ClassVar[int] = 1
    timed: ClassVar[bool] = False
    weights: tuple[tuple[str, float], ...]

    @property
    def label(self) -> str:
        """The weights."""
        return " + ".join(f"{weight:g} {name.upper()}" for name, weight in self.weights)

    @property
    def seconds(self) -> float:
        """About how long it takes."""
        return 0.1

    def run(self, _context: Context) -> dict[str, Any]:
        """The table, what each parametrization rounds it to, and the distance to each function of the mixture."""
        names = list(truthtable.names(2))
        functions = torch.from_numpy(truthtable.all_tables(2)).double()
        index = {truthtable.name(row.astype(np.uint8)): i for i, row in enumerate(truthtable.all_tables(2))}
        weights = torch.zeros(1, len(names), dtype=torch.float64)
        for name, weight in self.weights:
            weights[0, index[name]] = weight
        op = OP(2)
        theta = weights.log()
        table = op.table(theta)
        iwp = IWP(2, "linear-st")  # its parameters are the table's entries themselves
        rounded = {"op": op.rounded(theta)[0], "iwp": iwp.rounded(table)[0]}
        return {
            "table": table[0].tolist(),
            "rounded": {name: truthtable.name(bits.numpy().astype(np.uint8)) for name, bits in rounded.items()},
            "distance": {name: distances(table - functions[index[name]])[:, 0].tolist() for name, _ in self.weights},
        }


def distances(difference: Tensor) -> Tensor:
    """``(sum |d|^p)^(1/p)`` over the entries of each table, for each norm, [norms, gates]."""
    size = difference.abs()
    rows = [size.amax(-1) if p == float("inf") else size.pow(p).sum(-1).pow(1 / p) for p in NORMS]
    return torch.stack(rows)


def cells(scale: str) -> list[Cell]:
    """Random gates of both parametrizations and the example."""
    samples = 2_000 if scale == "smoke" else 100_000
    gates = [Roundings(p, 2, d, samples, 0) for p in ("iwp", "op") for d in (0.5, 1.0, 2.0, 4.0)]
    return [*gates, Roundings("iwp", 3, 1.0, samples // 10, 0), Example(tuple(EXAMPLE.items()))]


def _optimal(results: Results) -> Judgement:
    found = results.all(Roundings, lambda c: c.parametrization == "iwp")
    worst = max(max(result["not_nearest"]) for _, result in found)
    gates = sum(cell.samples for cell, _ in found)
    norms = ", ".join(f"{p:g}" for p in NORMS)
    return Judgement(
        f"{worst:.0%} of {gates:,} random gates of arity 2 and 3 were not rounded to a nearest function, p = {norms}",
        HOLDS if worst == 0 else FAILS,
        "for p = inf several functions may be equally near",
    )


def _example(results: Results) -> Judgement:
    result = results.one(Example)
    rounded, far = result["rounded"], result["distance"]
    nearer = all(o < a for o, a in zip(far["or"], far["a"], strict=True))
    table = ", ".join(f"{v:.1f}" for v in result["table"])
    return Judgement(
        f"table ({table}); OP rounds to {rounded['op'].upper()}, IWP to {rounded['iwp'].upper()}",
        verdict(rounded == {"op": "a", "iwp": "or"}, nearer),
        "OR is nearer than A in every norm",
    )


def _op(results: Results) -> Judgement:
    found = results.all(Roundings, lambda c: c.parametrization == "op")
    shares = {cell.deviation: result["not_nearest"][NORMS.index(2.0)] for cell, result in found}
    text = ", ".join(f"{share:.1%} at sigma = {d:g}" for d, share in sorted(shares.items()))
    return Judgement(
        f"not nearest in the 2-norm: {text}",
        HOLDS if all(s > 0 for s in shares.values()) else FAILS,
        "gates with gaussian logits",
    )


def draw(results: Results) -> Figure:
    """Distances in the example, and how often random gates are rounded to a function that is not the nearest."""
    figure, (example, shares) = plots.new_figure(2, width=4.2, height=3.0)
    names = ["inf" if p == float("inf") else f"{p:g}" for p in NORMS]
    for _, result in results.found(Example):
        far = result["distance"]
        figures.bars(example, names, {f"to {n.upper()}": [[d] for d in far[n]] for n in ("a", "or")})
        example.set_title("0.4 A + 0.3 B + 0.3 OR: OP rounds to A, IWP to OR", fontsize=8)
    example.set(xlabel="p of the Minkowski norm", ylabel="distance from the soft table")
    example.legend()
    for index, p in enumerate(("op", "iwp")):
        found = [item for item in results.found(Roundings, lambda c: c.arity == 2) if item[0].parametrization == p]
        if found:
            wrong = [[100 * result["not_nearest"][NORMS.index(2.0)]] for _, result in found]
            figures.points(shares, [cell.deviation for cell, _ in found], wrong, p.upper(), index)
    shares.set(xlabel="standard deviation of the parameters", ylabel="not rounded to a nearest function [%]")
    shares.set_title("random gates, 2-norm", fontsize=8)
    shares.legend()
    return figure


EXPERIMENT = Experiment(
    name="rounding",
    title="Rounding entry by entry is optimal, rounding to the largest weight is not",
    figures="sec:minimal-rounding-iwp and the example of the section on the discretization error",
    settings=lambda scale: (
        f"{2_000 if scale == 'smoke' else 100_000:,} gates with gaussian parameters for each deviation, one seed"
    ),
    cells=cells,
    claims=(
        Claim("rounding an IWP gate is optimal in every Minkowski norm", "proof", _optimal),
        Claim("0.4 A + 0.3 B + 0.3 OR is nearest to OR but OP rounds it to A", "(0, 0.6, 0.7, 1)", _example),
        Claim("OP's largest weight is not always the nearest function", "example", _op),
    ),
    draw=draw,
    place=150,
)
