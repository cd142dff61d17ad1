"""Parametrizations that the package does not know: the example's, and one that draws noise in training."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gatelight.parametrize import OP


def _example(name: str) -> Any:
    path = Path(__file__).parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Walsh = _example("new_parametrization").Walsh


@dataclass(frozen=True)
class Gumbel(OP):
    """``table = softmax(theta + Gumbel noise) @ T`` in training, without the noise in evaluation."""

    stochastic = True

    def sample(self, theta: Tensor, generator: torch.Generator) -> Tensor:
        noise = torch.empty_like(theta).exponential_(generator=generator).log()
        return self.table(theta - noise)


OWN = [Walsh(2), Walsh(3), Gumbel(2)]
