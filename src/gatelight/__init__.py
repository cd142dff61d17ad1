"""Trains light differentiable logic gate networks and turns them into circuits.

``gatelight.Circuit`` and ``gatelight.discretize`` are loaded when they are first used: importing gatelight needs
numpy alone, and only ``discretize`` needs torch.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gatelight.circuit import Circuit
    from gatelight.discretization import discretize

__version__ = "0.1.0"
__all__ = ["Circuit", "discretize"]


def __getattr__(name: str) -> Any:
    if name == "Circuit":
        from gatelight.circuit import Circuit

        return Circuit
    if name == "discretize":
        from gatelight.discretization import discretize

        return discretize
    raise AttributeError(f"module 'gatelight' has no attribute {name!r}")
