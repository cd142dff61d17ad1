"""Random circuits, for tests, benchmarks and experiments.

>>> random_circuit(8, gates=100, outputs=20, seed=0).gates
100
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatelight.circuit.ir import TABLE_MASK, Circuit


def random_circuit(
    inputs: int,
    gates: int,
    *,
    outputs: int = 8,
    classes: int = 2,
    arities: tuple[int, ...] = (2,),
    reach: int | None = None,
    outputs_anywhere: bool = True,
    feature_kind: str = "bytes",
    seed: int = 0,
) -> Circuit:
    """A circuit of random gates.

    Args:
        inputs: Number of input bits; each is its own feature, compared with 0.5.
        gates: Number of gates.
        outputs: Number of outputs.
        classes: Number of classes, over which outputs are divided evenly.
        arities: What each gate's arity is drawn from, 0 to 6; a gate with nothing to read becomes a constant.
        reach: How many nets back a gate may read; a small reach makes a deep circuit. None lets it read any net.
        outputs_anywhere: Draw outputs from all nets, inputs included; otherwise they are the last ones.
        feature_kind: What a feature is: ``bits``, ``bytes`` or ``reals``.
        seed: Same seed, same circuit.
    """
    if inputs + gates == 0 and outputs:
        raise ValueError("a circuit without inputs and gates cannot have outputs, got outputs > 0")
    rng = np.random.default_rng(seed)
    arity = rng.choice(np.array(arities, np.uint8), gates)
    nets = np.arange(inputs, inputs + gates)
    arity[nets == 0] = 0
    width = max(arities, default=0)
    low = np.zeros(gates, np.int64) if reach is None else np.maximum(0, nets - reach)
    fanin = low[:, None] + (rng.random((gates, width)) * (nets - low)[:, None]).astype(np.int64)
    fanin[np.arange(width) >= arity[:, None]] = -1
    table = rng.integers(0, 2**64, gates, dtype=np.uint64) & TABLE_MASK[arity]
    first = 0 if outputs_anywhere else max(0, inputs + gates - outputs)
    chosen = (
        rng.integers(first, inputs + gates, outputs)
        if outputs_anywhere or gates + inputs < outputs
        else (np.arange(first, inputs + gates))
    )
    return _finish(inputs, fanin, arity, table, chosen, classes, feature_kind)


def layered_circuit(
    inputs: int,
    widths: tuple[int, ...],
    *,
    classes: int = 10,
    arity: int = 2,
    feature_kind: str = "bytes",
    seed: int = 0,
) -> Circuit:
    """A dense logic network with random wiring and random tables: each layer reads the one before it.

    >>> layered_circuit(16, (32, 32, 20)).depth
    3
    """
    rng = np.random.default_rng(seed)
    fanin, start, before = [], 0, inputs
    for width in widths:
        fanin.append(rng.integers(start, start + before, (width, arity)))
        start, before = start + before, width
    gates = sum(widths)
    arities = np.full(gates, arity, np.uint8)
    table = rng.integers(0, 2**64, gates, dtype=np.uint64) & TABLE_MASK[arities]
    outputs = np.arange(start, start + before)
    rows = np.concatenate(fanin) if fanin else np.zeros((0, arity), np.int64)
    return _finish(inputs, rows, arities, table, outputs, classes, feature_kind)


def _finish(
    inputs: int,
    fanin: NDArray[Any],
    arity: NDArray[Any],
    table: NDArray[Any],
    outputs: NDArray[Any],
    classes: int,
    feature_kind: str,
) -> Circuit:
    return Circuit(
        inputs=inputs,
        fanin=fanin,
        arity=arity,
        table=table,
        outputs=outputs,
        group_start=np.linspace(0, len(outputs), classes + 1).astype(np.int32),
        bias=np.zeros(classes, np.int32),
        temperature=1.0,
        features=inputs,
        encoder_feature=np.arange(inputs, dtype=np.int32),
        encoder_threshold=np.full(inputs, 0.5, np.float32),
        feature_kind=feature_kind,
    )
