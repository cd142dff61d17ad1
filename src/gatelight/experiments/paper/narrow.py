"""The depth and convergence experiments in a network so narrow that rounding a deep one costs much.

Not in the paper, whose layers have 128,000 gates. At 2,000 gates several of its claims fail, at the 8,000 of ``depth``
and ``convergence`` they do not; the rounding gap of a deep network shrinks with its width.
"""

from __future__ import annotations

from gatelight.experiments.framework.cell import Cell
from gatelight.experiments.framework.comparison import ahead, draw, gap, ratio, stable
from gatelight.experiments.framework.experiment import Claim, Experiment, Judgement, Results
from gatelight.experiments.framework.networks import dense, recipe, seeds, words
from gatelight.experiments.framework.training import Training

DEPTHS = {"smoke": (1, 5), "cpu": (1, 2, 5, 10, 20), "paper": (1, 2, 5, 10, 20)}


def narrow(scale: str, depth: int, seed: int, parametrization: str = "iwp") -> Training:
    """A network 2,000 gates wide; at ``smoke`` that of the depth experiment, which is narrow already."""
    if scale == "smoke":
        return dense(scale, depth, seed, parametrization=parametrization)
    return Training(recipe(scale, width=2_000, depth_scale=depth, seed=seed, parametrization=parametrization))


def cells(scale: str) -> list[Cell]:
    """Both parametrizations at each depth, shallow first."""
    return [narrow(scale, d, s, p) for d in DEPTHS[scale] for s in seeds(scale) for p in ("op", "iwp")]


def _ratio_at_20(results: Results) -> Judgement:
    def deep(cell: Cell) -> bool:
        return isinstance(cell, Training) and cell.config.model.depth_scale == deepest

    deepest = max(c.config.model.depth_scale for c in results.wanted if isinstance(c, Training))
    wanted = [cell for cell in results.wanted if deep(cell)]
    return ratio(Results(wanted, [(cell, result) for cell, result in results.finished if deep(cell)]))


def settings(scale: str) -> str:
    """The networks in words."""
    listed = ", ".join(map(str, DEPTHS[scale]))
    return f"{words(narrow(scale, 1, 0).config, len(seeds(scale)))}; D = {listed}; residual init"


EXPERIMENT = Experiment(
    name="depth-narrow",
    title="Depth and convergence of a narrow dense network",
    figures="none; fig:performance-depth-iwp-op-lgn and fig:faster-convergence-iwp are of 128,000 gates",
    settings=settings,
    cells=cells,
    claims=(
        Claim("IWP is ahead of OP at every depth", "OP levels off near 28% (CIFAR-100)", ahead),
        Claim("depth does not degrade IWP", "stable to D = 20", stable),
        Claim("at five-fold depth OP loses accuracy in rounding, IWP hardly", "as drawn", gap),
        Claim("at 20-fold depth IWP passes OP's best in 8.5x fewer steps", "8.5x", _ratio_at_20),
    ),
    draw=draw,
    place=90,
)
