"""The state of Adam as tensors by name: what a checkpoint holds besides the weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

_MOMENTS = ("exp_avg", "exp_avg_sq")


def tensors(optimizer: Optimizer, parameters: Mapping[str, Parameter], step: int) -> dict[str, Tensor]:
    """Both moments of every parameter, and the number of its updates if that is not ``step``.

    A parameter that has had no gradient yet has no moments: they are saved as zeros.
    """
    saved: dict[str, Tensor] = {}
    for name, parameter in parameters.items():
        state = optimizer.state.get(parameter, {})
        for moment in _MOMENTS:
            saved[f"adam.{moment}.{name}"] = state[moment] if state else torch.zeros_like(parameter)
        updates = float(state["step"]) if state else 0.0
        if updates != step:
            saved[f"adam.step.{name}"] = torch.tensor(updates)
    return saved


def restore(
    optimizer: Optimizer, parameters: Mapping[str, Parameter], saved: Mapping[str, Tensor], step: int, path: Path
) -> None:
    """Load the state that :func:`tensors` took from another optimizer."""
    for name, parameter in parameters.items():
        updates = saved.get(f"adam.step.{name}", torch.tensor(float(step)))
        state: dict[str, Tensor] = {"step": updates.clone().to(parameter.device)}
        for moment in _MOMENTS:
            tensor = saved.get(f"adam.{moment}.{name}")
            if tensor is None or tensor.shape != parameter.shape or tensor.dtype != parameter.dtype:
                raise ValueError(f"{path} lacks the optimizer state of {name}, or it has another shape")
            state[moment] = tensor.to(parameter.device)
        optimizer.state[parameter] = state
