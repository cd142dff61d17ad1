"""Which modules may run inside one kernel call, and sequences that run the rest as torch would."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, ClassVar, Self

from torch import Tensor, nn
from torch.nn.modules import module as torch_module


def is_fusible(layer: nn.Module, kinds: tuple[type[nn.Module], ...]) -> bool:
    """Whether a layer is of one of these classes, and calling it does only what its class does.

    Torch must call a subclass, a layer with a forward of its own, and a layer with hooks.
    """
    its = layer.__dict__
    return type(layer) in kinds and not (
        its["_forward_hooks"]
        or its["_forward_pre_hooks"]
        or its["_backward_hooks"]
        or its["_backward_pre_hooks"]
        or "forward" in its
    )


def has_global_hooks() -> bool:
    """Whether hooks are registered for all modules, which torch must then call one by one."""
    return bool(
        torch_module._global_forward_hooks
        or torch_module._global_forward_pre_hooks
        or torch_module._global_backward_hooks
        or torch_module._global_backward_pre_hooks
    )


class FusedSequential(nn.Sequential):
    """An ``nn.Sequential`` that computes runs of logic layers at once, and calls everything else as torch does.

    Consecutive layers must fit; that is checked when the sequence is made or changed, and again by the
    layers themselves when it runs. A refused change leaves the sequence as it was.
    """

    #: Classes of layers that are fused.
    fusible: ClassVar[tuple[type[nn.Module], ...]] = ()

    def __init__(self, *layers: Any) -> None:
        if len(layers) == 1 and isinstance(layers[0], OrderedDict):
            named = layers[0]
        elif len(layers) == 1 and isinstance(layers[0], Iterable) and not isinstance(layers[0], nn.Module | str):
            named = OrderedDict((str(i), layer) for i, layer in enumerate(layers[0]))
        else:
            named = OrderedDict((str(i), layer) for i, layer in enumerate(layers))
        for layer in named.values():
            if not isinstance(layer, nn.Module):
                raise ValueError(f"{type(self).__name__} takes layers, or one list of them, got {layer!r}")
        self._check_order(list(named.values()))
        super().__init__(named)

    def add_module(self, name: str, module: nn.Module | None) -> None:
        """Add a layer at the end, or replace the one of that name, if it fits."""
        if module is not None:
            self._check_order([*({**self._modules, name: module}).values()])
        super().add_module(name, module)

    def __setitem__(self, index: int, module: nn.Module) -> None:
        names = list(self._modules)
        if -len(names) <= index < len(names):
            self._check_order([*({**self._modules, names[index]: module}).values()])
        super().__setitem__(index, module)

    def insert(self, index: int, module: nn.Module) -> Self:
        """Insert a layer, if it fits."""
        layers: list[Any] = list(self._modules.values())
        layers.insert(index, module)
        self._check_order(layers)
        super().insert(index, module)
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the last layer; x itself if there are no layers."""
        if has_global_hooks():
            return self._one_by_one(x, list(self))
        run: list[nn.Module] = []
        for layer in self:
            if is_fusible(layer, self.fusible):
                run.append(layer)
                continue
            x = self._fused(x, run) if run else x
            run = []
            x = layer(x)
        return self._fused(x, run) if run else x

    def _check_order(self, layers: list[Any]) -> None:
        """Raise a ValueError if a layer cannot follow the one before it."""
        raise NotImplementedError

    def _fused(self, x: Tensor, layers: list[Any]) -> Tensor:
        """Outputs of a run of fusible layers, as one op if there is a kernel for it."""
        raise NotImplementedError

    def _one_by_one(self, x: Tensor, layers: list[Any]) -> Tensor:
        for layer in layers:
            x = layer(x)
        return x
