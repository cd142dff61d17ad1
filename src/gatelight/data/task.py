"""The task that a data set sets for a network."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """The shape of a sample, the number of classes, and whether the inputs are bits.

    >>> Task((1, 28, 28), 10).binary
    False

    Attributes:
        shape: Of one sample: [features], or [channels, height, width].
        classes: How many there are.
        binary: Whether every input is 0 or 1, so that a network needs no encoder.
    """

    shape: tuple[int, ...]
    classes: int
    binary: bool = False
