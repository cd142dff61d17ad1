"""Circuits as synthesizable Verilog-2001: one module, combinational or pipelined.

Every net is a scalar wire, because a simulator that works event by event updates a wide vector as a whole whenever
one bit of it changes.

>>> from gatelight.circuit.random import layered_circuit
>>> verilog(layered_circuit(8, (12, 12), classes=3)).count("module")
2
"""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from gatelight.circuit import Circuit
from gatelight.export import rtl
from gatelight.export.format import Format, Option
from gatelight.export.names import check_identifier, class_lines
from gatelight.export.testbench import verilog_testbench

#: Names inside the module; a module with such a name would hide them.
_INNER = re.compile(r"clk|bits|features|scores|label|(n|f|s|score|later|winner|best)[0-9][0-9_d]*|r_\w*")

#: What a byte of ``features`` is, by the circuit's kind.
_FEATURES = {
    "bits": "0 or 1, any other byte counts as 1",
    "bytes": "a byte u that stands for u / 255",
    "reals": "a byte u that stands for the number u",
}

# Registers are instances of a separate module, some bits in each: Icarus looks up each name of an always block
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


def verilog(circuit: Circuit, name: str = "net", pipeline: int = 0, encoder: bool = False) -> str:
    """A module with the outputs ``scores`` and ``label``.

    Its input is ``bits``, input bit i at bit i, or with ``encoder`` ``features``, where feature i is the byte at
    ``features[8 * i +: 8]`` (u means u / 255 if the circuit's features are bytes, and u if they are reals;
    if they are bits, any byte other than 0 counts as 1). Score c is ``scores[width * c +: width]`` in two's
    complement; ``label`` is the first class with the highest score. Gates that no output needs are left out.

    Args:
        circuit: The circuit.
        name: Name of the module.
        pipeline: 0, or after how many levels to put registers, clocked by ``clk``; the outputs are registered too.
            The registers are instances of a second module, ``name_register``. There is no reset:
            outputs are valid :func:`~gatelight.export.latency` edges after their inputs, one sample at each edge.
        encoder: Include the encoder.
    """
    if _INNER.fullmatch(check_identifier(name)):
        raise ValueError(f"name must not be one that the module uses inside, got {name!r}")
    return _module(rtl.build(circuit, pipeline, encoder), circuit, name, encoder)


def _module(design: rtl.Design, circuit: Circuit, name: str, encoder: bool) -> str:
    scores = ", ".join(_name(score) for score in reversed(design.scores))
    registers = _registers(design, name)
    ports = _ports(design, circuit.classes, encoder)
    when = f"{design.latency} clock edges later" if design.pipeline else "combinational"
    return "\n".join(
        [
            "// A logic gate network made by gatelight.",
            f"// {circuit.classes} scores of {design.widths.score} bits, class 0 lowest, in two's complement; {when}.",
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
            *(
                f"    wire{_kind(signal)} {', '.join(rtl.stages(signal, delay)[1:])};"
                for signal, delay in design.delays.items()
            ),
            *(f"    wire{_kind(wire.signal)} {wire.signal.name} = {_expression(wire)};" for wire in design.wires),
            f"    assign scores = {{{scores}}};",
            f"    assign label = {_name(design.label, 'd')};",
            *registers,
            "endmodule",
            *([_REGISTER.format(name=name)] if registers else []),
            "`default_nettype wire",
            "",
        ]
    )


def _ports(design: rtl.Design, classes: int, encoder: bool) -> list[str]:
    width = design.widths
    ports = ["input wire clk"] if design.pipeline else []
    if width.inputs:
        ports.append(f"input wire [{width.inputs - 1}:0] {'features' if encoder else 'bits'}")
    ports.append(f"output wire [{width.score * classes - 1}:0] scores")
    ports.append(f"output wire{_kind(rtl.Signal('label', width.label))} label")
    return ports


def _registers(design: rtl.Design, name: str) -> list[str]:
    """Instances of the register module, some registers in each."""
    steps = []
    for signal, delay in design.delays.items():
        steps += [(old, new, signal.width) for old, new in pairwise(rtl.stages(signal, delay))]
    registers = []
    for start in range(0, len(steps), _REGISTERS_PER_INSTANCE):
        old, new, bits = zip(*steps[start : start + _REGISTERS_PER_INSTANCE], strict=True)
        made = f"{name}_register #({sum(bits)}) r_{start // _REGISTERS_PER_INSTANCE}"
        registers.append(f"    {made} (.clk(clk), .d({{{', '.join(old)}}}), .q({{{', '.join(new)}}}));")
    return registers


def _expression(wire: rtl.Wire) -> str:
    """What computes a wire."""
    signal, operation, operands = wire
    names = [operand.name or _name(operand) for operand in operands]
    match operation:
        case rtl.Logic(text):
            return text.format(*names)
        case rtl.Slice(low):
            return f"{names[0]}[{low}]" if signal.width == 1 else f"{names[0]}[{low + signal.width - 1}:{low}]"
        case rtl.Above(level):
            return f"{names[0]} > 8'd{level}"
        case rtl.Number(value):
            return _signed(value, signal.width)
        case rtl.Sum():
            return " + ".join(_padded(operand, signal.width) for operand in operands)
        case rtl.Biased(bias):
            padded = _padded(operands[0], signal.width)
            return f"$signed({padded}) + {_signed(bias, signal.width)}" if bias else padded
        case rtl.Greater():
            return f"{names[1]} > {names[0]}"
        case rtl.Choose():
            return f"{names[0]} ? {_name(operands[2], 'd')} : {_name(operands[1], 'd')}"


def _name(signal: rtl.Signal, base: str = "b") -> str:
    """How a signal is written; ``base`` is that of a constant."""
    return signal.name or f"{signal.width}'{base}{signal.value}"


def _padded(signal: rtl.Signal, width: int) -> str:
    """An unsigned signal with zeros in front up to a width."""
    more = width - signal.width
    return f"{{{more}'d0, {_name(signal)}}}" if more else _name(signal)


def _signed(value: int, width: int) -> str:
    """A constant in two's complement."""
    return f"{width}'sh{value % (1 << width):x}"


def _kind(signal: rtl.Signal) -> str:
    """The part of a declaration between ``wire`` and the name."""
    if signal.width == 1 and not signal.signed:
        return ""
    return (" signed" if signal.signed else "") + (f" [{signal.width - 1}:0]" if signal.width > 1 else "")


def _files(circuit: Circuit, name: str, pipeline: int = 0) -> dict[str, bytes]:
    """The module, and a testbench with a hundred random vectors."""
    bits = np.random.default_rng(0).integers(0, 2, (100, circuit.inputs), np.uint8)
    return {
        f"{name}.v": verilog(circuit, name, pipeline=pipeline).encode(),
        f"{name}_tb.v": verilog_testbench(circuit, bits, name, pipeline=pipeline).encode(),
    }


FORMAT = Format(
    "verilog",
    "Verilog",
    "a module that can be synthesized, and a testbench that checks itself",
    ".v",
    verilog,
    _files,
    (Option("pipeline", 0, "a register every N levels"),),
)
