"""Passes that make a circuit smaller without changing a score, each in a small file."""

from gatelight.circuit.passes.mapping import map_to_arity
from gatelight.circuit.passes.simplify import PASSES, Report, Simplified, run_passes, simplify

__all__ = ["PASSES", "Report", "Simplified", "map_to_arity", "run_passes", "simplify"]
