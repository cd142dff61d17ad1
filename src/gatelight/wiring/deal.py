"""Dealing out inputs to gates: balanced, and without repeats if possible."""

from __future__ import annotations

import torch
from torch import Tensor

_MAX_REPAIRS = 10_000
_SIDEWAYS = 0.1


def deal(features: int, gates: int, arity: int, generator: torch.Generator, *, unique: bool = False) -> Tensor:
    """Sets of inputs, int64 [gates, arity]: every input used equally often, those of a gate distinct if possible.

    Deals out permutations of the inputs, then swaps inputs between gates until no gate is bad.

    >>> deal(8, 2, 4, torch.Generator().manual_seed(0)).flatten().sort().values.tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]

    Args:
        features: Inputs to deal.
        gates: Gates that get them.
        arity: Inputs of a gate.
        generator: Draws the connections.
        unique: Whether no two gates may get the same set.
    """
    if arity <= features < 2 * arity:
        return _unread(features, gates, arity, generator, unique=unique)
    rounds = -(-gates * arity // features)
    dealt = torch.cat([torch.randperm(features, generator=generator) for _ in range(rounds)])
    fanin = dealt[: gates * arity].view(gates, arity).clone()
    if features < arity or gates == 1:
        return fanin
    # Sums of random 64-bit numbers identify sets of inputs, whatever the order of the inputs.
    code = torch.randint(-(1 << 62), 1 << 62, (features,), generator=generator)
    for _ in range(_MAX_REPAIRS):
        bad = _repeats(fanin).nonzero().flatten()
        repairing_sets = unique and len(bad) == 0
        if repairing_sets:
            sums, order = code[fanin].sum(1).sort(stable=True)
            bad = order[1:][sums[1:] == sums[:-1]]
        if len(bad) == 0:
            return fanin
        mine = bad[torch.randperm(len(bad), generator=generator)][: max(1, gates // 2)]
        others = torch.ones(gates, dtype=torch.bool)
        others[mine] = False
        theirs = others.nonzero().flatten()
        theirs = theirs[torch.randperm(len(theirs), generator=generator)[: len(mine)]]
        mine = mine[: len(theirs)]
        swapped = _swap_one_input(fanin[mine], fanin[theirs], generator)
        before, after = (_repeats(a) + _repeats(b) for a, b in ((fanin[mine], fanin[theirs]), swapped))
        better = after <= before
        if repairing_sets:
            fresh = ~torch.isin(code[torch.cat(swapped)].sum(1), code[fanin].sum(1)).view(2, -1)
            lucky = torch.rand(len(mine), generator=generator) < _SIDEWAYS
            better &= fresh.all(0) | lucky
        fanin[mine[better]], fanin[theirs[better]] = swapped[0][better], swapped[1][better]
    raise ValueError(f"no balanced wiring of {gates} gates with {arity} of {features} inputs found; use 'random'")


def _repeats(rows: Tensor) -> Tensor:
    """How many inputs of each gate are repetitions, [gates]."""
    ordered = rows.sort(1).values
    return (ordered[:, 1:] == ordered[:, :-1]).sum(1)


def _swap_one_input(mine: Tensor, theirs: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Copies of two equally long lists of gates after each pair has swapped one input."""
    pair = torch.arange(len(mine))
    slot = torch.randint(0, mine.shape[1], (2, len(mine)), generator=generator)
    mine, theirs = mine.clone(), theirs.clone()
    kept = mine[pair, slot[0]]
    mine[pair, slot[0]] = theirs[pair, slot[1]]
    theirs[pair, slot[1]] = kept
    return mine, theirs


def _unread(features: int, gates: int, arity: int, generator: torch.Generator, *, unique: bool) -> Tensor:
    """Gates that read more than half of the inputs: deal the inputs that they do not read."""
    reads = torch.ones(gates, features, dtype=torch.bool)
    if features > arity:
        left_out = deal(features, gates, features - arity, generator, unique=unique)
        reads.scatter_(1, left_out, False)
    return shuffle_slots(reads.nonzero()[:, 1].view(gates, arity), generator)


def shuffle_slots(fanin: Tensor, generator: torch.Generator) -> Tensor:
    """The same inputs of each gate in a random order."""
    return fanin.gather(1, torch.rand(fanin.shape, generator=generator).argsort(1))
