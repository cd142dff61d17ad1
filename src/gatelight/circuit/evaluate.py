"""Two evaluators of a circuit: the obvious one, which is the definition, and one with 64 samples per word.

:func:`outputs` walks over the gates and looks each sample's bits up in the table. Everything else that runs a
circuit must give the same result. :func:`packed_outputs` is the numpy evaluator that is fast enough to use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from gatelight.circuit.ir import Circuit

Words = NDArray[np.uint64]

#: Working set of the packed evaluator in 64-bit words: large enough to hide call costs, small enough for a laptop.
_WORKING_SET = 1 << 22
_MAX_WORDS = 1 << 10
_LEVEL_BLOCK = 1 << 14
_LEVEL_ROUNDS = 64


def outputs(circuit: Circuit, bits: ArrayLike) -> NDArray[np.uint8]:
    """The output bits for input bits [batch, inputs], uint8 [batch, outputs]: the definition, gate by gate."""
    given = check_bits(circuit, bits)
    nets = np.zeros((circuit.inputs + circuit.gates, len(given)), np.uint8)
    nets[: circuit.inputs] = given.T
    for gate in range(circuit.gates):
        entry = np.zeros(len(given), np.uint64)
        for net in circuit.fanin[gate, : circuit.arity[gate]]:
            entry = (entry << np.uint64(1)) | nets[net]
        nets[circuit.inputs + gate] = (circuit.table[gate] >> entry) & np.uint64(1)
    return np.ascontiguousarray(nets[circuit.outputs].T)


def group_sums(circuit: Circuit, ones: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Class scores of output bits [batch, outputs]: ones in each group plus bias, int32 [batch, classes]."""
    scores = np.empty((len(ones), circuit.classes), np.int32)
    for group, (start, stop) in enumerate(
        zip(circuit.group_start[:-1].tolist(), circuit.group_start[1:].tolist(), strict=True)
    ):
        scores[:, group] = ones[:, start:stop].sum(1, dtype=np.int32) + circuit.bias[group]
    return scores


def scores(circuit: Circuit, x: ArrayLike) -> NDArray[np.int32]:
    """The class scores of raw features, int32 [batch, classes]."""
    values = circuit.encoder.values(x)
    result = np.empty((len(values), circuit.classes), np.int32)
    step = 64 * words_per_block(circuit)
    for start in range(0, len(values), step):
        block = values[start : start + step]
        bits = block[:, circuit.encoder_feature] > circuit.encoder_threshold
        result[start : start + step] = group_sums(circuit, _run_block(circuit, bits))
    return result


def predict(circuit: Circuit, x: ArrayLike) -> NDArray[np.int64]:
    """The class with the highest score, the first of equals, int64 [batch]."""
    return np.asarray(scores(circuit, x).argmax(1), np.int64)


def packed_outputs(circuit: Circuit, bits: ArrayLike) -> NDArray[np.uint8]:
    """The same as :func:`outputs`, level by level and with 64 samples per word."""
    given = check_bits(circuit, bits)
    result = np.empty((len(given), len(circuit.outputs)), np.uint8)
    step = 64 * words_per_block(circuit)
    for start in range(0, len(given), step):
        result[start : start + step] = _run_block(circuit, given[start : start + step])
    return result


def _run_block(circuit: Circuit, bits: NDArray[np.uint8] | NDArray[np.bool_]) -> NDArray[np.uint8]:
    nets = simulate(circuit, pack_samples(bits))
    return unpack_samples(nets[circuit.outputs], len(bits))


def simulate(circuit: Circuit, words: Words) -> Words:
    """All nets for packed input bits, uint64 [inputs + gates, words].

    Args:
        circuit: The circuit.
        words: One row for each input bit, uint64 [inputs, words]; bit j of word w is sample 64 w + j.
    """
    nets = np.empty((circuit.inputs + circuit.gates, words.shape[1]), np.uint64)
    nets[: circuit.inputs] = words
    for gates, arity in schedule(circuit):
        operands = [nets[circuit.fanin[gates, slot]] for slot in range(arity)]
        nets[circuit.inputs + gates] = apply_tables(circuit.table[gates], operands, words.shape[1])
    return nets


def schedule(circuit: Circuit) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Gate numbers and their arity in groups, so that no group reads its own nets or those of a later group."""
    if circuit.gates == 0:
        return
    key = circuit.levels[circuit.inputs :].astype(np.int64) * 8 + circuit.arity
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    for gates in np.split(order, cuts):
        yield gates, int(circuit.arity[gates[0]])


def apply_tables(table: Words, operands: Sequence[Words], words: int = 1) -> Words:
    """Evaluate packed tables bit by bit on words, uint64 [gates, words].

    A table is a row of constants; each input, last one first, halves the row by choosing between neighbors:
    ``low ^ ((low ^ high) & input)``.

    >>> apply_tables(np.array([0b0110], np.uint64), [np.array([[12]], np.uint64), np.array([[10]], np.uint64)])
    array([[6]], dtype=uint64)
    """
    entries = np.arange(1 << len(operands), dtype=np.uint64)[:, None, None]
    row: list[Words] = list(np.uint64(0) - ((table[:, None] >> entries) & np.uint64(1)))
    for operand in reversed(operands):
        row = [low ^ ((low ^ high) & operand) for low, high in zip(row[::2], row[1::2], strict=True)]
    return np.broadcast_to(row[0], (len(table), words))


def pack_samples(bits: NDArray[np.uint8] | NDArray[np.bool_]) -> Words:
    """Bits [batch, nets] as words, uint64 [nets, ceil(batch / 64)]; the last word is filled up with zeros.

    >>> pack_samples(np.array([[1], [0], [1]], np.uint8)).tolist()
    [[5]]
    """
    batch, nets = bits.shape
    packed = np.zeros((nets, (batch + 63) // 64 * 8), np.uint8)
    packed[:, : (batch + 7) // 8] = np.packbits(np.ascontiguousarray(bits.T), axis=1, bitorder="little")
    return packed.view("<u8").astype(np.uint64, copy=False)


def unpack_samples(words: Words, batch: int) -> NDArray[np.uint8]:
    """The inverse of :func:`pack_samples`, uint8 [batch, nets]."""
    raw = np.ascontiguousarray(words.astype("<u8", copy=False)).view(np.uint8)
    # A row of no words has no last axis to view as bytes, so its shape is restored here.
    raw = raw.reshape(len(words), 8 * words.shape[1])
    return np.ascontiguousarray(np.unpackbits(raw, axis=1, count=batch, bitorder="little").T)


def words_per_block(circuit: Circuit) -> int:
    """How many words of each net fit the working set."""
    return max(1, min(_MAX_WORDS, _WORKING_SET // max(1, circuit.inputs + circuit.gates)))


def check_bits(circuit: Circuit, bits: ArrayLike) -> NDArray[np.uint8]:
    """Input bits as uint8 [batch, inputs] of zeros and ones, or a ValueError."""
    given = np.asarray(bits)
    if given.ndim != 2 or given.shape[1] != circuit.inputs:
        raise ValueError(f"bits must have shape [batch, {circuit.inputs}], got {given.shape}")
    if given.dtype.kind not in "biu":
        raise ValueError(f"bits must be whole numbers or bool, got {given.dtype}")
    if given.size and (given.min() < 0 or given.max() > 1):
        raise ValueError(f"bits must be 0 or 1, got values from {given.min()} to {given.max()}")
    return given.astype(np.uint8)


def levels(inputs: int, fanin: NDArray[np.int32]) -> NDArray[np.int32]:
    """The level of each net, int32 [inputs + gates]: 0 for inputs and constants, else 1 + the highest fanin's.

    Fanin is int32 [gates, width] with -1 in unused slots. Gates are processed in blocks; each block is repeated until
    nothing changes.
    """
    gates = len(fanin)
    level = np.zeros(inputs + gates + 1, np.int32)  # the last entry, which -1 reads, means no net
    level[-1] = -1
    for start in range(0, gates, _LEVEL_BLOCK):
        rows = fanin[start : start + _LEVEL_BLOCK]
        own = level[inputs + start : inputs + start + len(rows)]
        for _ in range(_LEVEL_ROUNDS):
            above = level[rows].max(1, initial=-1) + 1
            if np.array_equal(above, own):
                break
            own[:] = above
        else:
            own[:] = _levels_one_by_one(inputs + start, rows, level)
    return level[:-1].copy()


def _levels_one_by_one(first: int, rows: NDArray[np.int32], level: NDArray[np.int32]) -> list[int]:
    """The same for a block so deep that repeating it costs more than a loop over its gates."""
    result: list[int] = []
    for row, before in zip(rows.tolist(), level[rows].tolist(), strict=True):
        known = (result[net - first] if net >= first else of for net, of in zip(row, before, strict=True))
        result.append(1 + max(known, default=-1))
    return result
