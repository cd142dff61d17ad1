import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatelight import wiring
from gatelight.nn import LogicConv2d, LogicDense
from gatelight.wiring import Clustered, Leaves, Placed, Random, Site, TreeSite, Unique
from gatelight.wiring.clustered import CLUSTER, WIDE
from gatelight.wiring.linking import is_linked, link


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def wire(name: str, features: int, gates: int, arity: int, random: torch.Generator) -> torch.Tensor:
    return wiring.make(name).draw(Site(features, gates, arity), random)


def wire_clusters(
    inside: wiring.Wiring, features: int, gates: int, arity: int, random: torch.Generator, parts: int
) -> torch.Tensor:
    return Clustered(inside).draw(Site(features, gates, arity, groups=parts), random)


@given(
    st.sampled_from(["random", "unique"]), st.integers(1, 30), st.integers(1, 60), st.integers(1, 6), st.integers(0, 5)
)
@settings(deadline=None, max_examples=200)
def test_balanced_distinct_and_unique(name: str, features: int, gates: int, arity: int, seed: int) -> None:
    sets = math.comb(features, arity)
    if name == "unique" and gates > sets:
        with pytest.raises(ValueError, match="use 'random'"):
            wire(name, features, gates, arity, generator(seed))
        return
    fanin = wire(name, features, gates, arity, generator(seed))
    assert fanin.shape == (gates, arity)
    assert fanin.dtype == torch.int32
    counts = torch.bincount(fanin.flatten(), minlength=features)
    assert len(counts) == features
    assert counts.max() - counts.min() <= 1
    rows = [tuple(sorted(row)) for row in fanin.tolist()]
    if features >= arity:
        assert all(len(set(row)) == arity for row in rows)
    if name == "unique":
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
    linked, order, swapped = link(fanin)
    assert torch.equal(fanin, before)
    linked[swapped] = linked[swapped][:, [-1, *range(1, arity - 1), 0][-arity:]]
    assert torch.equal(linked, fanin[order])
    assert order.sort().values.tolist() == list(range(gates))


@pytest.mark.parametrize(("features", "breaks"), [(1000, 20), (50, 60)])
def test_linked_gates_share_inputs(features: int, breaks: int) -> None:
    # Where every input is read twice, gates form a few long rings, and each input is the first of one gate.
    drawn = wire("random", features, 1000, 2, generator())
    linked = link(drawn).fanin
    assert is_linked(linked)
    assert not is_linked(drawn)
    assert int((linked[1:, 0] != linked[:-1, 1]).sum()) < breaks
    if features == 1000:
        assert linked[:, 0].sort().values.tolist() == list(range(1000))


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 3), st.integers(1, 7), st.integers(0, 5))
@example(2048, 2048, 2, 1, 0)
@example(2047, 100, 2, 10, 0)
@settings(deadline=None, max_examples=50)
def test_clusters(features: int, gates: int, arity: int, parts: int, seed: int) -> None:
    fanin = wire_clusters(Random(), features, gates, arity, generator(seed), parts)
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
    fanin = wire_clusters(Unique(), 3500, 3500, 2, generator(), parts=10)
    assert torch.bincount(fanin.flatten()).tolist() == [2] * 3500
    assert len({tuple(sorted(row)) for row in fanin.tolist()}) == 3500


@pytest.mark.parametrize("clusters", [False, True])
def test_a_class_reads_nothing_twice(clusters: bool) -> None:
    size = 8192, 8192, 2, generator()
    fanin = wire_clusters(Random(), *size, parts=10) if clusters else wire("random", *size)
    for part in fanin.tensor_split(10):
        # The fifth class begins with one shuffling of the inputs and ends with the next.
        assert len(part.unique()) >= 0.98 * part.numel()


def test_seed_decides() -> None:
    assert torch.equal(wire("random", 20, 30, 2, generator(1)), wire("random", 20, 30, 2, generator(1)))
    assert not torch.equal(wire("random", 20, 30, 2, generator(1)), wire("random", 20, 30, 2, generator(2)))


def test_order_of_inputs_is_random() -> None:
    for name in ("random", "unique"):
        fanin = wire(name, 40, 700, 2, generator())
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


def test_every_second_wide_layer_is_clustered() -> None:
    pairs = wiring.make("clustered")
    for index, features, passes_on, inside in (
        (1, WIDE, False, True),
        (0, WIDE, False, False),
        (1, WIDE - 1, False, False),
        (1, WIDE, True, False),
    ):
        fanin = Placed(pairs, index, passes_on=passes_on).draw(Site(features, 500, 2), generator())
        assert torch.equal(fanin[:, 0] // CLUSTER, fanin[:, 1] // CLUSTER) == inside


def test_a_wiring_of_ones_own() -> None:
    class Diagonal:
        any_order = keeps_places = False

        def draw(self, site: Site, _: torch.Generator) -> torch.Tensor:
            return torch.arange(site.gates).unsqueeze(1).expand(-1, site.arity) % site.features

    assert LogicDense(3, 4, wiring=Diagonal()).fanin.tolist() == [[0, 0], [1, 1], [2, 2], [0, 0]]

    class TooMany(Diagonal):
        def draw(self, site: Site, _: torch.Generator) -> torch.Tensor:
            return torch.full((site.gates, site.arity), site.features)

    with pytest.raises(ValueError, match=r"fanin\[0, 0\] must be from 0 to 2, got 3"):
        LogicDense(3, 4, wiring=TooMany())


def test_leaves_in_groups_of_channels() -> None:
    site = TreeSite(channels=16, window=9, trees=64, leaves=8)
    drawn = Leaves(channels_per_tree=2).draw(site, generator())
    channels = drawn // 9
    assert int((channels.amax(1) - channels.amin(1)).max()) == 1
    assert channels.unique().tolist() == list(range(16))
    layer = LogicConv2d(1, 2, 2, tree_depth=1, wiring=[[0, 3], [1, 2]])
    assert layer.fanin.tolist() == [[0, 3], [1, 2]]
    with pytest.raises(ValueError, match=r"leaves must be \[2, 2\]"):
        LogicConv2d(1, 2, 2, tree_depth=1, wiring=[[0, 3, 1]])
