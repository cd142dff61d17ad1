"""Data sets: checked arrays from official files, fetched if they are missing, and from a user's own files."""

from gatelight.data.catalog import TASKS, Status, available, check, get, is_table, load, names
from gatelight.data.dataset import Dataset, Split, validation_split
from gatelight.data.encoding import Column, Encoding
from gatelight.data.fetch import Progress, default_folder
from gatelight.data.source import Source
from gatelight.data.task import Task

__all__ = [
    "TASKS",
    "Column",
    "Dataset",
    "Encoding",
    "Progress",
    "Source",
    "Split",
    "Status",
    "Task",
    "available",
    "check",
    "default_folder",
    "get",
    "is_table",
    "load",
    "names",
    "validation_split",
]
