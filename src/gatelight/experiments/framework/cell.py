"""A cell: one computation of an experiment, named by a hash of its settings."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from gatelight import data
from gatelight.config import RunConfig


class StoppedError(Exception):
    """A cell was asked to stop; its work so far is saved in its folder."""


def _never() -> bool:
    return False


def _nobody(_share: float, _text: str) -> None:
    pass


@dataclass(frozen=True)
class Context:
    """Where a cell runs; nothing in here may change its result.

    Attributes:
        folder: The cell's own folder, to save what it needs to continue after an interruption.
        data: Folder of the data sets; None is the default one.
        device: Where networks are computed.
        stop: Says whether to save and raise :class:`StoppedError`.
        advanced: Called with the share that is done and a line of progress.
    """

    folder: Path
    data: Path | None = None
    device: str = "cpu"
    stop: Callable[[], bool] = _never
    advanced: Callable[[float, str], None] = _nobody


class Cell(Protocol):
    """A frozen dataclass of plain values with a ``run`` that depends on nothing else."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    #: Changes whenever ``run`` would give other results, so that old results are not mistaken for new ones.
    version: ClassVar[int]
    #: Whether it measures time, and so must have the machine to itself.
    timed: ClassVar[bool]

    @property
    def label(self) -> str:
        """What progress lines and result files call it."""

    @property
    def seconds(self) -> float:
        """About how long it takes on two cores."""

    def run(self, context: Context) -> dict[str, Any]:
        """Compute the result, which must be JSON."""


def settings(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, as plain values.

    Defaults are left out so that a new option, which leaves old runs as they were, leaves their keys as well.

    >>> from gatelight.config import ModelConfig
    >>> settings(RunConfig(model=ModelConfig(width=100), seed=3))
    {'width': 100, 'seed': 3}
    """
    if isinstance(value, RunConfig):
        # By the flat names of its leaves, as before runs were nested.
        default = RunConfig().to_flat()
        return {name: item for name, item in value.to_flat().items() if item != default[name]}
    plain: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if item != field.default:
            plain[field.name] = settings(item) if dataclasses.is_dataclass(item) else item
    return plain


def key(cell: Cell) -> str:
    """The name under which the cell's result is kept: its class and a hash of version and settings."""
    name = type(cell).__name__
    text = json.dumps([name, cell.version, settings(cell)], sort_keys=True)
    return f"{name.lower()}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


@functools.lru_cache(maxsize=2)
def dataset(name: str, folder: Path | None) -> data.Dataset:
    """A data set; the last two are kept, since neighboring cells use the same."""
    return data.load(name, folder)
