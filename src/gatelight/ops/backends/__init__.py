"""What computes gates: a folder for each backend, all with the functions of :class:`~.base.Backend`."""

from __future__ import annotations

from gatelight.ops.backends import cpu, reference
from gatelight.ops.backends.base import Backend


def load(name: str) -> Backend:
    """The backend of a name: ``reference``, ``cpu`` or ``triton``, which is imported with its first tensor."""
    if name == "cpu":
        return cpu
    if name == "reference":
        return reference
    from gatelight.ops.backends.triton import chains

    return chains
