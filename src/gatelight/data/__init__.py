"""Datasets: checked arrays from official files, fetched if need be, and from a user's own files."""

from gatelight.data.catalog import Status, available, check, get, is_table, load, names
from gatelight.data.dataset import Dataset, Split, validation_split
from gatelight.data.encoding import Column, Encoding
from gatelight.data.fetch import Progress, default_folder

__all__ = [
    "Column",
    "Dataset",
    "Encoding",
    "Progress",
    "Split",
    "Status",
    "available",
    "check",
    "default_folder",
    "get",
    "is_table",
    "load",
    "names",
    "validation_split",
]
