"""Runs as flat dictionaries, and as ``config.json``: one flat JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gatelight.config.flat import leaves, replace
from gatelight.config.values import RunConfig
from gatelight.names import check_name


def from_flat(values: Mapping[str, Any], source: str = "the configuration") -> RunConfig:
    """A run from a flat dictionary, as in ``config.json``; an unknown key is an error that suggests the nearest one.

    >>> from_flat({"dataset": "mnist", "width": 200, "init_spread": 0.5}).model.gates.init_std
    0.5
    """
    known = [leaf.key for leaf in leaves(RunConfig)]
    names = {leaf.name for leaf in leaves(RunConfig)}
    for key in values:
        if key not in names:
            check_name(f"key in {source}", key, known)
    try:
        return replace(RunConfig(), **values)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def to_json(config: RunConfig) -> str:
    """The text of ``config.json``."""
    return json.dumps(config.to_flat(), indent=2) + "\n"


def read_config(path: Path) -> RunConfig:
    """Read a ``config.json``."""
    try:
        values = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ValueError(f"no configuration at {path}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold one JSON object, got {type(values).__name__}")
    return from_flat(values, str(path))
