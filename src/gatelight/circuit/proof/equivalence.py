"""Whether two circuits are equal: on all inputs, on many random ones, or by formal proof.

Provers cannot handle sums, so a proof is about the outputs before the sums, pair by pair. Where simplification
dropped outputs, a :class:`Match` says which output corresponds to which and which became constants. The match itself is
checked: if every pair is equal, so is every score.

>>> from gatelight.circuit.passes import simplify
>>> from gatelight.circuit.random import random_circuit
>>> circuit = random_circuit(8, gates=100, outputs=20)
>>> done = simplify(circuit)
>>> exhaustive(circuit, done.circuit, done.match).equal
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gatelight.circuit.evaluate import Words, group_sums, simulate, unpack_samples, words_per_block
from gatelight.circuit.ir import Circuit
from gatelight.circuit.proof.aig import FALSE, TRUE, Aig, Builder, to_aig
from gatelight.circuit.proof.prover import compare
from gatelight.truthtable import ALL, ONES

MAX_EXHAUSTIVE_INPUTS = 20


@dataclass(frozen=True, eq=False)
class Match:
    """Which output of one circuit corresponds to which output of another.

    Attributes:
        partner: For each output of the first circuit the output of the second that equals it, or -1, int64.
        constant: If there is no partner, the constant that it equals, else -1, int8.
    """

    partner: NDArray[np.int64]
    constant: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Verdict:
    """The result of a comparison; true in an ``if`` only when the circuits were found equal.

    Attributes:
        equal: True, False, or None if a prover gave up. True from random vectors means: no difference found.
        method: ``exhaustive``, ``random`` or ``formal``.
        counterexample: Input bits on which the circuits differ, uint8 [inputs], if known.
    """

    equal: bool | None
    method: str
    counterexample: NDArray[np.uint8] | None = None

    def __bool__(self) -> bool:
        return self.equal is True


def identity(outputs: int) -> Match:
    """Every output corresponds to the one with the same number."""
    return Match(np.arange(outputs), np.full(outputs, -1, np.int8))


def exhaustive(left: Circuit, right: Circuit, match: Match | None = None) -> Verdict:
    """Compare on every input; for up to 20 inputs.

    Args:
        left: One circuit.
        right: The other, with the same inputs.
        match: Which outputs to compare; None compares scores.
    """
    if left.inputs > MAX_EXHAUSTIVE_INPUTS:
        raise ValueError(f"exhaustive comparison takes up to 20 inputs, got {left.inputs}; use random or prove")
    return _simulated(left, right, match, _all_vectors(left.inputs, _block(left, right)), "exhaustive")


def random(
    left: Circuit, right: Circuit, match: Match | None = None, *, vectors: int = 1 << 20, seed: int = 0
) -> Verdict:
    """Compare on random input bits, rounded up to whole words of 64; arguments as in :func:`exhaustive`."""
    if vectors < 1:
        raise ValueError(f"vectors must be at least 1, got {vectors}")
    blocks = _random_vectors(left.inputs, (vectors + 63) // 64, _block(left, right), seed)
    return _simulated(left, right, match, blocks, "random")


def prove(
    left: Circuit,
    right: Circuit,
    match: Match | None = None,
    *,
    prover: str | None = None,
    seconds: int = 600,
) -> Verdict:
    """Prove or refute that matching outputs are equal on every input, whatever the size.

    Args:
        left: One circuit.
        right: The other, with the same inputs.
        match: Which outputs correspond; None pairs those with the same number.
        prover: See :func:`gatelight.circuit.proof.prover.compare`.
        seconds: After how long to give up, with a verdict of None.
    """
    match = check_match(left, right, identity(len(left.outputs)) if match is None else match)
    answer = compare(to_aig(left), _matched_graph(right, match), prover=prover, seconds=seconds)
    if answer.equal is not False:
        return Verdict(answer.equal, "formal")
    pattern = answer.counterexample
    if pattern is None:
        # Not every prover reports a pattern; a few random vectors usually find one.
        return Verdict(False, "formal", random(left, right, match, vectors=4096).counterexample)
    if not _difference(left, right, match, pattern.astype(np.uint64)[:, None]).any():
        raise RuntimeError("the circuits agree on the prover's counterexample")
    return Verdict(False, "formal", pattern)


def check_match(left: Circuit, right: Circuit, match: Match) -> Match:
    """Return the match if equal pairs make equal scores; otherwise raise a ValueError that says why not."""
    _check_inputs(left, right)
    partner, constant = np.asarray(match.partner), np.asarray(match.constant)
    if not len(partner) == len(constant) == len(left.outputs):
        raise ValueError(
            f"a match has one entry for each of {len(left.outputs)} outputs, got {len(partner)} and {len(constant)}"
        )
    paired = partner >= 0
    if not np.array_equal(np.sort(partner[paired]), np.arange(len(right.outputs))):
        raise ValueError(f"a match must name each of the {len(right.outputs)} outputs on the right once")
    if not np.isin(constant[~paired], (0, 1)).all() or (constant[paired] != -1).any():
        raise ValueError("a match must give each output either a partner or a constant 0 or 1")
    group_left, group_right = _groups(left), _groups(right)
    if left.classes != right.classes or (group_left[paired] != group_right[partner[paired]]).any():
        raise ValueError("a match must keep each output in its class")
    folded = np.bincount(group_left[constant == 1], minlength=left.classes)
    if not np.array_equal(left.bias + folded, right.bias):
        raise ValueError("the bias on the right must be that on the left plus the outputs that are constant one")
    return match


def _groups(circuit: Circuit) -> NDArray[np.int64]:
    return np.repeat(np.arange(circuit.classes), np.diff(circuit.group_start))


def _check_inputs(left: Circuit, right: Circuit) -> None:
    same = np.array_equal(left.encoder_feature, right.encoder_feature)
    if not same or not np.array_equal(left.encoder_threshold, right.encoder_threshold):
        raise ValueError(
            f"circuits to compare must have the same encoder, got {left.inputs} and {right.inputs} bits"
            if left.inputs != right.inputs
            else "circuits to compare must have the same encoder, got different features or thresholds"
        )
    if left.feature_kind != right.feature_kind:
        raise ValueError(
            f"circuits to compare must have the same feature_kind, got {left.feature_kind} and {right.feature_kind}"
        )


def _matched_graph(right: Circuit, match: Match) -> Aig:
    """The right circuit with outputs in the order of the left one's and constants where they were folded."""
    builder = Builder(right.inputs)
    literals = builder.add(right)[right.outputs]
    outputs = np.where(match.constant == 1, TRUE, FALSE)
    paired = match.partner >= 0
    outputs[paired] = literals[match.partner[paired]]
    return builder.finish(outputs)


def _simulated(left: Circuit, right: Circuit, match: Match | None, blocks: Iterator[Words], method: str) -> Verdict:
    _check_inputs(left, right)
    if match is not None:
        check_match(left, right, match)
    elif left.classes != right.classes:
        raise ValueError(f"circuits to compare must have the same classes, got {left.classes}, {right.classes}")
    for words in blocks:
        different = _difference(left, right, match, words)
        if different.any():
            at = int(different.argmax())
            bits = (words[:, at // 64] >> np.uint64(at % 64)) & np.uint64(1)
            return Verdict(False, method, bits.astype(np.uint8))
    return Verdict(True, method)


def _difference(left: Circuit, right: Circuit, match: Match | None, words: Words) -> NDArray[np.bool_]:
    """On which samples the circuits differ, bool [64 * words]."""
    samples = 64 * words.shape[1]
    ones_left = simulate(left, words)[left.outputs]
    ones_right = simulate(right, words)[right.outputs]
    if match is None:
        scores = [
            group_sums(circuit, unpack_samples(ones, samples))
            for circuit, ones in ((left, ones_left), (right, ones_right))
        ]
        return np.asarray((scores[0] != scores[1]).any(1))
    wanted = np.where(match.constant[:, None] == 1, ALL, np.uint64(0))
    wanted = np.repeat(wanted, words.shape[1], 1)
    paired = match.partner >= 0
    wanted[paired] = ones_right[match.partner[paired]]
    differing = unpack_samples(np.bitwise_or.reduce(ones_left ^ wanted, 0)[None], samples)
    return np.asarray(differing[:, 0] == 1)


def _block(left: Circuit, right: Circuit) -> int:
    return min(words_per_block(left), words_per_block(right))


def _random_vectors(inputs: int, words: int, block: int, seed: int) -> Iterator[Words]:
    rng = np.random.default_rng(seed)
    for start in range(0, words, block):
        yield rng.integers(0, 2**64, (inputs, min(block, words - start)), dtype=np.uint64)


def _all_vectors(inputs: int, block: int) -> Iterator[Words]:
    """Every input: inside a word the first six inputs take all values, across words the others do."""
    words = 1 << max(0, inputs - 6)
    for start in range(0, words, block):
        number = np.arange(start, min(words, start + block), dtype=np.uint64)
        rows = [
            np.full(len(number), ONES[i]) if i < 6 else np.uint64(0) - ((number >> np.uint64(i - 6)) & np.uint64(1))
            for i in range(inputs)
        ]
        yield np.array(rows, np.uint64).reshape(inputs, len(number))
