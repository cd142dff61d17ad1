"""A circuit under construction, to which the parts of a model add themselves one after another.

Each part of a model has a method ``emit(sketch)``: it reads ``sketch.nets``, which replace a batch, adds its gates,
and sets the nets of its outputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gatelight.circuit.builder import CircuitBuilder
from gatelight.circuit.ir import Circuit


class CircuitSketch:
    """A circuit under construction.

    >>> sketch = CircuitSketch((2,))
    >>> gates = sketch.gates()
    >>> sketch.nets = gates.add(sketch.nets[[[0, 1], [1, 0]]], np.array([[0, 0, 0, 1], [0, 1, 1, 1]], np.uint8))
    >>> sketch.count(classes=2, temperature=1.0)
    >>> sketch.circuit()
    Circuit(inputs=2, gates=2, depth=1, outputs=2, classes=2)

    Args:
        shape: Shape of one sample.

    Attributes:
        nets: The nets that the next part reads, int32 in the shape of its input; raw features before the encoder.
        temperature: Divisor of the class counts, once they have been counted.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.nets: NDArray[np.int32] = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
        self.temperature: float | None = None
        self._classes = 0
        self._feature: NDArray[np.int32] | None = None
        self._threshold: NDArray[np.float32] | None = None
        self._builder: CircuitBuilder | None = None

    @property
    def is_encoded(self) -> bool:
        """Whether an encoder makes the input bits; else the features are bits."""
        return self._feature is not None

    @property
    def is_counted(self) -> bool:
        """Whether the classes have been counted, so that nothing can follow."""
        return self.temperature is not None

    def encode(self, thresholds: NDArray[np.float32]) -> None:
        """Turn each feature into bits, one for each threshold that it may exceed.

        Bits of a feature or channel are consecutive: [channels, *rest] becomes [channels * thresholds, *rest].

        Args:
            thresholds: Of all features, [thresholds], or of each feature or channel, [channels, thresholds].
        """
        if self._feature is not None or self._builder is not None:
            raise ValueError("a model has at most one encoder, before the gates")
        channels, *rest = self.nets.shape
        if thresholds.ndim == 2 and len(thresholds) != channels:
            raise ValueError(f"it is for {len(thresholds)} features or channels, got {channels}")
        count = thresholds.shape[-1]
        shape = (channels, count, *rest)
        self._feature = np.broadcast_to(self.nets[:, None], shape).reshape(-1)
        levels = thresholds.reshape(-1, count, *(1,) * len(rest))
        self._threshold = np.broadcast_to(levels, shape).astype(np.float32).reshape(-1)
        self.nets = np.arange(len(self._feature), dtype=np.int32).reshape(channels * count, *rest)

    def gates(self) -> CircuitBuilder:
        """Where gates are added."""
        if self._builder is None:
            self._builder = CircuitBuilder(self.nets.size if self._feature is None else len(self._feature))
        return self._builder

    def images(self, channels: int | None = None) -> NDArray[np.int32]:
        """The nets as [channels, h, w], or a ValueError."""
        if self.nets.ndim != 3 or (channels is not None and self.nets.shape[0] != channels):
            raise ValueError(f"it reads [{channels or 'channels'}, h, w], but gets {list(self.nets.shape)}")
        return self.nets

    def count(self, classes: int, temperature: float) -> None:
        """Count the outputs in equal groups, one for each class."""
        if self.nets.ndim != 1 or len(self.nets) % classes:
            raise ValueError(f"{classes} classes do not divide outputs of shape {list(self.nets.shape)}")
        self._classes, self.temperature = classes, temperature

    def circuit(self, class_names: Sequence[str] = ()) -> Circuit:
        """The circuit, once the classes have been counted."""
        if self.temperature is None or self._builder is None or not self._builder.gates:
            raise ValueError("cannot make a circuit of a model that does not end in logic layers and a GroupSum")
        features, classes = math.prod(self.shape), self._classes
        if self._feature is None or self._threshold is None:
            feature, threshold = np.arange(features, dtype=np.int32), np.full(features, 0.5, np.float32)
        else:
            feature, threshold = self._feature, self._threshold
        fanin, arity, table = self._builder.arrays()
        return Circuit(
            inputs=len(feature),
            fanin=fanin,
            arity=arity,
            table=table,
            outputs=self.nets,
            group_start=np.arange(classes + 1, dtype=np.int32) * np.int32(len(self.nets) // classes),
            bias=np.zeros(classes, np.int32),
            temperature=self.temperature,
            features=features,
            encoder_feature=feature,
            encoder_threshold=threshold,
            class_names=tuple(class_names),
            feature_shape=self.shape,
            feature_kind="bytes" if self.is_encoded else "bits",
        )
