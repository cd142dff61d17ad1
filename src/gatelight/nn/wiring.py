"""Which inputs each gate reads: int32 [gates, arity].

Both wirings use every input equally often (counts differ by at most one, so widths smaller than the input leave
some inputs unread) and give a gate distinct inputs where there are enough of them. ``unique`` also gives no two
gates the same set of inputs.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from gatelight import truthtable
from gatelight.names import check_name

NAMES = ("random", "unique")

#: Gates of a cluster, and how many a layer has at least for the kernels to take it in clusters (csrc/kernels.h).
CLUSTER = 1024
CLUSTERED = 32 * CLUSTER

_MAX_REPAIRS = 10_000
_SIDEWAYS = 0.1


def wire(wiring: str, features: int, gates: int, arity: int, generator: torch.Generator) -> Tensor:
    """Draw the connections of a layer, int32 [gates, arity] with values in 0..features-1.

    >>> wire("unique", 3, 3, 2, torch.Generator().manual_seed(0)).sort(1).values.sort(0).values.tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    check_name("wiring", wiring, NAMES)
    truthtable.check_arity(arity)
    if features < 1 or gates < 1:
        raise ValueError(f"a layer needs at least one input and one gate, got {features} and {gates}")
    sets = math.comb(features, arity)
    if wiring == "random":
        return _balanced(features, gates, arity, generator, unique=False).int()
    if gates > sets:
        raise ValueError(
            f"wiring 'unique' has only {sets} sets of {arity} out of {features} inputs for {gates} gates; use 'random'"
        )
    if 2 * gates <= sets or gates == 1:
        return _balanced(features, gates, arity, generator, unique=True).int()
    return _complement(features, gates, arity, generator).int()


def wire_clusters(
    wiring: str, features: int, gates: int, arity: int, generator: torch.Generator, parts: int = 1
) -> Tensor:
    """Connections that stay inside clusters of :data:`CLUSTER` inputs (the last one takes what is left over), int32.

    After a layer with other connections this is hardly a restriction: which inputs make a cluster is chance already.
    The two layers then train cluster by cluster, inside the cache.

    Args:
        wiring: As in :func:`wire`, for each cluster.
        features: Inputs of the layer.
        gates: Gates of the layer; a cluster has as many as its share of the inputs.
        arity: Inputs of a gate.
        generator: Draws the connections.
        parts: How many equal parts the gates are listed in, each with gates of all clusters one after the other: the
            classes where the layer is the last. As with :func:`wire`, a part reads no input twice unless it must.

    >>> wire_clusters("random", 4096, 4096, 2, torch.Generator().manual_seed(0))[1024:2048].aminmax()
    torch.return_types.aminmax(
    min=tensor(1024, dtype=torch.int32),
    max=tensor(2047, dtype=torch.int32))
    """
    begins = [*range(0, max(features - CLUSTER, 0) + 1, CLUSTER), features]
    clusters, part_of = [], []
    for first, end in itertools.pairwise(begins):
        own = torch.arange(gates * first // features, gates * end // features)
        if len(own):
            clusters.append(wire(wiring, end - first, len(own), arity, generator) + first)
            # Equal parts of each cluster. Gates that follow one another were dealt different inputs.
            part_of.append((own % parts).sort().values)
    return torch.cat(clusters)[torch.cat(part_of).argsort(stable=True)]


def draw_sets(features: int, sets: int, members: int, generator: torch.Generator) -> Tensor:
    """Sets of inputs, int64 [sets, members]: every input used equally often, members distinct where there are enough.

    >>> draw_sets(8, 2, 4, torch.Generator().manual_seed(0)).flatten().sort().values.tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    return _balanced(features, sets, members, generator, unique=False)


def link(fanin: Tensor) -> tuple[Tensor, Tensor]:
    """The gates in an order, and with their inputs in an order, in which they hang together.

    The first input of nearly every gate is then the last one of the gate before it. Gates are edges between their first
    and last input. Edges that end at the same input are paired, and walks from edge to edge list the gates. One that is
    walked from its last input to its first has the two exchanged, so that its table must change, too.

    Returns:
        The connections [gates, arity], and for which gates the first and the last input are exchanged, bool [gates].

    >>> linked, exchanged = link(torch.tensor([[0, 1], [2, 3], [2, 1], [3, 0]]))
    >>> linked.tolist(), exchanged.tolist()
    ([[0, 1], [1, 2], [2, 3], [3, 0]], [False, True, False, False])
    """
    gates, arity = fanin.shape
    if arity == 1:
        return fanin[fanin[:, 0].argsort(stable=True)], torch.zeros(gates, dtype=torch.bool)
    inputs, ends = fanin[:, [0, -1]].flatten().sort(stable=True)  # ends 2 j and 2 j + 1 belong to gate j
    nth = torch.arange(2 * gates) - torch.searchsorted(inputs, inputs)
    pairs = ((inputs[1:] == inputs[:-1]) & (nth[:-1] % 2 == 0)).nonzero().flatten()
    partners = torch.full((2 * gates,), -1)
    partners[ends[pairs]], partners[ends[pairs + 1]] = ends[pairs + 1], ends[pairs]
    partner = partners.tolist()
    listed, entered = bytearray(gates), []
    for start in range(gates):
        end = 2 * start
        while end >= 0 and not listed[end // 2]:
            listed[end // 2] = True
            entered.append(end)
            end = partner[end ^ 1]
    walked = torch.tensor(entered)
    linked, exchanged = fanin[walked // 2], walked % 2 == 1
    linked[exchanged, 0], linked[exchanged, -1] = linked[exchanged, -1], linked[exchanged, 0]
    return linked, exchanged


def _balanced(features: int, gates: int, arity: int, generator: torch.Generator, *, unique: bool) -> Tensor:
    """Deal out permutations of the inputs, then swap inputs between gates until no gate is bad."""
    if arity <= features < 2 * arity:
        return _unread(features, gates, arity, generator, unique=unique)
    rounds = -(-gates * arity // features)
    dealt = torch.cat([torch.randperm(features, generator=generator) for _ in range(rounds)])
    fanin = dealt[: gates * arity].view(gates, arity).clone()
    if features < arity or gates == 1:
        return fanin
    # Sums of random 64-bit numbers tell sets of inputs apart, whatever the order of the inputs.
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
    """Copies of two equally long lists of gates after each pair has exchanged one input."""
    pair = torch.arange(len(mine))
    slot = torch.randint(0, mine.shape[1], (2, len(mine)), generator=generator)
    mine, theirs = mine.clone(), theirs.clone()
    kept = mine[pair, slot[0]]
    mine[pair, slot[0]] = theirs[pair, slot[1]]
    theirs[pair, slot[1]] = kept
    return mine, theirs


def _unread(features: int, gates: int, arity: int, generator: torch.Generator, *, unique: bool) -> Tensor:
    """Gates that read more than half of the inputs: wire what they do not read."""
    reads = torch.ones(gates, features, dtype=torch.bool)
    if features > arity:
        left_out = _balanced(features, gates, features - arity, generator, unique=unique)
        reads.scatter_(1, left_out, False)
    return _shuffled_slots(reads.nonzero()[:, 1].view(gates, arity), generator)


def _shuffled_slots(fanin: Tensor, generator: torch.Generator) -> Tensor:
    return fanin.gather(1, torch.rand(fanin.shape, generator=generator).argsort(1))


def _complement(features: int, gates: int, arity: int, generator: torch.Generator) -> Tensor:
    """All sets of inputs but a balanced few: the dense case, in which swapping would seldom succeed."""
    sets = torch.combinations(torch.arange(features), arity)
    left_out = len(sets) - gates
    keep = torch.ones(len(sets), dtype=torch.bool)
    if left_out:
        index = {tuple(s): i for i, s in enumerate(sets.tolist())}
        for row in wire("unique", features, left_out, arity, generator).sort(1).values.tolist():
            keep[index[tuple(row)]] = False
    fanin = sets[keep][torch.randperm(gates, generator=generator)]
    return _shuffled_slots(fanin, generator)
