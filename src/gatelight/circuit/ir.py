"""The circuit: an encoder, a netlist of lookup tables, group sums.

A *net* is an integer. Nets 0 .. inputs-1 are the input bits; net inputs + g is the output of gate g. A gate reads
only nets with smaller numbers, so evaluating gates in order is enough, and loops are impossible.

>>> xor = Circuit(
...     inputs=2, fanin=[[0, 1]], arity=[2], table=[0b0110], outputs=[2, 0], group_start=[0, 1, 2], bias=[0, 0],
...     temperature=1.0, features=2, encoder_feature=[0, 1], encoder_threshold=[0.5, 0.5],
... )
>>> xor
Circuit(inputs=2, gates=1, depth=1, outputs=2, classes=2)
>>> xor.scores(np.array([[0.0, 1.0], [1.0, 1.0]]))
array([[1, 0],
       [0, 1]], dtype=int32)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatelight.circuit import evaluate
from gatelight.circuit.arrays import freeze, integers
from gatelight.circuit.describe import describe
from gatelight.circuit.encoder import Encoder
from gatelight.truthtable import MAX_ARITY

#: The bits a packed table of each arity may use, uint64 [7].
TABLE_MASK = freeze(np.array([(1 << (1 << n)) - 1 for n in range(MAX_ARITY + 1)], np.uint64))


@dataclass(frozen=True, eq=False, repr=False)
class Circuit:
    """A classifier made of lookup tables: frozen, and checked when it is built.

    The score of class c is ``bias[c]`` plus the number of ones among ``outputs[group_start[c]:group_start[c + 1]]``;
    ``scores / temperature`` are the logits. :func:`gatelight.circuit.evaluate.outputs` defines the meaning.

    Attributes:
        inputs: Number of input bits.
        fanin: Nets each gate reads, int32 [gates, width]; slots from ``arity[g]`` hold -1.
        arity: Number of inputs of each gate, uint8 [gates], 0 (a constant) to 6.
        table: Packed tables, uint64 [gates]; entry k at bit k, *first fanin most significant* in k.
        outputs: Nets that are summed, int32 [outputs], in the order of their class.
        group_start: Where each class begins in ``outputs``, int32 [classes + 1].
        bias: Added to the sums, int32 [classes].
        temperature: What scores are divided by to give logits.
        features: Number of raw features.
        encoder_feature: Raw feature of each input bit, int32 [inputs].
        encoder_threshold: What it must exceed for a one, float32 [inputs].
        class_names: () or one name for each class.
        feature_shape: () or the shape of one sample, such as (1, 28, 28).
        feature_kind: What a feature is: ``bits`` (0 or 1), ``bytes`` (a number from 0 to 1, also u / 255 as uint8 u) or
            ``reals`` (any finite number); see :mod:`gatelight.circuit.features`.
    """

    inputs: int
    fanin: NDArray[np.int32]
    arity: NDArray[np.uint8]
    table: NDArray[np.uint64]
    outputs: NDArray[np.int32]
    group_start: NDArray[np.int32]
    bias: NDArray[np.int32]
    temperature: float
    features: int
    encoder_feature: NDArray[np.int32]
    encoder_threshold: NDArray[np.float32]
    class_names: tuple[str, ...] = ()
    feature_shape: tuple[int, ...] = ()
    feature_kind: str = "bytes"

    def __post_init__(self) -> None:
        store = object.__setattr__
        encoder = self.encoder
        store(self, "features", encoder.features)
        store(self, "encoder_feature", encoder.feature)
        store(self, "encoder_threshold", encoder.threshold)
        store(self, "feature_shape", encoder.shape)
        store(self, "fanin", integers("fanin", self.fanin, np.int32, 2))
        store(self, "arity", integers("arity", self.arity, np.uint8))
        store(self, "table", integers("table", self.table, np.uint64))
        store(self, "outputs", integers("outputs", self.outputs, np.int32))
        store(self, "group_start", integers("group_start", self.group_start, np.int32))
        store(self, "bias", integers("bias", self.bias, np.int32))
        store(self, "class_names", tuple(self.class_names))
        self._check_scalars()
        self._check_gates()
        self._check_groups()

    def _check_scalars(self) -> None:
        inputs, encoder_inputs = self.inputs, len(self.encoder_feature)
        if isinstance(inputs, bool) or not isinstance(inputs, int | np.integer) or inputs != encoder_inputs:
            raise ValueError(f"inputs must be the encoder's {encoder_inputs} bits, got {inputs!r}")
        object.__setattr__(self, "inputs", int(inputs))
        temperature = self.temperature
        if not isinstance(temperature, int | float | np.number) or not (math.isfinite(temperature) and temperature > 0):
            raise ValueError(f"temperature must be a finite number above 0, got {temperature!r}")
        object.__setattr__(self, "temperature", float(temperature))
        # Exporters put names into comments, where a line break would start code.
        if not all(isinstance(name, str) and name.isprintable() for name in self.class_names):
            raise ValueError(f"class_names must hold printable strings, got {self.class_names!r}")

    def _check_gates(self) -> None:
        gates, width = self.fanin.shape
        if not len(self.arity) == len(self.table) == gates:
            raise ValueError(
                f"fanin, arity and table must have one row for each gate, "
                f"got {gates}, {len(self.arity)} and {len(self.table)}"
            )
        if width > MAX_ARITY:
            raise ValueError(f"fanin must have at most {MAX_ARITY} columns, got {width}")
        if self.inputs + gates >= 2**31:
            raise ValueError(f"inputs + gates must be below 2**31, got {self.inputs + gates}")
        if gates and self.arity.max() > width:
            at = int(self.arity.argmax())
            raise ValueError(f"arity[{at}] must be at most the {width} columns of fanin, got {self.arity[at]}")
        nets = np.arange(self.inputs, self.inputs + gates, dtype=np.int32)
        for slot in range(width):
            column, used = self.fanin[:, slot], slot < self.arity
            wrong = np.where(used, (column < 0) | (column >= nets), column != -1)
            if wrong.any():
                at = int(wrong.argmax())
                wanted = f"a net from 0 to {nets[at] - 1}" if used[at] else "-1, being beyond the gate's arity"
                raise ValueError(f"fanin[{at}, {slot}] must be {wanted}, got {column[at]}")
        wrong = (self.table & ~TABLE_MASK[self.arity]) != 0
        if wrong.any():
            at = int(wrong.argmax())
            raise ValueError(
                f"table[{at}] must have {1 << int(self.arity[at])} bits for arity {self.arity[at]}, "
                f"got {int(self.table[at]):#x}"
            )

    def _check_groups(self) -> None:
        nets = self.inputs + self.gates
        wrong = (self.outputs < 0) | (self.outputs >= nets)
        if wrong.any():
            at = int(wrong.argmax())
            raise ValueError(f"outputs[{at}] must be a net from 0 to {nets - 1}, got {self.outputs[at]}")
        start = self.group_start
        if len(start) < 2 or start[0] != 0 or start[-1] != len(self.outputs) or (np.diff(start) < 0).any():
            raise ValueError(
                f"group_start must rise from 0 to {len(self.outputs)} outputs over at least one class, "
                f"got {np.array2string(start, threshold=8)}"
            )
        if len(self.bias) != self.classes:
            raise ValueError(f"bias must have one entry for each of {self.classes} classes, got {len(self.bias)}")
        top = self.bias.astype(np.int64) + np.diff(start)
        if top.max() >= 2**31:
            raise ValueError(f"bias + group size must fit in int32, got {int(top.max())}")
        if self.class_names and len(self.class_names) != self.classes:
            raise ValueError(f"class_names must be empty or {self.classes} names, got {len(self.class_names)}")

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder in front of the netlist."""
        shape, kind = self.feature_shape, self.feature_kind
        return Encoder(self.features, self.encoder_feature, self.encoder_threshold, shape, kind)

    @property
    def gates(self) -> int:
        """Number of gates."""
        return len(self.arity)

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.group_start) - 1

    @cached_property
    def levels(self) -> NDArray[np.int32]:
        """The level of each net, int32 [inputs + gates].

        Inputs and constants are at level 0, any other gate one above the highest net it reads.
        """
        return freeze(evaluate.levels(self.inputs, self.fanin))

    @property
    def depth(self) -> int:
        """Gates on the longest path from an input to an output."""
        return int(self.levels[self.outputs].max(initial=0))

    @cached_property
    def fanout(self) -> NDArray[np.int64]:
        """How many gate inputs and outputs read each net, int64 [inputs + gates]."""
        read = np.concatenate([self.fanin[self.fanin >= 0], self.outputs])
        return freeze(np.bincount(read, minlength=self.inputs + self.gates))

    def bits(self, x: ArrayLike) -> NDArray[np.uint8]:
        """The input bits of raw features, uint8 [batch, inputs]; see :class:`Encoder`."""
        return self.encoder.bits(x)

    def outputs_of(self, bits: ArrayLike) -> NDArray[np.uint8]:
        """The output bits for input bits [batch, inputs], uint8 [batch, outputs]."""
        return evaluate.packed_outputs(self, bits)

    def scores(self, x: ArrayLike) -> NDArray[np.int32]:
        """The class scores of raw features, int32 [batch, classes].

        The native engine computes them if it is installed and worth preparing, else numpy does;
        :mod:`gatelight.engine.automatic` has the rule. :func:`gatelight.circuit.evaluate.scores` is always numpy.

        Args:
            x: [batch, features], [batch, *feature_shape], or [batch, h, w] if that is (1, h, w); any numbers that
                ``feature_kind`` allows, else a ValueError. :mod:`gatelight.circuit.features` has the rule.
        """
        from gatelight.engine import automatic

        return automatic.scores(self, x)

    def predict(self, x: ArrayLike) -> NDArray[np.int64]:
        """The class with the highest score, the first of equals, int64 [batch]; computed as :meth:`scores` are."""
        from gatelight.engine import automatic

        return automatic.predict(self, x)

    def logits(self, x: ArrayLike) -> NDArray[np.float32]:
        """``scores / temperature``, float32 [batch, classes]."""
        return self.scores(x).astype(np.float32) / np.float32(self.temperature)

    def simplify(self, level: int = 1) -> Circuit:
        """An equal circuit with fewer gates; see :func:`gatelight.circuit.passes.simplify`."""
        from gatelight.circuit.passes import simplify

        return simplify(self, level).circuit

    def map_to_arity(self, k: int) -> Circuit:
        """An equal circuit of gates with up to ``k`` inputs; see :func:`gatelight.circuit.passes.map_to_arity`."""
        from gatelight.circuit.passes import map_to_arity

        return map_to_arity(self, k)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the circuit to one file; see :mod:`gatelight.circuit.io`."""
        from gatelight.circuit.io import save

        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Circuit:
        """Read a circuit that :meth:`save` wrote, checking all of it."""
        from gatelight.circuit.io import load

        return load(path)

    def equal(self, other: Circuit) -> bool:
        """Whether all fields are the same, apart from unused columns of ``fanin``.

        Circuits that compute the same function can still differ here; see :mod:`gatelight.circuit.proof.equivalence`.
        """
        width = int(max(self.arity.max(initial=0), other.arity.max(initial=0)))
        for field in fields(self):
            mine, its = getattr(self, field.name), getattr(other, field.name)
            if field.name == "fanin":
                mine, its = _pad(mine, width), _pad(its, width)
            if not np.array_equal(mine, its):
                return False
        return True

    def summary(self) -> str:
        """A few lines of text: sizes, gates by kind, gates by level, fan-out."""
        return describe(self)

    def __repr__(self) -> str:
        return (
            f"Circuit(inputs={self.inputs}, gates={self.gates}, depth={self.depth}, "
            f"outputs={len(self.outputs)}, classes={self.classes})"
        )


def _pad(fanin: NDArray[np.int32], width: int) -> NDArray[np.int32]:
    wide = np.full((len(fanin), width), -1, np.int32)
    shared = min(width, fanin.shape[1])
    wide[:, :shared] = fanin[:, :shared]
    return wide
