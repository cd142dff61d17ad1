"""Which function each gate leans to at the start.

An init is a distribution over truth tables. A parametrization then puts theta near the drawn tables.
``gaussian`` leans to no function; parametrizations handle it themselves.

| init | a gate of arity n starts near |
|---|---|
| residual | the pass-through of its first input |
| and-or | AND or OR, by a fair coin |
| and-or-residual | AND (1/4), OR (1/4), or one of its inputs passed through (1/2 in all) |
| uniform | any of the 2**(2**n) functions |
| a function's name | that function: ``and``, ``or``, ``xor``, ``b``, ... |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gatelight import truthtable
from gatelight.names import check_name

MIXED = ("residual", "gaussian", "and-or", "and-or-residual", "uniform")


@dataclass(frozen=True)
class Init:
    """Where gates start.

    >>> Init("and").target_tables(1, 2, torch.Generator()).tolist()
    [[0, 0, 0, 1]]

    Attributes:
        name: A row of the table above.
        strength: How far theta leans to the function; None is the parametrization's own value.
        std: Standard deviation of theta around that point; None is the parametrization's own value.
    """

    name: str = "residual"
    strength: float | None = None
    std: float | None = None

    def target_tables(self, gates: int, arity: int, generator: torch.Generator) -> Tensor:
        """Draw the table that each gate leans to, uint8 [gates, 2**arity]."""
        return target_tables(self.name, gates, arity, generator)


def names(arity: int) -> tuple[str, ...]:
    """Every init for gates of an arity.

    >>> names(1)
    ('residual', 'gaussian', 'and-or', 'and-or-residual', 'uniform', 'false', 'a', 'not-a', 'true')
    """
    functions = truthtable.names(arity)
    if arity == 1:
        return (*MIXED, *functions)
    return (*MIXED, *(f for f in functions if f not in MIXED))


def target_tables(init: str, gates: int, arity: int, generator: torch.Generator) -> Tensor:
    """Draw the table that each gate leans to, uint8 [gates, 2**arity].

    >>> target_tables("residual", 1, 2, torch.Generator()).tolist()
    [[0, 0, 1, 1]]
    """
    check_name("init", init, names(arity))
    if init == "gaussian":
        raise ValueError("the gaussian init leans to no function and has no target tables")
    if init == "uniform":
        return torch.randint(0, 2, (gates, 1 << arity), generator=generator, dtype=torch.uint8)
    if init == "residual":
        options, weights = ["a"], [1.0]
    elif init == "and-or":
        options, weights = ["and", "or"], [0.5, 0.5]
    elif init == "and-or-residual":
        options = ["and", "or", *"abcdef"[:arity]]
        weights = [0.25, 0.25, *[0.5 / arity] * arity]
    else:
        options, weights = [init], [1.0]
    tables = torch.from_numpy(np.stack([_table(option, arity) for option in options]))
    if gates == 0:  # multinomial draws at least once
        return tables[:0]
    drawn = torch.multinomial(torch.tensor(weights), gates, replacement=True, generator=generator)
    return tables[drawn]


def _table(function: str, arity: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """A named table; with one input, AND and OR are the input itself."""
    if arity == 1 and function in ("and", "or"):
        function = "a"
    return truthtable.from_name(function, arity)
