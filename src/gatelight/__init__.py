"""Trains light differentiable logic gate networks and turns them into circuits.

``import gatelight as gl`` is enough: ``gl.nn``, ``gl.models``, ``gl.data``, ``gl.export`` and the other names below are
loaded when they are first used. Importing gatelight needs only numpy; what needs torch imports it on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gatelight import circuit, data, engine, export, models, nn, ops, parametrize, truthtable, wiring
    from gatelight.circuit import Circuit
    from gatelight.compilation import compile
    from gatelight.discretization import discretize
    from gatelight.engine import Engine
    from gatelight.nn import rounded
    from gatelight.training.fit import fit

__version__ = "0.1.0"
__all__ = [
    "Circuit",
    "Engine",
    "circuit",
    "compile",
    "data",
    "discretize",
    "engine",
    "export",
    "fit",
    "models",
    "nn",
    "ops",
    "parametrize",
    "rounded",
    "truthtable",
    "wiring",
]

#: The module of each name that is not a module itself.
_HOME = {
    "Circuit": "circuit",
    "Engine": "engine",
    "compile": "compilation",
    "discretize": "discretization",
    "fit": "training.fit",
    "rounded": "nn",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'gatelight' has no attribute {name!r}")
    module = importlib.import_module(f"gatelight.{_HOME.get(name, name)}")
    found = getattr(module, name) if name in _HOME else module
    globals()[name] = found  # the next time it is an ordinary attribute
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
