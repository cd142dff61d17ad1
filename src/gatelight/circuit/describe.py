"""A readable summary of a circuit, and its numbers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gatelight.truthtable import name, unpack

if TYPE_CHECKING:
    from gatelight.circuit.ir import Circuit


def kinds(circuit: Circuit) -> Counter[str]:
    """Gates by kind: constants, the functions of one and two inputs by name, larger ones by arity (``lut3``)."""
    counts: Counter[str] = Counter()
    key = np.stack([circuit.arity.astype(np.uint64), np.where(circuit.arity > 2, 0, circuit.table)], 1)
    distinct, number = np.unique(key.astype(np.uint64), axis=0, return_counts=True)
    for (arity, table), count in zip(distinct.tolist(), number.tolist(), strict=True):
        if arity == 0:
            kind = "true" if table else "false"
        else:
            kind = f"lut{arity}" if arity > 2 else name(unpack(table, arity))
        counts[kind] += count
    return counts


def feature_reads(circuit: Circuit) -> NDArray[np.int64]:
    """How many gate inputs and outputs read a bit of each feature, int64 [features]."""
    reads = np.bincount(circuit.encoder_feature, circuit.fanout[: circuit.inputs], circuit.features)
    return reads.astype(np.int64)


def facts(circuit: Circuit) -> dict[str, Any]:
    """Sizes, gates by kind and by level, and how often features are read, as values that JSON can hold.

    >>> from gatelight.circuit.random import layered_circuit
    >>> facts(layered_circuit(4, (6, 4), classes=2))["gates_by_level"]
    [0, 6, 4]
    """
    return {
        "gates": circuit.gates,
        "depth": circuit.depth,
        "kinds": dict(kinds(circuit)),
        "gates_by_level": np.bincount(circuit.levels[circuit.inputs :]).tolist(),
        "reads_of_feature": feature_reads(circuit).tolist(),
    }


def describe(circuit: Circuit) -> str:
    """Sizes, gates by kind, gates by level and fan-out, one line each."""
    by_level = np.bincount(circuit.levels[circuit.inputs :]).tolist()
    fanout = circuit.fanout[circuit.inputs :]
    shape = circuit.feature_shape
    lines = [
        f"features  {circuit.features} {circuit.feature_kind}{f' {shape}' if len(shape) > 1 else ''}",
        f"encoder   {circuit.features} features -> {circuit.inputs} bits",
        f"gates     {circuit.gates} in {circuit.depth} levels",
        "kinds     " + (", ".join(f"{kind} {n}" for kind, n in kinds(circuit).most_common()) or "none"),
        "by level  " + (_shorten([str(n) for n in by_level]) or "none"),
        f"fan-out   mean {fanout.mean() if len(fanout) else 0:.2f}, most {fanout.max(initial=0)}, "
        f"{int((fanout == 0).sum())} gates unread",
        f"outputs   {len(circuit.outputs)} summed in {circuit.classes} classes, temperature "
        f"{circuit.temperature:g}, bias {_shorten([str(n) for n in circuit.bias.tolist()])}",
    ]
    return "\n".join(lines)


def _shorten(words: list[str], most: int = 16) -> str:
    return " ".join(words[:most]) + (f" ... ({len(words)} in all)" if len(words) > most else "")
