"""The encoder in front of a circuit: raw features to input bits by thresholds.

>>> encoder = Encoder(features=2, feature=[0, 0, 1], threshold=[0.25, 0.5, 0.5])
>>> encoder.bits(np.array([[0.4, 0.9]]))
array([[1, 0, 1]], dtype=uint8)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatelight.circuit import features as rule
from gatelight.circuit.arrays import floats, integers


@dataclass(frozen=True, eq=False)
class Encoder:
    """Bit i is ``x[feature[i]] > threshold[i]``, compared in float32.

    Values are converted to float32 first, so a float64 value gives the bit that a float32 model gives. If features
    are bytes, a uint8 value u means ``float32(u) / float32(255)``. :mod:`gatelight.circuit.features` has the rule.

    Attributes:
        features: Number of raw features.
        feature: Which raw feature each bit reads, int32 [inputs].
        threshold: What it must exceed, float32 [inputs]; not NaN.
        shape: () or the shape of one sample, whose product is ``features``.
        kind: What a feature is: ``bits``, ``bytes`` or ``reals``.
    """

    features: int
    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    shape: tuple[int, ...] = ()
    kind: str = "bytes"

    def __post_init__(self) -> None:
        count = self.features
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 0 <= count < 2**31:
            raise ValueError(f"features must be a whole number from 0 to 2**31 - 1, got {count!r}")
        feature = integers("encoder_feature", self.feature, np.int32)
        threshold = floats("encoder_threshold", self.threshold)
        if feature.shape != threshold.shape:
            raise ValueError(
                f"encoder_feature and encoder_threshold must have one entry for each input bit, "
                f"got {len(feature)} and {len(threshold)}"
            )
        wrong = (feature < 0) | (feature >= count)
        if wrong.any():
            at = int(wrong.argmax())
            raise ValueError(f"encoder_feature[{at}] must be from 0 to {count - 1}, got {feature[at]}")
        if not all(isinstance(n, int | np.integer) and n >= 0 for n in self.shape):
            raise ValueError(f"feature_shape must hold whole numbers >= 0, got {self.shape!r}")
        shape = tuple(int(n) for n in self.shape)
        if shape and math.prod(shape) != count:
            raise ValueError(f"feature_shape must multiply to {count} features, got {shape}")
        rule.check_kind(self.kind)
        object.__setattr__(self, "features", int(count))
        object.__setattr__(self, "feature", feature)
        object.__setattr__(self, "threshold", threshold)
        object.__setattr__(self, "shape", shape)

    @property
    def inputs(self) -> int:
        """Number of bits."""
        return len(self.feature)

    def rows(self, x: ArrayLike) -> rule.Rows:
        """Raw features as bytes or float32 [batch, features], their values not yet checked."""
        return rule.rows(x, self.kind, self.features, self.shape)

    def check(self, rows: rule.Rows) -> rule.Rows:
        """Return the result of :meth:`rows` if its values are of the right kind; raise a ValueError otherwise."""
        return rule.check(rows, self.kind)

    def values(self, x: ArrayLike) -> NDArray[np.float32]:
        """The numbers that raw features mean, checked, float32 [batch, features].

        Args:
            x: [batch, features], [batch, *shape], or [batch, h, w] if shape is (1, h, w), with any strides.
        """
        return rule.numbers(self.check(self.rows(x)), self.kind)

    def bits(self, x: ArrayLike) -> NDArray[np.uint8]:
        """The input bits of raw features, uint8 [batch, inputs]."""
        return (self.values(x)[:, self.feature] > self.threshold).astype(np.uint8)
