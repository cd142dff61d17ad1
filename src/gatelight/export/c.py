"""Circuits as standalone C99: a header and a source file without dependencies, allocation or state.

Each gate is an expression on words that hold one bit of 64 samples (or 32, or 8, chosen when compiling).

>>> from gatelight.circuit.random import random_circuit
>>> files = c(random_circuit(4, gates=9, outputs=3), "net")
>>> sorted(files)
['net.c', 'net.h']
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from string import Template

import numpy as np

from gatelight.circuit import Circuit
from gatelight.circuit.features import byte_levels
from gatelight.export import c_text
from gatelight.export.format import Format
from gatelight.export.input_order import RUN_LENGTH, Plan, plan
from gatelight.export.logic import live_gates
from gatelight.export.names import check_identifier, class_lines
from gatelight.export.scratch import Layout, Step, allocate
from gatelight.export.statements import Statement, statements

#: Statements in one function: few enough for compilers whose time grows faster than the function.
_FUNCTION_STATEMENTS = 200
_LINE = 110


def c(circuit: Circuit, name: str = "net") -> dict[str, str]:
    """The texts of ``name.h`` and ``name.c``.

    The header declares, for features of bytes (``_u8``) and of floats (``_f32``)::

        void net_batch_u8(const uint8_t *features, size_t samples, int32_t *scores, int32_t *labels, net_word *scratch);
        int32_t net_one_u8(const uint8_t *features, int32_t *scores, net_word *scratch);

    What a byte and a float mean depends on the circuit's ``feature_kind``; the header says so. It also says what
    happens to values out of range, which C cannot refuse. The caller provides ``NET_SCRATCH`` words of scratch
    memory, so several threads may run the network at once. Gates that no output needs are left out.

    Args:
        circuit: The circuit.
        name: Prefix of all names, and of the file names.
    """
    check_identifier(name)
    gates = live_gates(circuit)
    outputs = circuit.outputs.tolist()
    body = statements(outputs, gates)
    read = [*outputs, *(net for gate in gates for net in gate.operands)]
    needed = np.array(sorted({net for net in read if net < circuit.inputs}), np.int64)
    order = plan(circuit, needed)
    places = allocate(outputs, order.inputs.tolist(), [Step(item.net, item.leaves()) for item in body])
    values = {
        "net": name,
        "NET": name.upper(),
        "title": f"A logic gate network of {len(gates)} gates made by gatelight",
        "features": str(circuit.features),
        "feature_text": c_text.FEATURES[circuit.feature_kind],
        "class_count": str(circuit.classes),
        "scratch": str(max(1, places.size)),
        "temperature": repr(float(circuit.temperature)),
        "classes": "\n".join(f" * {line}" for line in class_lines(circuit)),
        "outputs": str(len(circuit.outputs)),
        "bias": _numbers(map(str, circuit.bias.tolist())),
        "groups": _numbers(map(str, circuit.group_start.tolist())),
        "planes": str(max(4, int(np.diff(circuit.group_start).max()).bit_length())),
        "includes": "#include <math.h>\n" if np.isinf(circuit.encoder_threshold[order.inputs]).any() else "",
    } | {f"NET_{word}": f"{name.upper()}_{word}" for word in ("SCRATCH", "CLASSES", "FEATURES", "TEMPERATURE")}
    parts = [
        _fill(c_text.SOURCE_HEAD, values),
        _encoder(circuit, order, values),
        _gates(body, places, values),
        _fill(c_text.SUMS if len(circuit.outputs) else c_text.NO_SUMS, values),
        _fill(c_text.ARGMAX, values),
        *(_fill(c_text.ENTRY, values | {"type": kind, "ctype": ctype}) for kind, ctype in _TYPES),
    ]
    return {f"{name}.h": _fill(c_text.HEADER, values), f"{name}.c": "".join(parts)}


_TYPES = (("u8", "uint8_t"), ("f32", "float"))


def _fill(text: str, values: dict[str, str]) -> str:
    return Template(text).substitute(values)


def _encoder(circuit: Circuit, order: Plan, values: dict[str, str]) -> str:
    """The tables of the encoder and its functions for both types of feature."""
    if not len(order.inputs):
        return "".join(_fill(c_text.NO_ENCODER, values | {"type": kind, "ctype": ctype}) for kind, ctype in _TYPES)
    net = values["net"]
    runs = _numbers(f"{{{run.feature}, {run.start}, {run.length}}}" for run in order.runs)
    parts = [
        "\n/* First feature, first bit and length of each run. */\n",
        f"static const uint32_t {net}_run[][3] = {{{runs}}};\n",
    ]
    value = "x[i]"
    if order.gather:
        value = f"x[{net}_feature[start + i]]"
        features = _numbers(map(str, circuit.encoder_feature[order.inputs].tolist()))
        kind = "uint16_t" if circuit.features <= 1 << 16 else "uint32_t"
        parts.append(f"static const {kind} {net}_feature[] = {{{features}}};\n")
    threshold = circuit.encoder_threshold[order.inputs]
    levels = byte_levels(threshold, circuit.feature_kind)
    # Bytes are compared fastest with bytes; -1, which every byte exceeds, is not one.
    byte = "uint8_t" if levels.min() >= 0 else "int16_t"
    tables = (
        (byte, [str(level) for level in levels.tolist()]),
        ("float", [_float32(number) for number in threshold.tolist()]),
    )
    for (kind, ctype), (level_type, numbers) in zip(_TYPES, tables, strict=True):
        level = f"({level_type}){numbers[0]}"
        # A comparison with a byte's least or greatest value would be warned about if the compiler saw it.
        if len(set(numbers)) > 1 or numbers[0] in ("-1", "255"):
            level = f"{net}_level_{kind}[start + i]"
            parts.append(f"static const {level_type} {net}_level_{kind}[] = {{{_numbers(numbers)}}};\n")
        own = {"type": kind, "ctype": ctype, "value": value, "level": level}
        sizes = {"runs": str(len(order.runs)), "run_length": str(RUN_LENGTH)}
        parts.append(_fill(c_text.ENCODER, values | own | sizes))
    return "".join(parts)


def _gates(body: Sequence[Statement], places: Layout, values: dict[str, str]) -> str:
    """Functions that compute all outputs from the input bits, some statements each, and one that calls them."""
    net, apart = values["net"], f"{values['NET']}_APART"
    name: dict[int, str] = {key: f"w[{place}]" for key, place in places.place.items()}
    constant = {"0": "0", "1": f"({net}_word)-1"}
    lines = []
    for statement in body:
        text = statement.write(name) if statement.operands else constant[statement.text]
        # Operators on words of 8 bits give ints; only a word by itself needs no cast.
        cast = f"({net}_word)" if statement.operands and text[0] in "(~" else ""
        lines.append(f"    {name[statement.net]} = {cast}{text};\n")
    lines += [f"    w[{to}] = w[{source}];\n" for to, source in places.copies]
    if not lines:
        return f"\nstatic void {net}_gates({net}_word *w)\n{{\n    (void)w;\n}}\n"
    parts, calls = [], []
    for index, at in enumerate(range(0, len(lines), _FUNCTION_STATEMENTS)):
        parts.append(f"\nstatic {apart} void {net}_gates_{index}({net}_word *w)\n{{\n")
        parts += lines[at : at + _FUNCTION_STATEMENTS]
        parts.append("}\n")
        calls.append(f"    {net}_gates_{index}(w);\n")
    return "".join([*parts, f"\nstatic void {net}_gates({net}_word *w)\n{{\n", *calls, "}\n"])


def _numbers(texts: Iterable[str]) -> str:
    """Numbers with commas, in lines of moderate length."""
    lines, line = [], ""
    for text in texts:
        if line and len(line) + len(text) > _LINE:
            lines.append(line)
            line = ""
        line += f"{text}, "
    lines.append(line)
    return "\n    ".join(item.rstrip() for item in lines).rstrip(",")


def _float32(number: float) -> str:
    """A float constant that is exactly this number."""
    if math.isinf(number):
        return "-INFINITY" if number < 0 else "INFINITY"
    return f"{number.hex()}f"


def _files(circuit: Circuit, name: str) -> dict[str, bytes]:
    return {file: text.encode() for file, text in c(circuit, name).items()}


FORMAT = Format("c", "C", "C99 without dependencies, a header and a source file", ".c", c, _files)
