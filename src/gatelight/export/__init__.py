"""Circuits as files that other tools read, each a function of a circuit that returns text or bytes.

Nothing here imports torch.
"""

from gatelight.export.aiger import aiger
from gatelight.export.blif import blif
from gatelight.export.c import c
from gatelight.export.testbench import verilog_testbench
from gatelight.export.verilog import latency, verilog

__all__ = ["aiger", "blif", "c", "latency", "verilog", "verilog_testbench"]
