"""The values of a run. None means that the data set and size decide."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

from gatelight.config import flat
from gatelight.names import check_name

AUGMENTATIONS = ("none", "crop", "flip", "crop-flip")
SCHEDULES = ("constant", "cosine")


def _option(default: Any, text: str, in_files: str | None = None) -> Any:
    """A field with the help text of its option, and its key in files if that is not the field's name."""
    return field(default=default, metadata={"help": text, "in_files": in_files})


class _Checked:
    """Compares the type of every field with its annotation when a value is made."""

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):  # type: ignore[arg-type]
            value, allowed = getattr(self, item.name), flat.types_of(type(self), item.name)
            if not flat.fits(value, allowed):
                names = " or ".join("null" if t is type(None) else t.__name__ for t in allowed)
                raise ValueError(f"{item.name} must be {names}, got {value!r}")

    def to_flat(self) -> dict[str, Any]:
        """The leaves by their names in files, in the order of the fields."""
        return flat.to_flat(self)


@dataclass(frozen=True)
class Gates(_Checked):
    """What the gates of all layers are and where they start.

    >>> Gates(parametrization="op").arity
    2
    """

    arity: int = _option(2, "inputs of a gate, 1 to 6 (1 to 3 for op)")
    parametrization: str = _option(
        "iwp", "iwp (2**arity parameters per gate), op (2**(2**arity)), or another of gatelight.parametrize.NAMED"
    )
    estimator: str = _option("sin", "iwp: sin, sigmoid, sigmoid-st, sin-st, sin-sign or linear-st")
    init: str = _option("residual", "residual, gaussian, and-or, and-or-residual, uniform, or a function's name")
    init_strength: float | None = _option(None, "how far the init leans to its function")
    init_std: float | None = _option(None, "standard deviation of the init", in_files="init_spread")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.init_strength is not None and not math.isfinite(self.init_strength):
            raise ValueError(f"init_strength must be finite, got {self.init_strength}")
        if self.init_std is not None and not 0 <= self.init_std < math.inf:
            raise ValueError(f"init_std must be finite and not negative, got {self.init_std}")


@dataclass(frozen=True)
class ModelConfig(_Checked):
    """The network.

    >>> ModelConfig(width=100, gates=Gates(arity=3)).to_flat()["arity"]
    3
    """

    model: str = _option("dlgn", "dlgn (dense) or cdlgn (convolutional)")
    size: str = _option("S", "size of the network in the papers: S, M or L (cdlgn on CIFAR also B and G)")
    depth_scale: int = _option(1, "D logic layers where the original network has one")
    layers: int | None = _option(None, "dlgn: logic layers at depth scale 1")
    width: int | None = _option(None, "gates of each layer; cdlgn: k, of which all widths are multiples")
    temperature: float | None = _option(None, "divisor of the group sums")
    thresholds: int | None = _option(None, "thermometer thresholds of each value; 0 takes the inputs as bits")
    encoding: str = _option("even", "where the thresholds are: even, or at the data's quantile")
    wide_head: bool = _option(False, "cifar100: a ten times wider last layer instead of a lower temperature")
    tree_depth: int = _option(3, "cdlgn: levels of gates in a tree")
    channels_per_tree: int | None = _option(None, "cdlgn: channels that a tree reads (default: any)")
    gates: Gates = Gates()
    wiring: str = _option(
        "clustered",
        "random, unique, clustered (random, faster for layers of 32,768 gates and more), or another of "
        "gatelight.wiring.NAMED",
    )
    residual_fraction: float = _option(
        0.0, "dlgn: share of the last layer's gates that end a fixed residual connection"
    )
    intervention: float = _option(0.0, "probability of replacing a gate's output in training")
    intervention_value: str = _option("bernoulli", "zero, one, half, uniform or bernoulli")
    dropout: float = _option(0.0, "probability of path-connected dropout of an input bit")


@dataclass(frozen=True)
class Optimization(_Checked):
    """How a network is trained.

    >>> Optimization(steps=1000, lr=0.02).accumulate
    1
    """

    steps: int | None = _option(None, "training steps")
    batch: int | None = _option(None, "samples per step, over all processes")
    accumulate: int = _option(1, "split a step's batch into this many backward passes")
    lr: float | None = _option(None, "learning rate of Adam")
    schedule: str | None = _option(None, "learning rate over time: constant or cosine")
    weight_decay: float | None = _option(None, "AdamW's weight decay; 0 for iwp unless given")
    augment: str | None = _option(None, "training images: none, crop (random resized crops), flip or crop-flip")
    augment_scale: float | None = _option(None, "smallest share of an image's area that a crop shows")
    validation: float | None = _option(None, "share of the training set held out for validation")
    eval_every: int | None = _option(None, "steps between evaluations and checkpoints")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("steps", "batch", "accumulate", "eval_every"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if self.lr is not None and not 0 < self.lr < math.inf:
            raise ValueError(f"lr must be a positive number, got {self.lr}")
        if self.weight_decay is not None and not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"weight_decay must not be negative, got {self.weight_decay}")
        if self.validation is not None and not 0 <= self.validation < 1:
            raise ValueError(f"validation must be in [0, 1), got {self.validation}")
        if self.schedule is not None:
            check_name("schedule", self.schedule, SCHEDULES)
        if self.augment is not None:
            check_name("augmentation", self.augment, AUGMENTATIONS)
        if self.augment_scale is not None and not 0 < self.augment_scale <= 1:
            raise ValueError(f"augment_scale must be in (0, 1], got {self.augment_scale}")
        if self.batch is not None and self.batch % self.accumulate:
            raise ValueError(f"accumulate {self.accumulate} does not divide the batch {self.batch}")


@dataclass(frozen=True)
class RunConfig(_Checked):
    """A training run on a data set by name.

    >>> RunConfig("mnist", ModelConfig(width=200), Optimization(steps=1000), seed=3).model.width
    200
    """

    dataset: str = _option("digits", "a data set's name (see 'gatelight data list') or a path to .npz or .csv")
    model: ModelConfig = ModelConfig()
    optimization: Optimization = Optimization()
    seed: int = _option(0, "draws connections, parameters and the order of the data")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.seed < 1 << 62:
            raise ValueError(f"seed must be from 0 to 2**62 - 1, got {self.seed}")
