"""From a trained model to a circuit: the only place where torch meets circuits.

A model is walked in the order in which torch would call its modules. Each part writes itself into a
:class:`~gatelight.circuit.sketch.CircuitSketch`, where an array of nets replaces a batch. The result is then compared
with the rounded model on random inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gatelight.circuit import Circuit
from gatelight.circuit.sketch import CircuitSketch
from gatelight.nn import (
    GateIntervention,
    GroupSum,
    LogicConv2d,
    LogicConvStack,
    LogicDense,
    LogicNetwork,
    LogicStack,
    OrPool2d,
    Thermometer,
    rounded,
)
from gatelight.nn.checks import check_shape
from gatelight.nn.conv_stack import ConvStep

#: Random inputs on which every circuit is compared with its model.
SAMPLES = 1000

_SEQUENCES = (nn.Sequential, LogicStack, LogicConvStack)
#: Modules that do nothing in evaluation.
_NOTHING = (nn.Identity, nn.Dropout, GateIntervention)
_LEAVES = (Thermometer, LogicConv2d, OrPool2d, LogicDense, GroupSum, nn.Flatten, *_NOTHING)


def discretize(
    model: nn.Module, *, input_shape: Sequence[int] | None = None, class_names: Sequence[str] = ()
) -> Circuit:
    """Round every gate of a model and return the circuit that computes the same class scores.

    >>> net = nn.Sequential(LogicDense(4, 6, seed=0), LogicDense(6, 4, arity=3, seed=1), GroupSum(2))
    >>> discretize(net)
    Circuit(inputs=4, gates=10, depth=2, outputs=4, classes=2)

    Args:
        model: A :class:`~gatelight.nn.LogicNetwork`, or an ``nn.Sequential`` (of sequences and stacks, nested in
            any way) of an optional ``Thermometer``, then ``LogicConv2d`` and ``OrPool2d``, ``LogicDense`` layers, and a
            ``GroupSum``. ``nn.Flatten``, and what does nothing in evaluation (``nn.Identity``, ``nn.Dropout``,
            ``GateIntervention``), may come in between.
        input_shape: Shape of one sample, such as (1, 28, 28), if the model does not know it.
        class_names: Names of the classes, stored in the circuit.

    Raises:
        ValueError: If a part of the model has no circuit, has hooks or a forward of its own, or holds parameters that
            are not finite; or if the circuit and the rounded model differ.
    """
    parts = list(_walk(model, ""))
    shape = _input_shape(model, parts, input_shape)
    sketch = CircuitSketch(shape)
    for name, part in parts:
        if sketch.is_counted:
            raise ValueError(f"cannot make a circuit of layer {name!r}, {_kind(part)}: it comes after the group sums")
        try:
            _emit(sketch, part)
        except ValueError as error:
            raise ValueError(f"cannot make a circuit of layer {name!r}, {_kind(part)}: {error}") from None
    circuit = sketch.circuit(class_names)
    _compare(model, circuit, sketch)
    return circuit


def _kind(part: nn.Module | ConvStep) -> str:
    return f"a {type(part.layer if isinstance(part, ConvStep) else part).__name__}"


def _walk(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module | ConvStep]]:
    """The parts of a model in the order in which they run; a part that has no circuit is refused by name.

    A convolutional layer and the pooling right after it are one step.
    """
    step: tuple[str, ConvStep] | None = None
    for label, leaf in _leaves(module, name):
        if isinstance(leaf, OrPool2d) and step is not None:
            step = step[0], ConvStep(step[1].layer, step[1].pool * leaf.size)
            continue
        if isinstance(leaf, _NOTHING):
            continue
        if step is not None:
            yield step
        step = (label, ConvStep(leaf, 1)) if isinstance(leaf, LogicConv2d) else None
        if step is None:
            yield label, leaf
    if step is not None:
        yield step


def _leaves(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    what = f"layer {name!r}, a {type(module).__name__}" if name else f"a {type(module).__name__}"
    if module._forward_hooks or module._forward_pre_hooks:
        raise ValueError(f"cannot make a circuit of {what}: it has forward hooks, which may change what it computes")
    if _runs_as(module, LogicNetwork, "encode", "scores"):
        assert isinstance(module, LogicNetwork)
        yield from _network_leaves(module, name)
    elif any(_runs_as(module, kind) for kind in _SEQUENCES):
        for label, child in module._modules.items():
            if child is not None:
                yield from _leaves(child, f"{name}.{label}" if name else label)
    elif any(_runs_as(module, kind) for kind in _LEAVES):
        yield name, module
    else:
        raise ValueError(f"cannot make a circuit of {what}{_WHY_NOT}")


_WHY_NOT = "; expected a LogicNetwork, sequences, gatelight's layers and nn.Flatten, with their original forward"


def _runs_as(module: nn.Module, kind: type[nn.Module], *methods: str) -> bool:
    """Whether calling a module does what its class ``kind`` does, and not something that a subclass or a patch does."""
    if not isinstance(module, kind) or type(module).__call__ is not nn.Module.__call__:
        return False
    names = ("forward", *methods)
    return all(getattr(type(module), n) is getattr(kind, n) and n not in module.__dict__ for n in names)


def _network_leaves(net: LogicNetwork, name: str) -> Iterator[tuple[str, nn.Module]]:
    """What a network does: encode, flatten, view as images, convolve, flatten, and the dense part."""

    def below(child: str, module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
        return _leaves(module, f"{name}.{child}" if name else child)

    if net.encoder is not None:
        yield from below("encoder", net.encoder)
    if net.conv is not None:
        yield from below("conv", net.conv)
    yield name, nn.Flatten()
    yield from below("layers", net.layers)
    yield from below("head", net.head)


def _input_shape(
    model: nn.Module, parts: list[tuple[str, nn.Module | ConvStep]], given: Sequence[int] | None
) -> tuple[int, ...]:
    """The shape of one sample: what the model or the caller says, or flat features if nothing else is possible."""
    own = model.input_shape if isinstance(model, LogicNetwork) else None
    if given is not None:
        shape = check_shape("input_shape", given)
        if own is not None and shape != tuple(own):
            raise ValueError(f"the network takes inputs of shape {tuple(own)}, not of {shape}")
        return shape
    if own is not None:
        return tuple(own)
    modules = [part for _, part in parts]
    if any(isinstance(m, ConvStep | OrPool2d) for m in modules):
        raise ValueError("convolutional layers need an input_shape (channels, h, w), got None")
    dense = next((m for m in modules if isinstance(m, LogicDense)), None)
    if dense is None:
        raise ValueError("cannot make a circuit of a model that does not end in logic layers and a GroupSum")
    encoder = next((m for m in modules if isinstance(m, Thermometer)), None)
    count = 1 if encoder is None else encoder.count
    later = modules[modules.index(encoder) :] if encoder is not None else []
    partly = any(isinstance(m, nn.Flatten) and (m.start_dim, m.end_dim) != (1, -1) for m in modules)
    if partly or (count != 1 and any(isinstance(m, nn.Flatten) for m in later)):
        raise ValueError("give the input_shape of one sample: the order of the encoder's bits depends on it")
    return (dense.in_features // count,)


def _emit(sketch: CircuitSketch, part: Any) -> None:
    """Let one part of a model write itself into the circuit."""
    if isinstance(part, nn.Flatten):
        sketch.nets = _flattened(sketch.nets, part)
    else:
        part.emit(sketch)


def _flattened(nets: NDArray[np.int32], flatten: nn.Flatten) -> NDArray[np.int32]:
    ndim = nets.ndim + 1  # torch counts the batch
    start, end = (d + ndim if d < 0 else d for d in (flatten.start_dim, flatten.end_dim))
    if not 1 <= start <= end < ndim:
        raise ValueError(f"it flattens dimensions {flatten.start_dim} to {flatten.end_dim} of [batch, *{nets.shape}]")
    return nets.reshape(*nets.shape[: start - 1], -1, *nets.shape[end:])


def _compare(model: nn.Module, circuit: Circuit, sketch: CircuitSketch) -> None:
    """Raise an error unless the circuit gives the rounded model's counts on random inputs."""
    assert sketch.temperature is not None
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    x = random_inputs(circuit, SAMPLES, bits=not sketch.is_encoded)
    with rounded(model):
        counts = (model(x.to(device)).double() * sketch.temperature).round().to(torch.int32).cpu().numpy()
    if not np.array_equal(counts, circuit.scores(x.numpy())):
        raise ValueError("the circuit differs from the rounded model on random inputs; please report this as a bug")


def random_inputs(circuit: Circuit, samples: int, *, bits: bool) -> Tensor:
    """Inputs that tell circuits apart, float32 [samples, *feature_shape]: random bits, or values around thresholds.

    Half of the samples are uniform in [0, 1]; in the others each feature is on one of its thresholds or just above it.
    """
    generator = np.random.default_rng(0)
    shape = (samples, circuit.features)
    if bits:
        return torch.from_numpy(generator.integers(0, 2, shape).astype(np.float32)).view(-1, *circuit.feature_shape)
    x = generator.random(shape, np.float32)
    near = x[samples // 2 :]
    order = np.argsort(circuit.encoder_feature, kind="stable")
    first = np.searchsorted(circuit.encoder_feature[order], np.arange(circuit.features + 1))
    count = np.maximum(np.diff(first), 1)
    place = np.minimum(first[:-1] + generator.integers(0, count, near.shape), len(order) - 1)
    threshold = circuit.encoder_threshold[order[place]]
    above = np.nextafter(threshold, np.float32(2))
    near[:] = np.clip(np.where(generator.integers(0, 2, near.shape), above, threshold), 0, 1)
    return torch.from_numpy(x).view(-1, *circuit.feature_shape)
