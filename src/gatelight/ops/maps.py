"""The maps theta -> table that kernels compute themselves, in one table.

A parametrization whose map is here trains on theta directly. Any other computes its tables in torch and passes them to
the kernels as the map ``table``.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gatelight.names import check_name


@dataclass(frozen=True)
class NativeMap:
    """A map that kernels know.

    >>> NATIVE_MAPS["op"].parameters(2), NATIVE_MAPS["iwp-sin"].parameters(2)
    (16, 4)

    Attributes:
        number: Its number in the native library, see csrc/include/gatelight.h.
        per_function: A gate has a parameter for each function of its inputs, not for each entry of its table.
        max_arity: The most inputs of a gate.
    """

    number: int
    per_function: bool = False
    max_arity: int = 6

    def parameters(self, arity: int) -> int:
        """Parameters of a gate of an arity."""
        return 1 << (1 << arity if self.per_function else arity)


#: Theta is the table itself, what one of IWP's estimators maps to it, or OP's logits.
NATIVE_MAPS = {
    "table": NativeMap(0),
    "iwp-sin": NativeMap(1),
    "iwp-sin-st": NativeMap(2),
    "iwp-sigmoid": NativeMap(3),
    "iwp-sigmoid-st": NativeMap(4),
    "iwp-linear-st": NativeMap(5),
    "op": NativeMap(6, per_function=True, max_arity=3),
}


#: Parameters of a gate for each map and arity: one lookup per layer and step.
_PARAMETERS = {
    (name, arity): native_map.parameters(arity)
    for name, native_map in NATIVE_MAPS.items()
    for arity in range(1, native_map.max_arity + 1)
}


def check_theta(theta: Tensor, map: str, arity: int) -> int:
    """The number of gates of parameters [gates, parameters]; a ValueError if they do not fit the map."""
    columns = _PARAMETERS.get((map, arity))
    if columns is None:
        most = NATIVE_MAPS[check_name("map", map, NATIVE_MAPS)].max_arity
        raise ValueError(f"the arity of map {map!r} must be from 1 to {most}, got {arity}")
    shape = theta.shape
    if len(shape) != 2 or shape[1] != columns:
        raise ValueError(f"theta must have shape [gates, {columns}] for map {map!r}, got {tuple(shape)}")
    return shape[0]
