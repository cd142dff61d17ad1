"""How the columns of a table become features and its labels classes, so that another table is read the same way.

>>> color = Column("color", words=("blue", "red"))
>>> color.features, Column("age", low=20, high=60).features
(('color=blue', 'color=red'), ('age',))
>>> Column("age", low=20, high=60).numbers(np.array([30.0, 99.0]))
array([0.25, 1.  ], dtype=float32)
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
#: Longer texts are words: Decimal rounds after 28 digits.
_LONGEST = 25


@dataclass(frozen=True)
class Column:
    """How one column becomes features: numbers by ``(v - low) / (high - low)``, clipped, or a bit for each word.

    Attributes:
        name: The column.
        low: The number that becomes 0.
        high: The number that becomes 1.
        words: The words, or () for a column of numbers.
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    words: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """The names of its features."""
        return tuple(f"{self.name}={word}" for word in self.words) if self.words else (self.name,)

    def numbers(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """A column of numbers as features in [0, 1]; all 0 if the training column was constant."""
        # Computed on halves, because the difference of two finite numbers may not be finite.
        span = self.high / 2 - self.low / 2
        scaled = (values / 2 - self.low / 2) / span if span > 0 else np.zeros_like(values)
        return np.clip(scaled, 0, 1).astype(np.float32)


@dataclass(frozen=True)
class Encoding:
    """How a whole table is read.

    Attributes:
        label: The column of the labels.
        columns: The others, in the order of their features.
        classes: The name of each class.
    """

    label: str
    columns: tuple[Column, ...]
    classes: tuple[str, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of all features."""
        return tuple(name for column in self.columns for name in column.features)

    def to_dict(self) -> dict[str, Any]:
        """The encoding as values that JSON can hold."""
        columns = [
            {"name": c.name, "words": list(c.words)} if c.words else {"name": c.name, "low": c.low, "high": c.high}
            for c in self.columns
        ]
        return {"label": self.label, "columns": columns, "classes": list(self.classes)}


def from_dict(values: Any, where: str) -> Encoding:
    """The inverse of :meth:`Encoding.to_dict`.

    Raises:
        ValueError: If the values are not an encoding; ``where`` names their source.
    """
    try:
        columns = tuple(
            Column(str(c["name"]), words=tuple(map(str, c["words"])))
            if "words" in c
            else Column(str(c["name"]), float(c["low"]), float(c["high"]))
            for c in values["columns"]
        )
        encoding = Encoding(str(values["label"]), columns, tuple(map(str, values["classes"])))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{where}: how its table was encoded cannot be read: {error!r:.80}") from None
    if not all(math.isfinite(c.low) and math.isfinite(c.high) for c in columns):
        raise ValueError(f"{where}: how its table was encoded cannot be read: a range is not finite")
    return encoding


def class_name(text: str) -> str:
    """The name of a class: numbers that are equal have one name, the shortest whole-number form if there is one.

    >>> class_name("0.0"), class_name("-0"), class_name("1e2"), class_name("0.50"), class_name("red")
    ('0', '0', '100', '0.5', 'red')
    """
    if len(text) > _LONGEST or not NUMBER.fullmatch(text):
        return text
    value = Decimal(text)
    if not value:
        return "0"
    if abs(value.adjusted()) > _LONGEST:
        return str(value.normalize())
    return str(int(value)) if value == value.to_integral_value() else f"{value.normalize():f}"
