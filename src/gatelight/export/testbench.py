"""Self-checking testbenches for the exported Verilog."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatelight.circuit import Circuit
from gatelight.circuit.evaluate import check_bits, group_sums
from gatelight.export.names import check_identifier
from gatelight.export.rtl import latency, widths

_TEXT = """\
// Checks the module {name} on {count} vectors; needs SystemVerilog for $fatal (iverilog -g2012).
// Prints PASS and ends by itself, or prints FAIL and ends with an error.
`default_nettype none
module {name}_tb;
    localparam COUNT = {count};
    localparam LATENCY = {latency};
{declarations}
    wire [{scores_width}-1:0] scores;
    wire [{label_width}-1:0] label;
    reg [{scores_width}-1:0] scores_of [0:COUNT-1];
    reg [{label_width}-1:0] label_of [0:COUNT-1];
    integer i, errors;
    {name} dut ({ports}.scores(scores), .label(label));
    initial begin
{vectors}
        errors = 0;
        for (i = 0; i < COUNT + LATENCY; i = i + 1) begin
{drive}
            #1;
            if (i >= LATENCY)
                if (scores !== scores_of[i - LATENCY] || label !== label_of[i - LATENCY]) begin
                    errors = errors + 1;
                    if (errors <= 10)
                        $display("vector %0d: scores %h label %0d, expected %h %0d", i - LATENCY,
                            scores, label, scores_of[i - LATENCY], label_of[i - LATENCY]);
                end
{clock}
        end
        if (errors == 0)
            $display("PASS {name}: %0d vectors", COUNT);
        else
            $fatal(1, "FAIL {name}: %0d of %0d vectors", errors, COUNT);
    end
endmodule
`default_nettype wire
"""


def verilog_testbench(
    circuit: Circuit, vectors: ArrayLike, name: str = "net", pipeline: int = 0, encoder: bool = False
) -> str:
    """A module ``name_tb`` that runs the exported module on vectors and compares with the circuit's own answers.

    Args:
        circuit: The circuit.
        vectors: Input bits [count, inputs], or with ``encoder`` features uint8 [count, features]; at least one.
        name: Name of the module to check.
        pipeline: As it was exported.
        encoder: As it was exported.
    """
    check_identifier(name)
    given, scores = _expected(circuit, vectors, encoder)
    if len(given) == 0:
        raise ValueError("vectors must hold at least one vector, got none")
    width, delay = widths(circuit, encoder), latency(circuit, pipeline, encoder)
    port = "features" if encoder else "bits"
    declarations, ports, drive, clock = [], "", "", ""
    lines = []
    if width.inputs:
        declarations += [
            f"    reg [{width.inputs - 1}:0] {port};",
            f"    reg [{width.inputs - 1}:0] {port}_of [0:COUNT-1];",
        ]
        ports = f".{port}({port}), "
        drive = f"            if (i < COUNT) {port} = {port}_of[i];"
        lines += [
            f"        {port}_of[{k}] = {width.inputs}'h{_pack(row, 8 if encoder else 1):x};"
            for k, row in enumerate(given)
        ]
    if pipeline:
        declarations.append("    reg clk = 1'b0;")
        ports = ".clk(clk), " + ports
        clock = "            clk = 1'b1;\n            #1;\n            clk = 1'b0;"
    scores_width = width.score * circuit.classes
    for k, row in enumerate(scores):
        lines.append(f"        scores_of[{k}] = {scores_width}'h{_pack(row, width.score):x};")
        lines.append(f"        label_of[{k}] = {width.label}'d{int(row.argmax())};")
    return _TEXT.format(
        name=name,
        count=len(given),
        latency=delay,
        declarations="\n".join(declarations),
        scores_width=scores_width,
        label_width=width.label,
        ports=ports,
        vectors="\n".join(lines),
        drive=drive,
        clock=clock,
    )


def _expected(circuit: Circuit, vectors: ArrayLike, encoder: bool) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """The vectors, checked, and their scores."""
    if not encoder:
        bits = check_bits(circuit, vectors)
        return bits, group_sums(circuit, circuit.outputs_of(bits))
    features = np.asarray(vectors)
    if features.dtype != np.uint8:
        raise ValueError(f"vectors must be uint8 features if the encoder is included, got {features.dtype}")
    scores = circuit.scores(features)
    return features.reshape(len(features), circuit.features), scores


def _pack(row: NDArray[np.uint8] | NDArray[np.int32], width: int) -> int:
    """Numbers side by side in one, the first in the lowest bits."""
    number = 0
    for value in reversed(row.tolist()):
        number = number << width | value % (1 << width)
    return number
