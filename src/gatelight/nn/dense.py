"""A layer of gates with fixed connections and learnable truth tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gatelight import ops, parametrize, truthtable
from gatelight.nn.checks import as_tensor, check_activations, check_size, drawing, to_weights, trusted
from gatelight.nn.rounding import LogicLayer
from gatelight.nn.wiring import link, wire, wire_clusters


def make_generator(seed: int | None) -> torch.Generator:
    """A CPU generator from a seed, or from torch's global generator where the seed is None."""
    if seed is None:
        seed = int(torch.randint(0, 1 << 62, (), device="cpu"))
    return torch.Generator("cpu").manual_seed(seed)


class LogicDense(LogicLayer):
    """A dense layer of logic gates.

    Gate j computes the multilinear extension of its table on its inputs; for two inputs p, q:
    ``out_j = (1-p)(1-q) t00 + (1-p) q t01 + p (1-q) t10 + p q t11`` with ``t = parametrization(theta_j)``.

    >>> layer = LogicDense(8, 4, seed=0)
    >>> layer(torch.rand(3, 8)).shape
    torch.Size([3, 4])
    >>> layer
    LogicDense(8 -> 4, arity=2, iwp: table = 1/2 + 1/2 sin(theta), init=residual, wiring=random, 16 parameters)

    Args:
        in_features: Width of the input.
        out_features: Number of gates.
        arity: Inputs of a gate, 1..6 (1..3 for ``op``).
        parametrization: ``iwp`` (2**arity parameters) or ``op`` (2**(2**arity)).
        estimator: For ``iwp``: ``sin``, ``sigmoid``, ``sigmoid-st``, ``sin-st``, ``sin-sign`` or ``linear-st``.
        init: ``residual``, ``gaussian``, ``and-or``, ``and-or-residual``, ``uniform`` or a function's name.
        init_strength: How far the init leans to its function; None is the paper's value.
        init_spread: Standard deviation of the init; None is the paper's value.
        wiring: ``random``, ``unique``, or the connections themselves: whole numbers [gates, arity], as a tensor, an
            array or a list.
        ordered: List the gates, and the two ends of their inputs, such that each reads first what the one before has
            read last. Between random layers this only renames gates, and they run faster; not for the layer that
            ``GroupSum`` reads, where a gate's place is its class.
        clustered: Above 0, gates read inside clusters of 1,024 inputs, and are listed in this many equal parts, each
            with gates of all clusters: 1 for a hidden layer, the number of classes before ``GroupSum``. Wide layers
            (32,768 gates and more) train faster on a CPU where every second one is wired so.
        seed: Draws connections and parameters; None takes a seed from torch's global generator.
        fixed: Gates that pass their first input through and have no parameters, bool [gates].

    A float64 input of a float32 layer is converted to float32. Values must be in [0, 1].

    Attributes:
        fanin: Connections, int32 [gates, arity], saved with the layer.
        theta: Parameters, float32 [learnable gates, parameters].

    Shape:
        [batch, in_features] -> [batch, out_features], the result a transposed view of [out_features, batch].
    """

    fanin: Tensor
    fixed: Tensor | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        arity: int = 2,
        parametrization: str = "iwp",
        estimator: str = "sin",
        init: str = "residual",
        init_strength: float | None = None,
        init_spread: float | None = None,
        wiring: str | Tensor | NDArray[Any] | Sequence[Sequence[int]] = "random",
        ordered: bool = False,
        clustered: int = 0,
        seed: int | None = None,
        fixed: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.in_features = check_size("in_features", in_features)
        self.out_features = check_size("out_features", out_features)
        self.parametrization = parametrize.make(parametrization, arity, estimator)
        self.init = init
        self.wiring = wiring if isinstance(wiring, str) else "given"
        with drawing() as device:
            generator = make_generator(seed)
            fanin = self._connections(wiring, clustered, generator)
            exchanged = None
            if ordered:
                fanin, exchanged = link(fanin)
            mask = self._checked_mask(fixed)
            learnable = self.out_features if mask is None else int((~mask).sum())
            theta = self.parametrization.init(learnable, init, generator, strength=init_strength, spread=init_spread)
            if exchanged is not None:  # the same functions of the same inputs as without
                rows = exchanged if mask is None else exchanged[~mask]
                theta[rows] = self.parametrization.exchanged(theta[rows])
        self.register_buffer("fanin", fanin.to(device))
        self.register_buffer("fixed", None if mask is None else mask.to(device))
        self.theta = nn.Parameter(theta.to(device))

    @property
    def arity(self) -> int:
        """Inputs of a gate."""
        return self.parametrization.arity

    @property
    def gates(self) -> int:
        """Number of truth tables."""
        return self.out_features

    def table(self) -> Tensor:
        """Soft tables, differentiable in theta, [gates, 2**arity]."""
        return self._with_fixed(self.parametrization.table(self.theta))

    @torch.no_grad()
    def rounded_table(self) -> Tensor:
        """Tables rounded to 0 and 1 by the parametrization's rule, [gates, 2**arity]."""
        return self._with_fixed(self.parametrization.rounded(self.theta))

    def forward(self, x: Tensor) -> Tensor:
        """Evaluate the gates: soft, or rounded inside :func:`gatelight.nn.rounded`."""
        self.check_input(x)
        x = to_weights(x, self.theta)
        return trusted(ops.lut(x, self.fanin, self.rounded_table() if self.discrete else self.table()))

    def check_input(self, x: Tensor) -> None:
        """Raise a ValueError unless x is [batch, in_features] with values in [0, 1]."""
        check_activations(x)
        if x.ndim != 2 or x.shape[1] != self.in_features:
            raise ValueError(f"the layer takes [batch, {self.in_features}], got shape {tuple(x.shape)}")

    def kernel_operands(self) -> tuple[Tensor, str]:
        """What :func:`gatelight.ops.dense_chain` takes for this layer: theta and the name of its map to a table."""
        if self.discrete:
            return self.rounded_table(), "table"
        kind = ops.native_map_of(self.parametrization)
        if self.fixed is not None or kind is None:
            return self.table(), "table"
        return self.theta, kind

    def affected(self, inputs: Tensor) -> Tensor:
        """Which gates read at least one of the marked inputs: bool [in_features] -> bool [gates]."""
        return inputs[self.fanin].any(1)

    def extra_repr(self) -> str:
        """A summary with the formula."""
        name = "op" if self.parametrization.kind == "op" else "iwp"
        fixed = f", {int(self.fixed.sum())} fixed" if self.fixed is not None else ""
        return (
            f"{self.in_features} -> {self.out_features}, arity={self.arity}, {name}: "
            f"{self.parametrization.describe()}, init={self.init}, wiring={self.wiring}{fixed}, "
            f"{self.theta.numel()} parameters"
        )

    def _connections(self, wiring: Any, clustered: int, generator: torch.Generator) -> Tensor:
        if clustered < 0 or (clustered and not isinstance(wiring, str)):
            raise ValueError(f"clustered must be 0 or the number of parts of a wiring to draw, got {clustered}")
        if isinstance(wiring, str):
            size = self.in_features, self.out_features, self.arity
            return wire_clusters(wiring, *size, generator, clustered) if clustered else wire(wiring, *size, generator)
        given = as_tensor("wiring", wiring)
        if given.shape != (self.out_features, self.arity):
            raise ValueError(f"wiring must be [{self.out_features}, {self.arity}], got {tuple(given.shape)}")
        ops.check_fanin(given, self.in_features)
        return given.to("cpu", torch.int32).contiguous().clone()

    def _checked_mask(self, fixed: Any) -> Tensor | None:
        if fixed is None:
            return None
        mask = as_tensor("fixed", fixed)
        if mask.shape != (self.out_features,) or mask.dtype != torch.bool:
            raise ValueError(f"fixed must be bool [{self.out_features}], got {mask.dtype} {tuple(mask.shape)}")
        return mask.cpu()

    def _with_fixed(self, table: Tensor) -> Tensor:
        if self.fixed is None:
            return table
        pass_through = torch.from_numpy(truthtable.from_name("a", self.arity)).to(table)
        full = pass_through.expand(self.out_features, -1)
        return full.index_copy(0, (~self.fixed).nonzero().flatten(), table)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # Before anything is copied: a refused state leaves the layer as it was.
        check_loaded_fanin(state_dict.get(f"{prefix}fanin"), self.in_features)
        fixed = state_dict.get(f"{prefix}fixed")
        if fixed is not None and (fixed.dtype != torch.bool or int((~fixed).sum()) != len(self.theta)):
            raise ValueError(f"{prefix}fixed must leave {len(self.theta)} gates to be learned, as the layer has")
        super()._load_from_state_dict(state_dict, prefix, *rest)


def check_loaded_fanin(fanin: Tensor | None, inputs: int) -> None:
    """Raise a ValueError unless connections from a state are whole numbers in range; None is torch's to report."""
    if fanin is not None:
        ops.check_fanin(fanin, inputs)
