"""How the redundant functions of OP cancel each other in the derivative of a gate with respect to its input.

With i.i.d. logits ``dg/dp = sum_{i<=8} (omega_i - omega_{17-i}) dg_i/dp`` is a sum of sign-symmetric terms and
concentrates around 0. A residual init of strength z passes ``(e^z - 1) / (e^z + 15)`` of a gradient through a layer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from matplotlib.figure import Figure

from gatelight import ops, parametrize, plots
from gatelight.experiments.framework.cell import Cell, Context
from gatelight.experiments.framework.experiment import FAILS, HOLDS, Claim, Experiment, Judgement, Results, verdict
from gatelight.parametrize import Init

BINS = 81
NEAR_ZERO = 0.1


@dataclass(frozen=True)
class Derivatives:
    """Derivatives ``dg/dp`` at p = q = 1/2 of fresh gates.

    Attributes:
        parametrization: ``op`` or ``iwp``.
        init: ``gaussian`` or ``residual``.
        strength: Standard deviation of the gaussian init, or z of the residual one.
        samples: Gates.
        seed: Draws them.
    """

    version: ClassVar[int] = 1
    timed: ClassVar[bool] = False
    parametrization: str
    init: str
    strength: float
    samples: int
    seed: int

    @property
    def label(self) -> str:
        """Parametrization, init and seed."""
        return f"{self.parametrization} {self.init} {self.strength:g} seed={self.seed}"

    @property
    def seconds(self) -> float:
        """About how long it takes."""
        return 0.1

    def run(self, _context: Context) -> dict[str, Any]:
        """Histogram over [-1, 1], mean, spread and the share near zero."""
        maker = parametrize.make(self.parametrization)
        generator = torch.Generator().manual_seed(self.seed)
        gaussian = self.init == "gaussian"
        init = Init(self.init, None, self.strength) if gaussian else Init(self.init, self.strength, 0.0)
        theta = maker.init(self.samples, init, generator)
        x = torch.full((1, 2 * self.samples), 0.5, requires_grad=True)
        fanin = torch.arange(2 * self.samples, dtype=torch.int32).view(-1, 2)
        (gradient,) = torch.autograd.grad(ops.lut(x, fanin, maker.table(theta)).sum(), x)
        by_first = gradient[0, ::2].double()
        return {
            "histogram": (torch.histc(by_first.float(), BINS, -1.0, 1.0) / self.samples).tolist(),
            "mean": float(by_first.mean()),
            "mean_magnitude": float(by_first.abs().mean()),
            "deviation": float(by_first.std()),
            "near_zero": float((by_first.abs() < NEAR_ZERO).double().mean()),
        }


def remaining(z: float) -> float:
    """The share of a gradient that a residual layer of strength z lets through, ``(e^z - 1) / (e^z + 15)``.

    >>> round(remaining(5), 3), round(remaining(3), 3)
    (0.902, 0.544)
    """
    return (math.exp(z) - 1) / (math.exp(z) + 15)


def cells(_scale: str) -> list[Cell]:
    """Two variances of OP, IWP for comparison, and two strengths of the residual init."""
    drawn = [Derivatives("op", "gaussian", s, 10_000, 0) for s in (1.0, 4.0)]
    return [
        *drawn,
        Derivatives("iwp", "gaussian", 1.0, 10_000, 0),
        *(Derivatives("op", "residual", z, 100, 0) for z in (3.0, 5.0)),
    ]


def _result(results: Results, parametrization: str, init: str, strength: float) -> dict[str, Any]:
    return results.one(
        Derivatives, lambda c: (c.parametrization, c.init, c.strength) == (parametrization, init, strength)
    )


def _narrow(results: Results) -> Judgement:
    op, iwp = _result(results, "op", "gaussian", 1.0), _result(results, "iwp", "gaussian", 1.0)
    holds = op["near_zero"] > 0.5 and abs(op["mean"]) < 0.01
    return Judgement(
        f"{op['near_zero']:.1%} of |dg/dp| < {NEAR_ZERO}, mean |dg/dp| {op['mean_magnitude']:.3f}",
        HOLDS if holds else FAILS,
        f"concentrated is read as more than half; IWP with N(0, 1) has {iwp['near_zero']:.1%} below {NEAR_ZERO} and "
        f"mean {iwp['mean_magnitude']:.3f}",
    )


def _wide(results: Results) -> Judgement:
    value = _result(results, "op", "gaussian", 4.0)
    peak = max(range(BINS), key=lambda b: value["histogram"][b])
    return Judgement(
        f"{value['near_zero']:.1%} of |dg/dp| < {NEAR_ZERO}, the peak is at {-1 + (2 * peak + 1) / BINS:.2f}",
        verdict(value["near_zero"] > 0.2, peak == BINS // 2),
        "a value spread evenly over [-1, 1] would have 10% there",
    )


def _closed_form(results: Results) -> Judgement:
    measured = {z: _result(results, "op", "residual", z)["mean"] for z in (3.0, 5.0)}
    exact = all(abs(measured[z] - remaining(z)) < 1e-5 for z in measured)
    return Judgement(
        f"z = 5: {measured[5.0]:.4f}; z = 3: {measured[3.0]:.4f}",
        verdict(exact, measured[5.0] > 0.9, measured[3.0] < 0.55),
        f"(e^z - 1)/(e^z + 15); over 40 layers {measured[5.0] ** 40:.1e} and {measured[3.0] ** 40:.1e} are left",
    )


def draw(results: Results) -> Figure:
    """Histograms of the derivatives, and the share of a gradient that z leaves."""
    figure, (narrow, wide, closed) = plots.new_figure(3, width=3.4, height=2.9)
    edges = [-1 + 2 * b / BINS for b in range(BINS + 1)]
    gaussian = results.found(Derivatives, lambda c: c.init == "gaussian")
    for axes, strength in ((narrow, 1.0), (wide, 4.0)):
        shown = [item for item in gaussian if item[0].strength == strength]
        for index, (cell, result) in enumerate(shown):
            axes.stairs(
                [100 * h for h in result["histogram"]],
                edges,
                label=cell.parametrization.upper(),
                color=plots.COLORS[index],
                fill=index == 0,
                alpha=0.7 if index == 0 else 1.0,
                linewidth=1.5,
            )
        axes.set(xlabel="dg/dp at q = 1/2", ylabel="gates [%]", title=f"logits with variance {strength**2:g}")
        axes.legend()
    grid = [z / 10 for z in range(81)]
    closed.plot(grid, [remaining(z) for z in grid], label="(e^z - 1)/(e^z + 15)")
    measured = results.found(Derivatives, lambda c: c.init == "residual")
    closed.plot(
        [c.strength for c, _ in measured], [r["mean"] for _, r in measured], "o", color="black", label="measured"
    )
    closed.set(xlabel="strength z of the residual init", ylabel="dg/dp", title="OP residual")
    closed.legend()
    return figure


EXPERIMENT = Experiment(
    name="gradient-concentration",
    title="Derivatives of OP gates with respect to their input concentrate around zero",
    figures="fig:gradient-concentration",
    settings=lambda _scale: "10,000 fresh gates for each init, q = 1/2, one seed; the same at every scale",
    cells=cells,
    claims=(
        Claim("OP with logit variance 1 concentrates dg/dp around 0", "peak at 0", _narrow),
        Claim("even with variance 16 many derivatives remain concentrated at 0", "peak at 0", _wide),
        Claim("residual init z = 5 keeps about 0.9 of a gradient, z = 3 less than 0.55", "0.9; < 0.55", _closed_form),
    ),
    draw=draw,
    place=20,
)
