"""A circuit as hardware, independent of a language: wires, what computes each of them, and the registers between them.

:func:`build` walks over the gates, the sums and the comparison of the classes once. A language writes the resulting
:class:`Design` line by line and decides only the words.

>>> from gatelight.circuit.random import layered_circuit
>>> circuit = layered_circuit(8, (12, 12), classes=3)
>>> latency(circuit), latency(circuit, pipeline=2)
(0, 3)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from gatelight.circuit import Circuit
from gatelight.circuit.features import byte_levels
from gatelight.export.logic import live_gates


class Signal(NamedTuple):
    """A wire, a port or a constant.

    Attributes:
        name: Name of the wire or port; empty for a constant.
        width: Its bits.
        level: Gates, adders and comparators on the longest path to it; None for a constant.
        signed: Whether it is a number in two's complement.
        value: Value of a constant.
    """

    name: str
    width: int = 1
    level: int | None = None
    signed: bool = False
    value: int = 0


class Slice(NamedTuple):
    """As many bits of a port as the wire has, from bit ``low``."""

    low: int


class Above(NamedTuple):
    """Whether a byte is greater than a constant."""

    level: int


class Logic(NamedTuple):
    """An expression of ``~ & ^ |`` with operands as {0}, {1}, ..."""

    text: str


class Number(NamedTuple):
    """A constant."""

    value: int


class Sum(NamedTuple):
    """The sum of unsigned operands, each extended to the wire's width."""


class Biased(NamedTuple):
    """An unsigned operand extended to the wire's width, plus a constant."""

    bias: int


class Greater(NamedTuple):
    """Whether the second operand is greater than the first."""


class Choose(NamedTuple):
    """The third operand if the first one is set, else the second."""


Operation: TypeAlias = Slice | Above | Logic | Number | Sum | Biased | Greater | Choose


class Wire(NamedTuple):
    """A signal, what computes it, and the signals that this reads, delayed as far as needed."""

    signal: Signal
    operation: Operation
    operands: Sequence[Signal]


class Widths(NamedTuple):
    """Bits of the ports.

    Attributes:
        inputs: Of ``bits`` or ``features``; 0 if there is no such port.
        score: Of each score, in two's complement.
        label: Of ``label``.
    """

    inputs: int
    score: int
    label: int


@dataclass(frozen=True, eq=False)
class Design:
    """A circuit as hardware.

    Attributes:
        widths: Bits of the ports.
        pipeline: After how many levels there are registers; 0 for none.
        latency: Clock edges from an input to its scores and label.
        wires: In an order in which each reads only ports and earlier wires.
        delays: How many registers follow each signal that has some; :func:`stages` names the signals after them.
        scores: One for each class, all of the last stage.
        label: The class with the highest score.
    """

    widths: Widths
    pipeline: int
    latency: int
    wires: tuple[Wire, ...]
    delays: dict[Signal, int]
    scores: tuple[Signal, ...]
    label: Signal


def stages(signal: Signal, delay: int) -> list[str]:
    """The names of a signal before and after each of its registers.

    >>> stages(Signal("n7"), 2)
    ['n7', 'n7_d1', 'n7_d2']
    """
    return [signal.name, *(f"{signal.name}_d{k}" for k in range(1, delay + 1))]


def widths(circuit: Circuit, encoder: bool = False) -> Widths:
    """The widths of the exported module's ports."""
    least = circuit.bias.astype(np.int64)
    most = least + np.diff(circuit.group_start)
    score = 1 + max(
        (max(-low - 1, high, 0)).bit_length() for low, high in zip(least.tolist(), most.tolist(), strict=True)
    )
    return Widths(
        8 * circuit.features if encoder else circuit.inputs, score, max(1, (circuit.classes - 1).bit_length())
    )


def latency(circuit: Circuit, pipeline: int = 0, encoder: bool = False) -> int:
    """Clock edges from an input to its scores and label: 0 if not pipelined.

    It is ``max(1, ceil(levels / pipeline))``, where levels counts gates, adders, comparators and, if included, the
    encoder on the longest path.
    """
    return build(circuit, pipeline, encoder).latency


def build(circuit: Circuit, pipeline: int = 0, encoder: bool = False) -> Design:
    """The hardware of a circuit.

    Args:
        circuit: The circuit.
        pipeline: 0, or after how many levels to put registers; the outputs are registered too.
        encoder: Include the encoder: the input is then ``features``, bytes, and not ``bits``.
    """
    if isinstance(pipeline, bool) or not isinstance(pipeline, int | np.integer) or pipeline < 0:
        raise ValueError(f"pipeline must be a whole number of levels, or 0 for none, got {pipeline!r}")
    width = widths(circuit, encoder)
    builder = _Builder(int(pipeline))
    scores = _scores(builder, circuit, _gates(builder, circuit, encoder), width.score)
    return builder.finish(width, scores, _argmax(builder, scores, width.label))


class _Builder:
    """Collects wires and the registers between them."""

    def __init__(self, pipeline: int) -> None:
        self.pipeline = pipeline
        self.wires: list[Wire] = []
        self.delays: dict[Signal, int] = {}

    def stage(self, level: int) -> int:
        """How many registers come before this level."""
        return (level - 1) // self.pipeline if self.pipeline and level else 0

    def at(self, signal: Signal, stage: int) -> Signal:
        """The signal at a later stage, delayed by as many registers as needed."""
        name, width, level, signed, _ = signal
        delay = 0 if level is None else stage - self.stage(level)
        if not delay:
            return signal
        if delay > self.delays.get(signal, 0):
            self.delays[signal] = delay
        return Signal(f"{name}_d{delay}", width, level, signed)

    def wire(
        self,
        name: str,
        operation: Operation,
        operands: Sequence[Signal],
        *,
        width: int = 1,
        signed: bool = False,
        levels: int = 1,
    ) -> Signal:
        """Add a wire, a number of levels above its operands."""
        known = [operand.level for operand in operands if operand.level is not None]
        level = levels + max(known) if known else None
        signal = Signal(name, width, level, signed)
        if self.pipeline:
            stage = self.stage(level or 0)
            operands = [self.at(operand, stage) for operand in operands]
        self.wires.append(Wire(signal, operation, operands))
        return signal

    def finish(self, width: Widths, scores: Sequence[Signal], label: Signal) -> Design:
        """The design, its outputs brought to one stage."""
        stage = 0
        if self.pipeline:
            top = max((signal.level or 0 for signal in [*scores, label]), default=0)
            stage = self.stage(top) + 1
        # From the highest class down: registers are written in the order in which they are requested.
        last = [self.at(score, stage) for score in reversed(scores)]
        result = self.at(label, stage)
        return Design(width, self.pipeline, stage, tuple(self.wires), self.delays, tuple(reversed(last)), result)


def _gates(builder: _Builder, circuit: Circuit, encoder: bool) -> dict[int, Signal]:
    """The signals of all nets that are needed."""
    gates = live_gates(circuit)
    read = {*circuit.outputs.tolist(), *(net for gate in gates for net in gate.operands)}
    nets = _inputs(builder, circuit, sorted(net for net in read if net < circuit.inputs), encoder)
    for gate in gates:
        if gate.operands:
            operands = [nets[net] for net in gate.operands]
            nets[gate.net] = builder.wire(f"n{gate.net}", Logic(gate.text), operands)
        else:
            nets[gate.net] = Signal("", value=gate.table & 1)
    return nets


def _inputs(builder: _Builder, circuit: Circuit, needed: list[int], encoder: bool) -> dict[int, Signal]:
    """The signals of the input bits, from the port or from comparators."""
    if not encoder:
        port = Signal("bits", circuit.inputs, 0)
        return {net: builder.wire(f"n{net}", Slice(net), [port], levels=0) for net in needed}
    levels = byte_levels(circuit.encoder_threshold, circuit.feature_kind).tolist()
    port = Signal("features", 8 * circuit.features, 0)
    # A comparison that always gives the same result is a constant, and tools warn about it.
    fixed = {-1: Signal("", value=1), 255: Signal("", value=0)}
    feature: dict[int, Signal] = {}
    nets = {}
    for net in needed:
        if levels[net] in fixed:
            nets[net] = fixed[levels[net]]
            continue
        index = int(circuit.encoder_feature[net])
        if index not in feature:
            feature[index] = builder.wire(f"f{index}", Slice(8 * index), [port], width=8, levels=0)
        nets[net] = builder.wire(f"n{net}", Above(levels[net]), [feature[index]])
    return nets


def _scores(builder: _Builder, circuit: Circuit, nets: dict[int, Signal], width: int) -> list[Signal]:
    """A tree of adders and a bias for each class."""
    scores = []
    for group in range(circuit.classes):
        start, stop = int(circuit.group_start[group]), int(circuit.group_start[group + 1])
        bias = int(circuit.bias[group])
        name = f"score{group}"
        if start == stop:
            scores.append(builder.wire(name, Number(bias), [], width=width, signed=True))
            continue
        total = _sum(builder, f"s{group}", [nets[net] for net in circuit.outputs[start:stop].tolist()])
        scores.append(builder.wire(name, Biased(bias), [total], width=width, signed=True, levels=int(bias != 0)))
    return scores


def _sum(builder: _Builder, name: str, ones: list[Signal]) -> Signal:
    """The number of ones: full adders first, three bits each, then a balanced tree."""
    terms, most, step = ones, [1] * len(ones), 3
    depth = 0
    while len(terms) > 1:
        depth += 1
        sums, limits = [], []
        for index, at in enumerate(range(0, len(terms), step)):
            some, limit = terms[at : at + step], sum(most[at : at + step])
            limits.append(limit)
            if len(some) == 1:
                sums.append(some[0])
            else:
                sums.append(builder.wire(f"{name}_{depth}_{index}", Sum(), some, width=limit.bit_length()))
        terms, most, step = sums, limits, 2
    return terms[0]


def _argmax(builder: _Builder, scores: list[Signal], width: int) -> Signal:
    """The label of the highest score, by comparing pairs; of equal scores the earlier class wins."""
    players = [(score, Signal("", width, value=index)) for index, score in enumerate(scores)]
    depth = 0
    while len(players) > 1:
        depth += 1
        winners = []
        for index, at in enumerate(range(0, len(players), 2)):
            pair = players[at : at + 2]
            if len(pair) == 1:
                winners.append(pair[0])
                continue
            (score_a, label_a), (score_b, label_b) = pair
            name = f"{depth}_{index}"
            later = builder.wire(f"later{name}", Greater(), [score_a, score_b])
            label = builder.wire(f"winner{name}", Choose(), [later, label_a, label_b], width=width, levels=0)
            best = score_a
            if len(players) > 2:
                operands = [later, score_a, score_b]
                best = builder.wire(f"best{name}", Choose(), operands, width=score_a.width, signed=True, levels=0)
            winners.append((best, label))
        players = winners
    return players[0][1]
