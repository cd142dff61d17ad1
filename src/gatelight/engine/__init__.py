"""The bit-packed engine: runs a circuit at tens of millions of samples a second, with no compiler at run time."""

from gatelight.engine.engine import Engine, Stats, available

__all__ = ["Engine", "Stats", "available"]
