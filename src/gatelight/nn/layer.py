"""What dense and convolutional layers of gates have in common."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gatelight.nn import forward
from gatelight.ops import NATIVE_MAPS
from gatelight.parametrize import Init, Parametrization


def make_generator(seed: int | None) -> torch.Generator:
    """A CPU generator from a seed, or from torch's global generator if the seed is None."""
    if seed is None:
        seed = int(torch.randint(0, 1 << 62, (), device="cpu"))
    return torch.Generator("cpu").manual_seed(seed)


class LogicLayer(nn.Module):
    """Gates with fixed connections and learnable tables.

    Attributes:
        parametrization: Maps theta to tables.
        init: Where the gates started.
        theta: Parameters, [learnable gates, parameters].
    """

    parametrization: Parametrization
    init: Init
    theta: nn.Parameter

    @property
    def arity(self) -> int:
        """Inputs of a gate."""
        return self.parametrization.arity

    def table(self) -> Tensor:
        """Relaxed tables, differentiable in theta, [gates, 2**arity]."""
        return self._complete(self.parametrization.table(self.theta))

    @torch.no_grad()
    def rounded_table(self) -> Tensor:
        """Tables rounded to 0 and 1 by the parametrization's rule, [gates, 2**arity]."""
        return self._complete(self.parametrization.rounded(self.theta))

    def current_table(self) -> Tensor:
        """The tables that the layer computes with now: relaxed, rounded, or as :mod:`gatelight.nn.forward` says."""
        generator = forward.step_generator(self.theta.device) if self.training else None
        return self._complete(forward.of(self).table(self.parametrization, self.theta, generator))

    def kernel_operands(self) -> tuple[Tensor, str]:
        """This layer's operands in a chain of layers: parameters, and the name of their map to tables."""
        native = forward.of(self).native_map(self.parametrization)
        if native in NATIVE_MAPS and self._is_complete:
            return self.theta, native
        return self.current_table(), "table"

    @property
    def _is_complete(self) -> bool:
        """Whether theta has parameters for every gate."""
        return True

    def _complete(self, table: Tensor) -> Tensor:
        """The tables of all gates, those of learnable ones given."""
        return table

    def tables_for_circuit(self) -> NDArray[np.uint8]:
        """Rounded tables of finite parameters, uint8 [gates, 2**arity]."""
        if not bool(torch.isfinite(self.theta).all()):
            raise ValueError("its parameters are not all finite")
        tables: NDArray[np.uint8] = self.rounded_table().to(torch.uint8).cpu().numpy()
        return tables

    def _describe_gates(self) -> str:
        return f"{self.parametrization.name}: {self.parametrization.describe()}, init={self.init.name}"


def draw_theta(parametrization: Parametrization, gates: int, init: Init, generator: torch.Generator) -> Tensor:
    """Initial parameters, [gates, parameters]; a ValueError if the parametrization makes something else."""
    theta = parametrization.init(gates, init, generator)
    wanted = gates, parametrization.parameters
    if not isinstance(theta, Tensor) or not theta.is_floating_point() or theta.shape != wanted:
        got = f"{theta.dtype} {list(theta.shape)}" if isinstance(theta, Tensor) else type(theta).__name__
        raise ValueError(f"init of {type(parametrization).__name__} must return floats {list(wanted)}, got {got}")
    return theta


def as_init(init: str | Init) -> Init:
    """An init by name, or the value itself."""
    return Init(init) if isinstance(init, str) else init
