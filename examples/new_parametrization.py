"""A parametrization of your own: a gate's table as a sum of Walsh functions, squashed into [0, 1].

Run it: python examples/new_parametrization.py
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

import gatelight as gl
from gatelight.parametrize import Init, Parametrization


@dataclass(frozen=True)
class Walsh(Parametrization):
    """``table = sigmoid(theta @ W)`` where row k of W is the k-th Walsh function, +1 or -1, of the inputs."""

    arity: int = 2

    @property
    def parameters(self) -> int:
        """One coefficient for each Walsh function."""
        return 2**self.arity

    def init(self, gates: int, init: Init, generator: torch.Generator) -> Tensor:
        """Coefficients of tables that lean to the functions of the init, with a little noise."""
        signs = 2.0 * init.target_tables(gates, self.arity, generator) - 1.0
        noise = torch.randn(gates, self.parameters, generator=generator)
        return 3.0 * signs @ self._functions(noise) / self.parameters + 0.1 * noise

    def table(self, theta: Tensor) -> Tensor:
        """Relaxed tables; rounding them at 1/2 is the default."""
        return torch.sigmoid(theta @ self._functions(theta))

    def _functions(self, like: Tensor) -> Tensor:
        k = np.arange(self.parameters)
        odd = [[bin(i & j).count("1") % 2 for j in k] for i in k]
        return 1 - 2 * torch.tensor(odd).to(like)


def main() -> None:
    """Train dense gates and trees of gates with it, and turn them into proven circuits."""
    digits = gl.data.load("digits")
    for model in ("dlgn", "cdlgn"):
        net = gl.models.build("digits", model, parametrization=Walsh(arity=2), seed=0)
        fit = gl.fit(net, digits.train.x, digits.train.y, steps=300, lr=0.02)
        circuit, report = gl.compile(fit.model)
        right = (circuit.predict(digits.test.x) == digits.test.y).mean()
        print(f"{model}: {right:.1%} of the test digits right\n{report}\n")


if __name__ == "__main__":
    main()
