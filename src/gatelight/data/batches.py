"""The order in which training sees the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Batches:
    """The order of the data: epoch e is a permutation drawn from (seed, e), and batches continue across epochs.

    >>> order = Batches(samples=5, batch=2, seed=0)
    >>> sorted([*order.at(0), *order.at(1), order.at(2)[0]])       # the first epoch
    [0, 1, 2, 3, 4]
    """

    def __init__(self, samples: int, batch: int, seed: int) -> None:
        self.samples, self.batch, self.seed = samples, batch, seed
        self._epochs: dict[int, NDArray[np.int64]] = {}

    def at(self, step: int) -> list[int]:
        """The samples of a step."""
        first = step * self.batch
        epochs = range(first // self.samples, (first + self.batch - 1) // self.samples + 1)
        self._epochs = {e: self._epochs[e] if e in self._epochs else self._permutation(e) for e in epochs}
        stream = np.concatenate([self._epochs[e] for e in epochs])
        offset = first - epochs[0] * self.samples
        picked: list[int] = stream[offset : offset + self.batch].tolist()
        return picked

    def _permutation(self, epoch: int) -> NDArray[np.int64]:
        return np.random.default_rng([self.seed, epoch]).permutation(self.samples)
