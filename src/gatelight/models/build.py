"""A network from its configuration."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from gatelight.config import ModelConfig, replace
from gatelight.models.conv import conv_stack, encoded_image
from gatelight.models.dense import dense_layers
from gatelight.models.parts import Parts
from gatelight.models.settle import Settled, positive, round_up, settle
from gatelight.names import check_name
from gatelight.nn import GateIntervention, GroupSum, LogicConvStack, LogicNetwork, PathDropout, Thermometer
from gatelight.nn.layer import make_generator
from gatelight.sizes import MODELS, TASKS, ConvSize, Task, size_of

ENCODINGS = ("even", "quantile")

#: What may be given as a value instead of a name.
_VALUES = ("parametrization", "init", "wiring")


def build(
    dataset: str,
    model: str = "dlgn",
    size: str = "S",
    depth_scale: int = 1,
    *,
    task: Task | None = None,
    samples: Tensor | None = None,
    seed: int | None = None,
    **changes: Any,
) -> LogicNetwork:
    """Build a network with new connections and parameters.

    >>> build("digits", width=100, layers=2, arity=3, seed=0).gates
    200

    Args:
        dataset: A name in :data:`~gatelight.sizes.TASKS`, or any name together with ``task``.
        model: ``dlgn``, the dense network, or ``cdlgn``, the convolutional one.
        size: A size of the data set's network, such as ``S`` or ``M``.
        depth_scale: D logic layers for each layer of the original network. Widths and channels change in the first
            of them, pooling comes after the last.
        task: Input shape and classes of data that is not in the papers.
        samples: Training inputs, to which the encoding ``quantile`` is fitted.
        seed: Draws all connections and parameters.
        changes: Fields of :class:`~gatelight.config.ModelConfig` and :class:`~gatelight.config.Gates` such as ``width``
            or ``arity``. ``parametrization``, ``init`` and ``wiring`` may be values instead of names.
    """
    values = {name: changes.pop(name) for name in _VALUES if not isinstance(changes.get(name, ""), str)}
    config = replace(ModelConfig(model, size, depth_scale), **changes)
    if task is None:
        task = TASKS[check_name("data set", dataset, TASKS)]
    return build_from(dataset, config, task, samples=samples, seed=seed, **values)


def build_from(
    dataset: str,
    config: ModelConfig,
    task: Task,
    *,
    samples: Tensor | None = None,
    seed: int | None = None,
    **values: Any,
) -> LogicNetwork:
    """Build the network of a configuration; the arguments are those of :func:`build`."""
    _check(config)
    chosen = size_of(dataset, config.size, config.model)
    settled = settle(
        dataset,
        config.model,
        config.size,
        task=task,
        layers=config.layers,
        width=config.width,
        temperature=config.temperature,
        thresholds=config.thresholds,
        wide_head=config.wide_head,
    )
    encoder = _encoder(settled.thresholds, config.encoding, samples)
    parts = Parts.of(config.gates, config.wiring, **values)
    generator = make_generator(seed)
    planes = max(settled.thresholds, 1)
    conv: LogicConvStack | None = None
    if isinstance(chosen, ConvSize):
        image = encoded_image(dataset, task.shape, planes)
        conv = conv_stack(chosen, image, settled.width, config, parts, generator)
        last = conv.shapes(*image[1:])[-1]
        bits = conv.layers[-1].out_channels * last.out_height * last.out_width
    else:
        bits = math.prod(task.shape) * planes
    widths = _widths(chosen, settled, config, task.classes)
    layers = dense_layers(
        bits, widths, parts, generator, classes=task.classes, residual_fraction=config.residual_fraction
    )
    return LogicNetwork(
        encoder,
        layers,
        GroupSum(task.classes, settled.temperature),
        conv=conv,
        intervention=GateIntervention(config.intervention, config.intervention_value) if config.intervention else None,
        dropout=PathDropout(config.dropout) if config.dropout else None,
        input_shape=task.shape,
    )


def _check(config: ModelConfig) -> None:
    """Refuse unknown names and choices that do not fit together."""
    check_name("model", config.model, MODELS)
    check_name("encoding", config.encoding, ENCODINGS)
    positive("depth scale", config.depth_scale)
    if config.model == "cdlgn" and config.residual_fraction:
        raise ValueError("layers and residual_fraction are for the model dlgn, not for cdlgn")
    if config.model == "dlgn" and (config.tree_depth != 3 or config.channels_per_tree is not None):
        raise ValueError("tree_depth and channels_per_tree are for the model cdlgn, not for dlgn")
    if not config.intervention and config.intervention_value != "bernoulli":
        raise ValueError(f"intervention_value {config.intervention_value!r} needs an intervention above 0")


def _widths(chosen: Any, settled: Settled, config: ModelConfig, classes: int) -> list[int]:
    """Gates of each dense layer."""
    if isinstance(chosen, ConvSize):
        units = [head * chosen.head_factor for head in chosen.head for _ in range(config.depth_scale)]
        widths = [settled.width * unit for unit in units]
        widths[-1] = round_up(widths[-1], classes)
    else:
        assert settled.layers is not None
        widths = [settled.width] * (settled.layers * config.depth_scale)
    if config.wide_head:
        widths[-1] *= 10
    return widths


def _encoder(thresholds: int, encoding: str, samples: Tensor | None) -> Thermometer | None:
    if thresholds == 0:
        return None
    if encoding == "even":
        return Thermometer.even(thresholds)
    if samples is None:
        raise ValueError("encoding 'quantile' is fitted to data: pass samples")
    return Thermometer.fit(samples, thresholds)
