"""Gradient norm over the layers of a deep network right after initialisation.

The paper: with 40 layers the mean ``|dLoss/dtheta|`` of the first layer falls to about 1e-34 for OP and 1e-16 for
IWP with gaussian inits, and hardly at all with residual inits, where IWP keeps more than OP.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import torch

from gatelight import data, models, plots
from gatelight.files import write_text
from gatelight.metrics import gradient_norms

NETWORKS = [("op", "gaussian"), ("iwp", "gaussian"), ("op", "residual"), ("iwp", "residual")]


@dataclass(frozen=True)
class Scale:
    """How large the experiment is."""

    dataset: str
    size: str
    layers: int
    width: int
    batch: int


SCALES = {
    "smoke": Scale("digits", "S", 10, 500, 50),
    "cpu": Scale("mnist", "S", 40, 8_000, 100),
    "paper": Scale("cifar100", "M", 40, 128_000, 100),
}


@dataclass(frozen=True)
class Result:
    """Gradient norms of each network, first layer first."""

    scale: Scale
    seed: int
    norms: dict[str, list[float]]

    @property
    def title(self) -> str:
        """What was measured."""
        s = self.scale
        return (
            f"mean |dLoss/dtheta| after init: {s.layers} layers of {s.width:,} gates, {s.batch} samples of {s.dataset}"
        )


def run(scale: str = "cpu", seed: int = 0, folder: Path | None = None) -> Result:
    """Build each network and take the gradient of one batch."""
    size = SCALES[scale]
    dataset = data.load(size.dataset, folder)
    x = torch.from_numpy(dataset.train.x[: size.batch])
    y = torch.from_numpy(dataset.train.y[: size.batch])
    norms = {}
    for parametrization, init in NETWORKS:
        model = models.build(
            size.dataset,
            size=size.size,
            layers=size.layers,
            width=size.width,
            parametrization=parametrization,
            init=init,
            seed=seed,
        )
        norms[f"{parametrization} {init}"] = gradient_norms(model, x, y)
    return Result(size, seed, norms)


def write(result: Result, folder: Path) -> list[Path]:
    """Draw the figure and put the numbers beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    figure, (axes,) = plots.new_figure(width=5.5, height=3.6)
    for name, norms in result.norms.items():
        axes.semilogy(range(1, len(norms) + 1), norms, label=name)
    axes.set(xlabel="layer", ylabel="mean |dLoss/dtheta|")
    axes.legend()
    axes.set_title(result.title, fontsize=7)
    paths = [folder / f"gradient-norm.{ending}" for ending in ("png", "svg", "json")]
    for path in paths[:2]:
        plots.save(figure, path)
    write_text(paths[2], json.dumps(dataclasses.asdict(result), indent=1) + "\n")
    return paths
