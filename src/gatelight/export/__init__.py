"""Circuits as files that other tools read: one file in this folder for each format.

``gatelight.export.c(circuit)`` and the like return text or bytes; :func:`files` returns what the command writes.
:mod:`gatelight.export.format` says how to add a format. Nothing here imports torch.

>>> from gatelight.circuit.random import random_circuit
>>> FORMATS["verilog"].suffix
'.v'
>>> sorted(files(random_circuit(4, gates=9, outputs=3), "verilog", "net", pipeline=2))
['net.v', 'net_tb.v']
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType

from gatelight.circuit import Circuit

# The listing below finds these as it finds any other format; they are named here for type checkers.
from gatelight.export.aiger import aiger
from gatelight.export.blif import blif
from gatelight.export.c import c
from gatelight.export.format import Format, Option
from gatelight.export.rtl import latency
from gatelight.export.testbench import verilog_testbench
from gatelight.export.verilog import verilog
from gatelight.listing import declared_in
from gatelight.names import check_name

__all__ = [
    "FORMATS",
    "Format",
    "Option",
    "aiger",
    "blif",
    "c",
    "files",
    "latency",
    "verilog",
    "verilog_testbench",
]


def _find_formats() -> Mapping[str, Format]:
    return MappingProxyType(declared_in(sys.modules[__name__], Format))


#: All formats by name.
FORMATS = _find_formats()

# A format's file may have the format's name; here the name is the function.
globals().update({item.name: item.function for item in FORMATS.values()})


def files(circuit: Circuit, to: str, name: str = "net", **options: bool | int) -> dict[str, bytes]:
    """The contents of the files of a format, by file name.

    Args:
        circuit: The circuit.
        to: The format, one of ``FORMATS``.
        name: Name of the functions or the module, and of the files.
        options: What the format offers; see its ``options``.
    """
    chosen = FORMATS[check_name("export format", to, FORMATS)]
    for option in options:
        check_name(f"option of {chosen.title}", option, [known.name for known in chosen.options])
    return dict(chosen.files(circuit, name, **options))
