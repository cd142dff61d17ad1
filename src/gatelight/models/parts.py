"""What all layers of a network are made of, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gatelight import parametrize, wiring
from gatelight.config import Gates
from gatelight.parametrize import IWP, Init, Parametrization
from gatelight.wiring import Wiring


@dataclass(frozen=True)
class Parts:
    """What all layers of a network are made of.

    Attributes:
        parametrization: Maps parameters to tables.
        init: Where the gates start.
        wiring: Draws the connections of the dense layers.
    """

    parametrization: Parametrization = IWP()  # noqa: RUF009 - a frozen value
    init: Init = Init()  # noqa: RUF009 - a frozen value
    wiring: Wiring = wiring.NAMED["clustered"]

    @classmethod
    def of(cls, gates: Gates, wiring_name: str, **values: Any) -> Parts:
        """The parts that a configuration names; ``values`` are given directly instead of by name."""
        given, init = values.get("parametrization"), values.get("init")
        if given is not None:
            # What differs from its default was asked for, and must be what the value has.
            parametrize.make(given, **_changed(gates, "arity", "estimator"))
        if init is not None and (changed := _changed(gates, "init_strength", "init_std")):
            raise ValueError(f"{' and '.join(changed)} given, but the init is {init!r}")
        made: dict[str, Any] = {
            "parametrization": given or _named(gates),
            "init": init or Init(gates.init, gates.init_strength, gates.init_std),
            "wiring": wiring.make(values.get("wiring") or wiring_name),
        }
        return cls(**made)


def _changed(gates: Gates, *names: str) -> dict[str, Any]:
    """The values that are not the defaults."""
    return {name: getattr(gates, name) for name in names if getattr(gates, name) != getattr(Gates(), name)}


def _named(gates: Gates) -> Parametrization:
    """The parametrization of a name with its options. Others must have their defaults."""
    kind = parametrize.NAMED.get(gates.parametrization)
    options: dict[str, Any] = {"arity": gates.arity}
    if kind is None or hasattr(kind, "estimator") or gates.estimator != Gates().estimator:
        options["estimator"] = gates.estimator
    return parametrize.make(gates.parametrization, **options)
