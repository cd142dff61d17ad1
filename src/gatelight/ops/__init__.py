"""The op that evaluates gates, behind one function."""

from gatelight.ops.lut import check_fanin, lut

__all__ = ["check_fanin", "lut"]
