"""A chain of dense logic layers that runs as one op."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

from gatelight import ops
from gatelight.names import check_name
from gatelight.nn.dense import LogicDense
from gatelight.ops.stack import MEMORY


class LogicStack(nn.Sequential):
    """Dense logic layers one after another, computed tile by tile through all of them where the native kernels run.

    It behaves and saves like an ``nn.Sequential`` of its layers, and is one wherever a layer has hooks, no kernels take
    the tensors (float32 on the CPU, float32, bfloat16 or float16 on a GPU), or torch compiles the model.

    >>> stack = LogicStack([LogicDense(8, 16, seed=0), LogicDense(16, 4, arity=3, seed=1)])
    >>> import torch
    >>> stack(torch.rand(3, 8)).shape
    torch.Size([3, 4])

    Args:
        layers: The layers, first to last.
        memory: What forward leaves for backward: ``keep``, ``keep-bf16``, ``recompute`` or ``auto`` (by size).

    Shape:
        [batch, in_features of the first] -> [batch, out_features of the last]
    """

    def __init__(self, layers: Iterable[LogicDense], memory: str = "auto") -> None:
        super().__init__(*layers)
        self.memory = check_name("memory mode", memory, MEMORY)

    @property
    def layers(self) -> list[LogicDense]:
        """The layers, typed."""
        return [layer for layer in self if isinstance(layer, LogicDense)]

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the last layer."""
        layers = self.layers
        layers[0].check_input(x)
        if any(layer._forward_hooks or layer._forward_pre_hooks for layer in layers):
            return self._one_by_one(x)
        operands = [layer.kernel_operands() for layer in layers]
        thetas = [theta for theta, _ in operands]
        if not ops.can_stack(x, thetas):
            return self._one_by_one(x)
        return ops.stack(x, [layer.fanin for layer in layers], thetas, [kind for _, kind in operands], self.memory)

    def _one_by_one(self, x: Tensor) -> Tensor:
        for layer in self:
            x = layer(x)
        return x
