"""Checks that data is the data that a run was trained on."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from gatelight.data import Dataset
from gatelight.sizes import Task
from gatelight.training.run_folder import task_of


def same_data(header: dict[str, Any], dataset: Dataset, path: Path) -> tuple[Dataset, Task]:
    """The data with which a run continues, and its task.

    Args:
        header: The header of the run's last checkpoint.
        dataset: The data as it is now.
        path: The checkpoint, for messages.

    Raises:
        ValueError: If the data has changed since the run began.
    """
    task = task_of(dataset)
    before = header.get("task")
    if before == _as_json(dataclasses.replace(task, binary=False)):
        # In runs of older versions images of bits go through a thermometer, which leaves them as they are.
        task = dataclasses.replace(task, binary=False)
    dataset = _with_old_names(dataset, header.get("classes"))
    for what, old, new in (
        ("inputs and classes", before, _as_json(task)),
        ("class names", header.get("classes"), list(dataset.classes)),
    ):
        if old != new:
            raise ValueError(f"{path}: {dataset.name} has changed, its {what} were {old} and are {new}")
    if header.get("data", dataset.fingerprint) != dataset.fingerprint:
        raise ValueError(
            f"{path}: {dataset.name} has changed since the run began, its training inputs, labels or names are not "
            f"the same; a run can only continue with its own data"
        )
    return dataset, task


def _as_json(task: Task) -> dict[str, Any]:
    return dataclasses.asdict(task) | {"shape": list(task.shape)}


def _with_old_names(dataset: Dataset, classes: Any) -> Dataset:
    """The data with classes such as 2.0 and 10.0 in the order of words, as in old runs; they are 2 and 10 now."""
    try:
        renamed = dataset.with_classes(tuple(classes))
    except (ValueError, TypeError):
        return dataset
    return renamed if len(renamed.classes) == len(dataset.classes) else dataset
