"""Everything that decides a training run, as plain values in one frozen dataclass.

The command's options are made from the fields, and a run's folder holds them resolved as ``config.json``.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gatelight.names import check_name

AUGMENTATIONS = ("none", "crop", "flip", "crop-flip")


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class TrainConfig:
    """A training run. None means the value that goes with the data set and size.

    >>> TrainConfig(dataset="mnist", steps=1000).steps
    1000
    """

    dataset: str = _option("digits", "a data set's name (see 'gatelight data list') or a path to .npz or .csv")
    model: str = _option("dlgn", "dlgn (dense) or cdlgn (convolutional)")
    size: str = _option("S", "size of the network in the papers: S, M or L (cdlgn on CIFAR also B and G)")
    depth_scale: int = _option(1, "D logic layers where the original network has one")
    layers: int | None = _option(None, "dlgn: logic layers at depth scale 1")
    width: int | None = _option(None, "gates of each layer; cdlgn: k, of which all widths are multiples")
    temperature: float | None = _option(None, "divisor of the group sums")
    thresholds: int | None = _option(None, "thermometer thresholds of each value; 0 takes the inputs as bits")
    encoding: str = _option("even", "where the thresholds are: even, or at the data's quantile")
    wide_head: bool = _option(False, "cifar100: a ten times wider last layer in place of a lower temperature")
    tree_depth: int = _option(3, "cdlgn: levels of gates in a tree")
    channels_per_tree: int | None = _option(None, "cdlgn: channels that a tree reads; none is any")
    arity: int = _option(2, "inputs of a gate, 1 to 6 (1 to 3 for op)")
    parametrization: str = _option("iwp", "iwp (2**arity parameters for a gate) or op (2**(2**arity))")
    estimator: str = _option("sin", "of iwp: sin, sigmoid, sigmoid-st, sin-st, sin-sign or linear-st")
    init: str = _option("residual", "residual, gaussian, and-or, and-or-residual, uniform, or a function's name")
    init_strength: float | None = _option(None, "how far the init leans to its function")
    init_spread: float | None = _option(None, "standard deviation of the init")
    wiring: str = _option("clustered", "random, unique, or clustered (random, and faster from 32,768 gates a layer on)")
    residual_fraction: float = _option(
        0.0, "dlgn: share of the last layer's gates that end a fixed residual connection"
    )
    intervention: float = _option(0.0, "probability of replacing a gate's output in training")
    intervention_value: str = _option("bernoulli", "zero, one, half, uniform or bernoulli")
    dropout: float = _option(0.0, "probability of path-connected dropout of an input bit")
    steps: int | None = _option(None, "optimiser steps")
    batch: int | None = _option(None, "samples of a step, over all processes")
    accumulate: int = _option(1, "split a step's batch into this many backward passes")
    lr: float | None = _option(None, "learning rate of Adam")
    schedule: str | None = _option(None, "learning rate over time: constant or cosine")
    weight_decay: float | None = _option(None, "AdamW's weight decay; 0 for iwp unless given")
    augment: str | None = _option(None, "of training images: none, crop (random resized crops), flip or crop-flip")
    augment_scale: float | None = _option(None, "smallest share of an image's area that a crop shows")
    validation: float | None = _option(None, "share of the training set held out for validation")
    eval_every: int | None = _option(None, "steps between evaluations and checkpoints")
    seed: int = _option(0, "draws connections, parameters and the order of the data")

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if not _fits(value, _types(item.name)):
                names = " or ".join("null" if t is type(None) else t.__name__ for t in _types(item.name))
                raise ValueError(f"{item.name} must be {names}, got {value!r}")
        for name in ("steps", "batch", "accumulate", "eval_every"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if self.lr is not None and not 0 < self.lr < float("inf"):
            raise ValueError(f"lr must be a positive number, got {self.lr}")
        if self.weight_decay is not None and not 0 <= self.weight_decay < float("inf"):
            raise ValueError(f"weight_decay must not be negative, got {self.weight_decay}")
        if self.validation is not None and not 0 <= self.validation < 1:
            raise ValueError(f"validation must be in [0, 1), got {self.validation}")
        if self.init_strength is not None and not math.isfinite(self.init_strength):
            raise ValueError(f"init_strength must be finite, got {self.init_strength}")
        if self.init_spread is not None and not 0 <= self.init_spread < float("inf"):
            raise ValueError(f"init_spread must be finite and not negative, got {self.init_spread}")
        if self.schedule is not None:
            check_name("schedule", self.schedule, ("constant", "cosine"))
        if self.augment is not None:
            check_name("augmentation", self.augment, AUGMENTATIONS)
        if self.augment_scale is not None and not 0 < self.augment_scale <= 1:
            raise ValueError(f"augment_scale must be in (0, 1], got {self.augment_scale}")
        if not 0 <= self.seed < 1 << 62:
            raise ValueError(f"seed must be from 0 to 2**62 - 1, got {self.seed}")
        if self.batch is not None and self.batch % self.accumulate:
            raise ValueError(f"accumulate {self.accumulate} does not divide the batch {self.batch}")

    def to_json(self) -> str:
        """The fields as JSON text."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"


@functools.cache
def _types(name: str) -> tuple[type, ...]:
    """The types a field may have."""
    hint = typing.get_type_hints(TrainConfig)[name]
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def field_type(name: str) -> type:
    """The type of a field apart from None.

    >>> field_type("steps"), field_type("wide_head")
    (<class 'int'>, <class 'bool'>)
    """
    return next(t for t in _types(name) if t is not type(None))


def _fits(value: Any, allowed: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in allowed
    if isinstance(value, int) and float in allowed:
        return True
    return isinstance(value, allowed)


def from_dict(values: dict[str, Any], source: str = "the configuration") -> TrainConfig:
    """A configuration from a dictionary; unknown keys are errors that suggest the nearest."""
    known = [f.name for f in dataclasses.fields(TrainConfig)]
    for key in values:
        check_name(f"key in {source}", key, known)
    try:
        return TrainConfig(**values)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def read_config(path: Path) -> TrainConfig:
    """Read a ``config.json``."""
    try:
        values = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ValueError(f"no configuration at {path}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold one JSON object, got {type(values).__name__}")
    return from_dict(values, str(path))
