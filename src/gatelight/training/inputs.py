"""Arrays that a model is fitted to, checked before the first step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gatelight.data import Split
from gatelight.data.dataset import single_sample
from gatelight.nn import LogicNetwork
from gatelight.nn.forward import evaluating
from gatelight.training.halves import Halves, halves

#: Samples that are checked before training begins.
LOOKED_AT = 1_000
#: Samples that a model is tried with.
_TRIED = 2


def check_bits(encode: Callable[[Tensor], Tensor], inputs: Tensor, name: str) -> None:
    """Refuse data from which nothing can be learned because the encoder gives every sample the same bits."""
    bits = encode(inputs[:LOOKED_AT])
    if len(bits) > 1 and bool((bits == bits[:1]).all()):
        low, high = inputs.min().item(), inputs.max().item()
        raise ValueError(
            f"all input bits of {name} are the same in the first {len(bits):,} samples; values span "
            f"{low:.4g} to {high:.4g}: scale them to [0, 1] (whole numbers: 0 to 255), or put thresholds at quantiles"
        )


def as_split(x: Any, y: Any, where: str) -> Split:
    """Inputs and labels of any kind as a split; a ValueError names what is wrong with them.

    >>> as_split([[0.0, 1.0], [0.5, 0.5]], [1, 0], "train").y
    array([1, 0])

    Args:
        x: Tensor or array, [samples, ...]; whole numbers are bytes and become uint8.
        y: Whole numbers from 0, [samples].
        where: Its name in messages.
    """
    values, labels = _array(x, f"{where} inputs"), _array(y, f"{where} labels")
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{where} inputs must be numbers, got dtype {values.dtype}")
    if values.ndim < 2:
        raise ValueError(f"{where} inputs must be [samples, ...], got {list(values.shape)}{single_sample(values)}")
    if values.size == 0:
        raise ValueError(f"{where} inputs are empty: their shape is {list(values.shape)}")
    if labels.dtype.kind not in "iu":
        raise ValueError(f"{where} labels must be whole numbers, got dtype {labels.dtype}")
    if labels.shape != (len(values),):
        raise ValueError(f"{len(values)} {where} inputs need labels of shape [{len(values)}], got {list(labels.shape)}")
    return Split(_as_features(values, where), labels.astype(np.int64, copy=False))


def _array(given: Any, what: str) -> NDArray[Any]:
    if isinstance(given, Tensor):
        if given.is_complex() or given.layout != torch.strided:
            raise ValueError(f"{what} must be a dense tensor of real numbers, got {given.dtype}")
        given = given.detach().cpu()
        values: NDArray[Any] = (given.float() if given.dtype == torch.bfloat16 else given).numpy()
        return values
    try:
        return np.asarray(given)
    except ValueError as error:
        raise ValueError(f"{what} must be an array: {error}") from None


def _as_features(values: NDArray[Any], where: str) -> NDArray[Any]:
    """uint8 if they are bytes, else float32."""
    if values.dtype.kind == "b":
        return values.astype(np.float32)
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            floats = np.ascontiguousarray(values, dtype=np.float32)
        if not np.isfinite(floats).all():
            row = int(np.argwhere(~np.isfinite(floats))[0, 0])
            raise ValueError(
                f"{where} inputs must be finite, row {row} holds {floats[row][~np.isfinite(floats[row])][0]}"
            )
        return floats
    low, high = values.min(), values.max()
    if low < 0 or high > 255:
        raise ValueError(f"{where} inputs of whole numbers must lie in 0..255, got {low}..{high}")
    if values.dtype != np.uint8 and high == 1:
        raise ValueError(f"{where} inputs of {values.dtype} 0 and 1 may be bytes or bits: pass uint8 or bool")
    return np.ascontiguousarray(values, dtype=np.uint8)


def check_labels(split: Split, classes: int, where: str) -> None:
    """Raise a ValueError if a label is not one of the model's classes."""
    low, high = int(split.y.min()), int(split.y.max())
    if low < 0 or high >= classes:
        raise ValueError(
            f"{where} labels must lie in 0..{classes - 1}, as the model has {classes} scores, got {low}..{high}"
        )


def check_values(model: nn.Module, split: Split, where: str) -> None:
    """Raise a ValueError if the model does not take the values of the inputs."""
    if takes_bits(model):
        if not bool(((split.x == 0) | (split.x == 1)).all()) and split.x.dtype == np.uint8:
            raise ValueError(f"the model takes bits, but the {where} inputs are not only 0 and 1")
    elif split.x.dtype == np.uint8 and split.x.max() <= 1 and not has_encoder(model):
        raise ValueError(f"{where} inputs of uint8 0 and 1 may be bytes or bits: pass floats or bool")
    if split.x.dtype == np.float32 and (has_encoder(model) or isinstance(model, LogicNetwork)):
        smallest, largest = split.x.min(), split.x.max()
        if smallest < 0 or largest > 1:
            raise ValueError(f"{where} inputs must lie in [0, 1], got {smallest}..{largest}")


def takes_bits(model: nn.Module) -> bool:
    """Whether a model takes only bits: a network without an encoder."""
    return isinstance(model, LogicNetwork) and model.encoder is None


def has_encoder(model: nn.Module) -> bool:
    """Whether a model starts with an encoder."""
    return not takes_bits(model) and halves(model).scores is not model


@torch.no_grad()
def count_classes(model: nn.Module, split: Split, device: torch.device) -> int:
    """The scores that a model gives a sample, tried with a few; a ValueError if it gives no class scores."""
    x = torch.from_numpy(split.x[:_TRIED]).to(device)
    parts: Halves = halves(model)
    with evaluating(model):
        try:
            scores = parts.scores(parts.encode(x))
        except (ValueError, RuntimeError, TypeError, IndexError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(f"the model does not take a batch of shape {list(x.shape)}: {reason}") from error
    if not isinstance(scores, Tensor) or scores.ndim != 2 or len(scores) != len(x) or not scores.is_floating_point():
        got = f"{scores.dtype} {list(scores.shape)}" if isinstance(scores, Tensor) else type(scores).__name__
        raise ValueError(
            f"the model must give class scores [batch, classes], floating point, got {got} for {len(x)} samples"
        )
    return scores.shape[1]
