"""A chain of dense logic layers that runs as one op."""

from __future__ import annotations

import itertools
from typing import Any

from torch import Tensor

from gatelight import ops
from gatelight.names import check_name
from gatelight.nn.checks import to_weights, trusted
from gatelight.nn.dense import LogicDense
from gatelight.nn.fusion import FusedSequential
from gatelight.nn.linking import link_hidden
from gatelight.ops.memory import MEMORY


class LogicStack(FusedSequential):
    """Dense logic layers one after another, computed tile by tile through all of them if the native kernels run.

    It is an ``nn.Sequential``: it saves like one, and calls layers of other classes and layers with hooks one by one.
    Kernels take float32 on the CPU, and float32, bfloat16 and float16 on a GPU; the reference computes the rest.
    Under ``torch.compile`` a run of layers is one op.
    A new stack lists the gates of its hidden layers in an order that is fast to compute, which changes ``fanin`` and
    ``theta`` of new layers but not what they compute.

    >>> stack = LogicStack(LogicDense(8, 16, seed=0), LogicDense(16, 4, arity=3, seed=1))
    >>> import torch
    >>> stack(torch.rand(3, 8)).shape
    torch.Size([3, 4])

    Args:
        layers: The layers, first to last, or one list of them.
        memory: What forward leaves for backward: ``keep``, ``keep-bf16``, ``recompute`` or ``auto`` (by size).

    Shape:
        [batch, in_features of the first] -> [batch, out_features of the last]
    """

    fusible = (LogicDense,)
    memory: str

    def __init__(self, *layers: Any, memory: str = "auto") -> None:
        if layers and isinstance(layers[-1], str):
            layers, memory = layers[:-1], layers[-1]
        super().__init__(*layers)
        self.memory = check_name("memory mode", memory, MEMORY)
        link_hidden(list(self))

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        if isinstance(found, LogicStack) and isinstance(index, slice):
            found.memory = self.memory
        return found

    @property
    def layers(self) -> list[LogicDense]:
        """The dense logic layers, typed."""
        return [layer for layer in self if isinstance(layer, LogicDense)]

    def _check_order(self, layers: list[Any]) -> None:
        for before, after in itertools.pairwise(layers):
            if not isinstance(before, LogicDense) or not isinstance(after, LogicDense):
                continue
            if before.out_features != after.in_features:
                raise ValueError(f"a layer of {before.out_features} gates feeds one of {after.in_features} inputs")

    def _fused(self, x: Tensor, layers: list[Any]) -> Tensor:
        layers[0].check_input(x)
        if any(before.out_features != after.in_features for before, after in itertools.pairwise(layers)):
            self._check_order(layers)
        x = to_weights(x, layers[0].theta)
        operands = [layer.kernel_operands() for layer in layers]
        thetas, maps = [theta for theta, _ in operands], [map for _, map in operands]
        return trusted(ops.dense_chain(x, [layer.fanin for layer in layers], thetas, maps, self.memory))
