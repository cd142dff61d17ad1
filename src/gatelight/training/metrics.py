"""Measures of a network on data: accuracies, gradients, activations, and what the gates have become."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from gatelight import ops, truthtable
from gatelight.data.dataset import Split
from gatelight.nn import LogicDense, LogicNetwork, rounded
from gatelight.nn.forward import evaluating
from gatelight.nn.layer import LogicLayer
from gatelight.training import distributed
from gatelight.training.halves import halves

_EVAL_VALUES = 16_000_000
_EVAL_BATCH = 1_000


@dataclass(frozen=True)
class Accuracy:
    """Shares of correct answers of the relaxed and the rounded network, and the mean loss of the relaxed one."""

    soft: float
    rounded: float
    soft_loss: float

    @property
    def gap(self) -> float:
        """The gap: soft minus rounded accuracy."""
        return self.soft - self.rounded


@dataclass(frozen=True)
class Counts:
    """Correct answers and summed loss, to be added up over processes."""

    samples: int
    soft_hits: int
    rounded_hits: int
    loss_sum: float


@torch.no_grad()
def evaluate(model: nn.Module, split: Split) -> Counts:
    """Count the correct answers of the relaxed network and of the rounded one.

    Args:
        model: Any module that maps a batch to class scores; if it has no gates, both counts are the same.
        split: The samples.
    """
    device = _device(model)
    parts = halves(model)
    native = device.type == "cpu" and ops.get_backend() == "cpu"
    size = _EVAL_BATCH if native else max(16, min(_EVAL_BATCH, _EVAL_VALUES // _widest(model)))
    has_gates = any(isinstance(module, LogicLayer) for module in model.modules())
    soft_hits = rounded_hits = 0
    loss_sum = 0.0
    for first in range(0, len(split), size):
        x = torch.from_numpy(split.x[first : first + size]).to(device)
        y = torch.from_numpy(split.y[first : first + size]).to(device)
        with evaluating(model):
            bits = parts.encode(x)
            scores = parts.scores(bits)
        hits = int((scores.argmax(1) == y).sum())
        soft_hits += hits
        loss_sum += float(cross_entropy(scores, y, reduction="sum"))
        if has_gates:
            with rounded(model):
                hits = int((parts.scores(bits).argmax(1) == y).sum())
        rounded_hits += hits
    return Counts(len(split), soft_hits, rounded_hits, loss_sum)


def _device(model: nn.Module) -> torch.device:
    return next((tensor.device for tensor in (*model.parameters(), *model.buffers())), torch.device("cpu"))


def _widest(model: nn.Module) -> int:
    """Values that the reference holds for one sample in the widest layer."""
    dense = [m.out_features << (m.arity - 1) for m in model.modules() if isinstance(m, LogicDense)]
    trees: list[int] = []
    if isinstance(model, LogicNetwork) and model.conv is not None and model.image is not None:
        shapes = model.conv.shapes(*model.image[1:])
        trees = [
            layer.out_channels * s.leaves * s.positions for layer, s in zip(model.conv.layers, shapes, strict=True)
        ]
    return max([1, *dense, *trees])


def accuracy(model: nn.Module, split: Split) -> Accuracy:
    """Soft and rounded accuracy on a split."""
    if len(split) == 0:
        raise ValueError("cannot measure accuracy on no samples")
    counts = evaluate(model, split)
    return Accuracy(counts.soft_hits / len(split), counts.rounded_hits / len(split), counts.loss_sum / len(split))


def shared_accuracy(model: nn.Module, split: Split) -> Accuracy:
    """Accuracy on a split by all processes together, each on its share; all of them must call it."""
    mine = distributed.share(len(split))
    counts = evaluate(model, Split(split.x[mine], split.y[mine]) if distributed.world_size() > 1 else split)
    total = torch.tensor([counts.soft_hits, counts.rounded_hits, counts.loss_sum], dtype=torch.float64)
    total = total.to(_device(model))
    distributed.sum_over_processes([total])
    soft, as_rounded, loss = total.tolist()
    return Accuracy(soft / len(split), as_rounded / len(split), loss / len(split))


def gradient_norms(model: LogicNetwork, x: Tensor, y: Tensor) -> list[float]:
    """The paper's gradient norm of each layer: the mean of ``|dLoss/dtheta|`` over its parameters, for one batch.

    A layer without parameters has norm nan.
    """
    parameters = [layer.theta for layer in model.logic_layers]
    loss = cross_entropy(model(x), y)
    gradients = torch.autograd.grad(loss, parameters)
    return [float(g.double().abs().mean()) for g in gradients]


@torch.no_grad()
def activation_histograms(model: LogicNetwork, x: Tensor, bins: int = 20) -> Tensor:
    """Share of gate outputs in each of ``bins`` equal parts of [0, 1], for each layer, [layers, bins]."""
    rows = [torch.histc(out.float(), bins, 0.0, 1.0) / out.numel() for out in model.activations(x)]
    return torch.stack(rows)


@torch.no_grad()
def function_shares(model: LogicNetwork) -> list[dict[str, float]]:
    """For each layer the share of gates that round to each function, by the function's name, largest first."""
    shares = []
    for layer in model.logic_layers:
        codes = truthtable.pack(layer.rounded_table().to(torch.uint8).cpu().numpy())
        values, counts = np.unique(codes, return_counts=True)
        named = {
            truthtable.name(truthtable.unpack(value, layer.arity)): int(count) / layer.gates
            for value, count in zip(values, counts, strict=True)
        }
        shares.append(dict(sorted(named.items(), key=lambda item: -item[1])))
    return shares


@torch.no_grad()
def table_distances(model: LogicNetwork) -> list[float]:
    """For each layer the mean distance of table entries from the nearer of 0 and 1 (0: rounded, 1/2: undecided)."""
    tables = [layer.table() for layer in model.logic_layers]
    return [float(torch.minimum(t, 1 - t).mean()) for t in tables]
