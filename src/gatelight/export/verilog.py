"""Circuits as synthesizable Verilog-2001: one module, combinational or pipelined.

Every net is a scalar wire, because a simulator that works event by event updates a wide vector as a whole whenever
one bit of it changes.

>>> from gatelight.circuit.random import layered_circuit
>>> circuit = layered_circuit(8, (12, 12), classes=3)
>>> latency(circuit), latency(circuit, pipeline=2)
(0, 3)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gatelight.circuit import Circuit
from gatelight.export.logic import live_gates
from gatelight.export.names import check_identifier, class_lines
from gatelight.export.thresholds import byte_levels

#: Names inside the module; a module of such a name would hide them.
_INNER = re.compile(r"clk|bits|features|scores|label|(n|f|s|score|later|winner|best)[0-9][0-9_d]*|r_\w*")

#: What a byte of ``features`` is, by the circuit's kind.
_FEATURES = {
    "bits": "0 or 1, any other byte counts as 1",
    "bytes": "a byte u that stands for u / 255",
    "reals": "a byte u that stands for the number u",
}

# Registers are instances of a module of their own, some bits in each: Icarus looks up each name of an always block
# among all names of its module, and its time also grows with the square of what one clock drives.
_REGISTERS_PER_INSTANCE = 32
_REGISTER = """\
// The only other module of this file.
/* verilator lint_off DECLFILENAME */
module {name}_register #(parameter WIDTH = 1) (
    input wire clk,
    input wire [WIDTH-1:0] d,
    output reg [WIDTH-1:0] q
);
    always @(posedge clk) q <= d;
endmodule
/* verilator lint_on DECLFILENAME */
"""


class Signal(NamedTuple):
    """A wire or a literal.

    Attributes:
        name: How it is written where it is made.
        width: Its bits.
        level: Gates, adders and comparators on the longest path to it; None for what never changes.
        signed: Whether it is a number in two's complement.
    """

    name: str
    width: int = 1
    level: int | None = None
    signed: bool = False


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
    return _build(circuit, pipeline, encoder).latency


def verilog(circuit: Circuit, name: str = "net", pipeline: int = 0, encoder: bool = False) -> str:
    """A module with the outputs ``scores`` and ``label``.

    Its input is ``bits``, input bit i at bit i, or with ``encoder`` ``features``, where feature i is the byte at
    ``features[8 * i +: 8]`` (u stands for u / 255 where the circuit's features are bytes, for u where they are reals;
    where they are bits, any byte other than 0 counts as 1). Score c is ``scores[width * c +: width]`` in two's
    complement; ``label`` is the first class with the highest score. Gates that no output needs are left out.

    Args:
        circuit: The circuit.
        name: Name of the module.
        pipeline: 0, or after how many levels to put registers, clocked by ``clk``; the outputs are registered too.
            The registers are instances of a second module, ``name_register``. There is no reset:
            outputs are valid :func:`latency` edges after their inputs, one sample at each edge.
        encoder: Include the encoder.
    """
    if _INNER.fullmatch(check_identifier(name)):
        raise ValueError(f"name must not be one that the module uses inside, got {name!r}")
    return _build(circuit, pipeline, encoder).text(circuit, name, widths(circuit, encoder), encoder)


class _Module:
    """Collects wires and the registers between them."""

    def __init__(self, pipeline: int) -> None:
        self.pipeline = pipeline
        self.wires: list[str] = []
        self.delays: dict[Signal, int] = {}
        self.latency = 0
        self.scores: list[Signal] = []
        self.label = Signal("1'd0")

    def stage(self, level: int) -> int:
        """How many registers lie before what has this level."""
        return (level - 1) // self.pipeline if self.pipeline and level else 0

    def at(self, signal: Signal, stage: int) -> str:
        """The signal's name at a later stage, delayed by as many registers as needed."""
        if signal.level is None:
            return signal.name
        delay = stage - self.stage(signal.level)
        if delay == 0:
            return signal.name
        self.delays[signal] = max(delay, self.delays.get(signal, 0))
        return f"{signal.name}_d{delay}"

    def wire(
        self,
        name: str,
        operands: Sequence[Signal],
        text: str,
        *,
        width: int = 1,
        signed: bool = False,
        levels: int = 1,
    ) -> Signal:
        """Add a wire, so many levels above its operands, which stand in ``text`` as {0}, {1}, ...."""
        known = [operand.level for operand in operands if operand.level is not None]
        level = levels + max(known) if known else None
        names = [self.at(operand, self.stage(level or 0)) for operand in operands]
        self.wires.append(f"    wire{_kind(width, signed)} {name} = {text.format(*names)};")
        return Signal(name, width, level, signed)

    def finish(self, scores: list[Signal], label: Signal) -> None:
        """Set the outputs, which are then brought to one stage."""
        self.scores, self.label = scores, label
        if self.pipeline:
            top = max((signal.level or 0 for signal in [*scores, label]), default=0)
            self.latency = self.stage(top) + 1

    def text(self, circuit: Circuit, name: str, width: Widths, encoder: bool) -> str:
        scores = ", ".join(self.at(score, self.latency) for score in reversed(self.scores))
        label = self.at(self.label, self.latency)
        delayed, steps = [], []
        for signal, delay in self.delays.items():
            names = [signal.name, *(f"{signal.name}_d{k}" for k in range(1, delay + 1))]
            delayed.append(f"    wire{_kind(signal.width, signal.signed)} {', '.join(names[1:])};")
            steps += [(old, new, signal.width) for old, new in pairwise(names)]
        registers = []
        for start in range(0, len(steps), _REGISTERS_PER_INSTANCE):
            old, new, bits = zip(*steps[start : start + _REGISTERS_PER_INSTANCE], strict=True)
            made = f"{name}_register #({sum(bits)}) r_{start // _REGISTERS_PER_INSTANCE}"
            registers.append(f"    {made} (.clk(clk), .d({{{', '.join(old)}}}), .q({{{', '.join(new)}}}));")
        ports = ["input wire clk"] if self.pipeline else []
        if width.inputs:
            ports.append(f"input wire [{width.inputs - 1}:0] {'features' if encoder else 'bits'}")
        ports.append(f"output wire [{width.score * circuit.classes - 1}:0] scores")
        ports.append(f"output wire{_kind(width.label)} label")
        when = f"{self.latency} clock edges later" if self.pipeline else "combinational"
        return "\n".join(
            [
                "// A logic gate network made by gatelight.",
                f"// {circuit.classes} scores of {width.score} bits, class 0 lowest, in two's complement; {when}.",
                *([f"// Feature i is features[8 * i +: 8]: {_FEATURES[circuit.feature_kind]}."] if encoder else []),
                *(f"// {line}" for line in class_lines(circuit)),
                "`default_nettype none",
                f"module {name} (",
                "    // A network need not read all of its inputs.",
                "    /* verilator lint_off UNUSEDSIGNAL */",
                *(f"    {port}," for port in ports[:-2]),
                "    /* verilator lint_on UNUSEDSIGNAL */",
                f"    {ports[-2]},",
                f"    {ports[-1]}",
                ");",
                *delayed,
                *self.wires,
                f"    assign scores = {{{scores}}};",
                f"    assign label = {label};",
                *registers,
                "endmodule",
                *([_REGISTER.format(name=name)] if registers else []),
                "`default_nettype wire",
                "",
            ]
        )


def _build(circuit: Circuit, pipeline: int, encoder: bool) -> _Module:
    if isinstance(pipeline, bool) or not isinstance(pipeline, int | np.integer) or pipeline < 0:
        raise ValueError(f"pipeline must be a whole number of levels, or 0 for none, got {pipeline!r}")
    module = _Module(int(pipeline))
    nets = _gates(module, circuit, encoder)
    scores = _scores(module, circuit, nets, widths(circuit).score)
    module.finish(scores, _argmax(module, scores, widths(circuit).label))
    return module


def _gates(module: _Module, circuit: Circuit, encoder: bool) -> dict[int, Signal]:
    """The wires of all nets that are needed."""
    gates = live_gates(circuit)
    read = {*circuit.outputs.tolist(), *(net for gate in gates for net in gate.operands)}
    nets = _inputs(module, circuit, sorted(net for net in read if net < circuit.inputs), encoder)
    for gate in gates:
        if gate.operands:
            operands = [nets[net] for net in gate.operands]
            nets[gate.net] = module.wire(f"n{gate.net}", operands, gate.text)
        else:
            nets[gate.net] = Signal(f"1'b{gate.text}")
    return nets


def _inputs(module: _Module, circuit: Circuit, needed: list[int], encoder: bool) -> dict[int, Signal]:
    """The wires of the input bits, from the port or from comparators."""
    if not encoder:
        return {
            net: module.wire(f"n{net}", [Signal("bits", circuit.inputs, 0)], f"{{0}}[{net}]", levels=0)
            for net in needed
        }
    levels = byte_levels(circuit.encoder_threshold, circuit.feature_kind).tolist()
    port = Signal("features", 8 * circuit.features, 0)
    # A comparison that always comes out the same is not one, and tools warn of it.
    fixed = {-1: Signal("1'b1"), 255: Signal("1'b0")}
    feature: dict[int, Signal] = {}
    nets = {}
    for net in needed:
        if levels[net] in fixed:
            nets[net] = fixed[levels[net]]
            continue
        index = int(circuit.encoder_feature[net])
        if index not in feature:
            pick = f"{{0}}[{8 * index + 7}:{8 * index}]"
            feature[index] = module.wire(f"f{index}", [port], pick, width=8, levels=0)
        nets[net] = module.wire(f"n{net}", [feature[index]], f"{{0}} > 8'd{levels[net]}")
    return nets


def _scores(module: _Module, circuit: Circuit, nets: dict[int, Signal], width: int) -> list[Signal]:
    """A tree of adders and a bias for each class."""
    scores = []
    for group in range(circuit.classes):
        start, stop = int(circuit.group_start[group]), int(circuit.group_start[group + 1])
        bias = int(circuit.bias[group])
        literal = f"{width}'sh{bias % (1 << width):x}"
        name = f"score{group}"
        if start == stop:
            scores.append(module.wire(name, [], literal, width=width, signed=True))
            continue
        total = _sum(module, f"s{group}", [nets[net] for net in circuit.outputs[start:stop].tolist()])
        padded = _padded(0, total, width)
        text = f"$signed({padded}) + {literal}" if bias else padded
        scores.append(module.wire(name, [total], text, width=width, signed=True, levels=int(bias != 0)))
    return scores


def _sum(module: _Module, name: str, ones: list[Signal]) -> Signal:
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
                continue
            width = limit.bit_length()
            text = " + ".join(_padded(place, term, width) for place, term in enumerate(some))
            sums.append(module.wire(f"{name}_{depth}_{index}", some, text, width=width))
        terms, most, step = sums, limits, 2
    return terms[0]


def _padded(place: int, signal: Signal, width: int) -> str:
    """Where operand ``place``, an unsigned signal, stands in a text, with zeros in front up to a width."""
    more = width - signal.width
    return f"{{{{{more}'d0, {{{place}}}}}}}" if more else f"{{{place}}}"


def _argmax(module: _Module, scores: list[Signal], width: int) -> Signal:
    """A tournament in which the earlier class wins a draw."""
    players = [(score, Signal(f"{width}'d{index}", width)) for index, score in enumerate(scores)]
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
            later = module.wire(f"later{name}", [score_a, score_b], "{1} > {0}")
            choose = "{0} ? {2} : {1}"
            label = module.wire(f"winner{name}", [later, label_a, label_b], choose, width=width, levels=0)
            best = score_a
            if len(players) > 2:
                operands = [later, score_a, score_b]
                best = module.wire(f"best{name}", operands, choose, width=score_a.width, signed=True, levels=0)
            winners.append((best, label))
        players = winners
    return players[0][1]


def _kind(width: int, signed: bool = False) -> str:
    """What stands between ``wire`` and its name."""
    return (" signed" if signed else "") + (f" [{width - 1}:0]" if width > 1 else "")
