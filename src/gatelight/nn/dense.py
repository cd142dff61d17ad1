"""A layer of gates with fixed connections and learnable truth tables."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gatelight import ops, parametrize, truthtable
from gatelight.circuit.sketch import CircuitSketch
from gatelight.nn.checks import as_tensor, check_activations, check_size, drawing, to_weights, trusted
from gatelight.nn.layer import LogicLayer, as_init, draw_theta, make_generator
from gatelight.ops.seen import Seen
from gatelight.parametrize import Init, Parametrization
from gatelight.wiring import Site, Wiring
from gatelight.wiring import make as make_wiring

#: Layers whose connections and parameters are still as they were drawn.
_drawn = Seen()


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
        arity: Inputs of a gate, 1..6 (1..3 for ``op``); 2 unless the parametrization says otherwise.
        parametrization: ``iwp`` (2**arity parameters), ``op`` (2**(2**arity)), or any
            :class:`~gatelight.parametrize.Parametrization`.
        estimator: For ``iwp``: ``sin`` (the default), ``sigmoid``, ``sigmoid-st``, ``sin-st``, ``sin-sign`` or
            ``linear-st``.
        init: ``residual``, ``gaussian``, ``and-or``, ``and-or-residual``, ``uniform``, a function's name, or an
            :class:`~gatelight.parametrize.Init`, which also has a strength and a standard deviation.
        wiring: ``random``, ``unique``, any :class:`~gatelight.wiring.Wiring`, or the connections themselves: whole
            numbers [gates, arity], as a tensor, an array or a list.
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
        arity: int | None = None,
        parametrization: str | Parametrization = "iwp",
        estimator: str | None = None,
        init: str | Init = "residual",
        wiring: Any = "random",
        seed: int | None = None,
        fixed: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.in_features = check_size("in_features", in_features)
        self.out_features = check_size("out_features", out_features)
        self.parametrization = parametrize.make(parametrization, arity=arity, estimator=estimator)
        self.init = as_init(init)
        self.wiring: Wiring = make_wiring(wiring)
        with drawing() as device:
            generator = make_generator(seed)
            fanin = self._connections(generator)
            mask = self._checked_mask(fixed)
            learnable = self.out_features if mask is None else int((~mask).sum())
            theta = draw_theta(self.parametrization, learnable, self.init, generator)
        self.register_buffer("fanin", fanin.to(device))
        self.register_buffer("fixed", None if mask is None else mask.to(device))
        self.theta = nn.Parameter(theta.to(device))
        _drawn.add(self.fanin)
        _drawn.add(self.theta)

    @property
    def gates(self) -> int:
        """Number of truth tables."""
        return self.out_features

    def is_as_drawn(self) -> bool:
        """Whether connections and parameters are as they were drawn: not trained, loaded or changed since."""
        return _drawn.has(self.fanin) and _drawn.has(self.theta)

    def forward(self, x: Tensor) -> Tensor:
        """Evaluate the gates: relaxed, or rounded inside :func:`gatelight.nn.rounded`."""
        self.check_input(x)
        x = to_weights(x, self.theta)
        return trusted(ops.lut(x, self.fanin, self.current_table()))

    def check_input(self, x: Tensor) -> None:
        """Raise a ValueError unless x is [batch, in_features] with values in [0, 1]."""
        check_activations(x)
        if x.ndim != 2 or x.shape[1] != self.in_features:
            raise ValueError(f"the layer takes [batch, {self.in_features}], got shape {tuple(x.shape)}")

    def affected(self, inputs: Tensor) -> Tensor:
        """Which gates read at least one of the marked inputs: bool [in_features] -> bool [gates]."""
        return inputs[self.fanin].any(1)

    def emit(self, sketch: CircuitSketch) -> None:
        """Add the rounded gates to a circuit."""
        if sketch.nets.shape != (self.in_features,):
            raise ValueError(f"it reads [{self.in_features}], but gets {list(sketch.nets.shape)}")
        ops.check_fanin(self.fanin, self.in_features)
        sketch.nets = sketch.gates().add(sketch.nets[self.fanin.cpu().numpy()], self.tables_for_circuit())

    def extra_repr(self) -> str:
        """A summary with the formula."""
        fixed = f", {int(self.fixed.sum())} fixed" if self.fixed is not None else ""
        return (
            f"{self.in_features} -> {self.out_features}, arity={self.arity}, "
            f"{self._describe_gates()}, wiring={self.wiring}{fixed}, {self.theta.numel()} parameters"
        )

    def _connections(self, generator: torch.Generator) -> Tensor:
        size = self.out_features, self.arity
        fanin = as_tensor("wiring", self.wiring.draw(Site(self.in_features, *size), generator))
        if fanin.shape != size:
            raise ValueError(f"wiring must be [{size[0]}, {size[1]}], got {tuple(fanin.shape)}")
        ops.check_fanin(fanin, self.in_features)
        return fanin.to("cpu", torch.int32).contiguous().clone()

    def _checked_mask(self, fixed: Any) -> Tensor | None:
        if fixed is None:
            return None
        mask = as_tensor("fixed", fixed)
        if mask.shape != (self.out_features,) or mask.dtype != torch.bool:
            raise ValueError(f"fixed must be bool [{self.out_features}], got {mask.dtype} {tuple(mask.shape)}")
        return mask.cpu()

    @property
    def _is_complete(self) -> bool:
        return self.fixed is None

    def _complete(self, table: Tensor) -> Tensor:
        if self.fixed is None:
            return table
        pass_through = torch.from_numpy(truthtable.from_name("a", self.arity)).to(table)
        full = pass_through.expand(self.out_features, -1)
        return full.index_copy(0, (~self.fixed).nonzero().flatten(), table)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # Checked before anything is copied: a refused state leaves the layer unchanged.
        check_loaded_fanin(state_dict.get(f"{prefix}fanin"), self.in_features)
        fixed = state_dict.get(f"{prefix}fixed")
        if fixed is not None and (fixed.dtype != torch.bool or int((~fixed).sum()) != len(self.theta)):
            raise ValueError(f"{prefix}fixed must leave {len(self.theta)} gates to be learned, as the layer has")
        super()._load_from_state_dict(state_dict, prefix, *rest)


def check_loaded_fanin(fanin: Tensor | None, inputs: int) -> None:
    """Raise a ValueError unless connections from a state are whole numbers in range; torch reports None."""
    if fanin is not None:
        ops.check_fanin(fanin, inputs)
