import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatelight.nn.wiring import CLUSTER, link, wire, wire_clusters


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(
    st.sampled_from(["random", "unique"]), st.integers(1, 30), st.integers(1, 60), st.integers(1, 6), st.integers(0, 5)
)
@settings(deadline=None, max_examples=200)
def test_balanced_distinct_and_unique(wiring: str, features: int, gates: int, arity: int, seed: int) -> None:
    sets = math.comb(features, arity)
    if wiring == "unique" and gates > sets:
        with pytest.raises(ValueError, match="use 'random'"):
            wire(wiring, features, gates, arity, generator(seed))
        return
    fanin = wire(wiring, features, gates, arity, generator(seed))
    assert fanin.shape == (gates, arity)
    assert fanin.dtype == torch.int32
    counts = torch.bincount(fanin.flatten(), minlength=features)
    assert len(counts) == features
    assert counts.max() - counts.min() <= 1
    rows = [tuple(sorted(row)) for row in fanin.tolist()]
    if features >= arity:
        assert all(len(set(row)) == arity for row in rows)
    if wiring == "unique":
        assert len(set(rows)) == gates


def test_the_papers_sizes() -> None:
    fanin = wire("unique", 400, 64_000, 2, generator())
    assert len({tuple(sorted(row)) for row in fanin.tolist()}) == 64_000
    counts = torch.bincount(fanin.flatten(), minlength=400)
    assert counts.max() - counts.min() <= 1
    assert len(wire("unique", 9216, 2000, 2, generator())) == 2000


@given(st.integers(1, 30), st.integers(1, 60), st.integers(1, 6), st.integers(0, 5))
@settings(deadline=None, max_examples=100)
def test_linking_keeps_every_gate(features: int, gates: int, arity: int, seed: int) -> None:
    fanin = torch.randint(0, features, (gates, arity), generator=generator(seed))
    before = fanin.clone()
    linked, exchanged = link(fanin)
    assert torch.equal(fanin, before)
    linked[exchanged] = linked[exchanged][:, [-1, *range(1, arity - 1), 0][-arity:]]
    assert sorted(linked.tolist()) == sorted(fanin.tolist())


@pytest.mark.parametrize(("features", "breaks"), [(1000, 20), (50, 60)])
def test_linked_gates_share_inputs(features: int, breaks: int) -> None:
    # Where every input is read twice, gates form a few long rings, and each input is the first of one gate.
    linked, _ = link(wire("random", features, 1000, 2, generator()))
    assert int((linked[1:, 0] != linked[:-1, 1]).sum()) < breaks
    if features == 1000:
        assert linked[:, 0].sort().values.tolist() == list(range(1000))


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 3), st.integers(1, 7), st.integers(0, 5))
@example(2048, 2048, 2, 1, 0)
@example(2047, 100, 2, 10, 0)
@settings(deadline=None, max_examples=50)
def test_clusters(features: int, gates: int, arity: int, parts: int, seed: int) -> None:
    fanin = wire_clusters("random", features, gates, arity, generator(seed), parts)
    assert fanin.shape == (gates, arity)
    assert fanin.dtype == torch.int32
    cluster = (fanin // CLUSTER).clamp(max=max(1, features // CLUSTER) - 1)
    assert torch.equal(cluster.amin(1), cluster.amax(1))
    # Each part lists its gates by cluster, and has its share of each cluster.
    counts = []
    for part in torch.arange(gates).tensor_split(parts):
        own = cluster[part, 0]
        assert torch.equal(own, own.sort().values)
        counts.append(torch.bincount(own, minlength=max(1, features // CLUSTER)))
    if gates % parts == 0:
        shares = torch.stack(counts)
        assert int((shares.amax(0) - shares.amin(0)).max()) <= 1


def test_clusters_of_equally_wide_layers_are_balanced() -> None:
    fanin = wire_clusters("unique", 3500, 3500, 2, generator(), parts=10)
    assert torch.bincount(fanin.flatten()).tolist() == [2] * 3500
    assert len({tuple(sorted(row)) for row in fanin.tolist()}) == 3500


@pytest.mark.parametrize("clusters", [False, True])
def test_a_class_reads_nothing_twice(clusters: bool) -> None:
    size = 8192, 8192, 2, generator()
    fanin = wire_clusters("random", *size, parts=10) if clusters else wire("random", *size)
    for part in fanin.tensor_split(10):
        # The fifth class begins with one shuffling of the inputs and ends with the next.
        assert len(part.unique()) >= 0.98 * part.numel()


def test_seed_decides() -> None:
    assert torch.equal(wire("random", 20, 30, 2, generator(1)), wire("random", 20, 30, 2, generator(1)))
    assert not torch.equal(wire("random", 20, 30, 2, generator(1)), wire("random", 20, 30, 2, generator(2)))


def test_order_of_inputs_is_random() -> None:
    for wiring in ("random", "unique"):
        fanin = wire(wiring, 40, 700, 2, generator())
        assert 0.4 < (fanin[:, 0] < fanin[:, 1]).float().mean() < 0.6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("randon", 4, 4, 2), "did you mean 'random'"),
        (("random", 0, 4, 2), "at least one"),
        (("random", 4, 4, 7), "from 1 to 6"),
    ],
)
def test_bad_input(arguments: tuple[str, int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wire(*arguments, generator())
