"""Placement: every partition on different brokers, every broker with its share."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cordwood.cluster.placement import Sites, place
from cordwood.ids import NodeId


@st.composite
def placements(draw: st.DrawFn) -> tuple[list[NodeId], list[tuple[NodeId, ...]]]:
    count = draw(st.integers(1, 8))
    brokers = [NodeId(node) for node in draw(st.permutations(range(10, 10 + count)))]
    placed = place(
        Sites(brokers),
        partitions=draw(st.integers(1, 60)),
        replicas=draw(st.integers(1, count)),
        start=draw(st.integers(0, 20)),
    )
    return brokers, placed


@given(placements())
def test_no_partition_has_two_replicas_on_one_broker(placement: tuple[list[NodeId], list[tuple[NodeId, ...]]]) -> None:
    brokers, placed = placement
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == len(placed[0])
        assert set(replicas) <= set(brokers)


@given(placements())
def test_every_broker_leads_its_share(placement: tuple[list[NodeId], list[tuple[NodeId, ...]]]) -> None:
    brokers, placed = placement
    leaders = Counter(replicas[0] for replicas in placed)
    shares = [leaders[node] for node in brokers]
    assert max(shares) - min(shares) <= 1


@given(st.integers(2, 6), st.integers(0, 9))
def test_a_lost_brokers_leaders_are_taken_over_by_all_others_alike(count: int, start: int) -> None:
    brokers = [NodeId(node) for node in range(count)]
    placed = place(Sites(brokers), partitions=count * (count - 1), replicas=2, start=start)
    for lost in brokers:
        heirs = Counter(second for first, second in placed if first == lost)
        assert heirs == {node: 1 for node in brokers if node != lost}


@given(st.integers(1, 6), st.integers(1, 30), st.integers(1, 30), st.integers(0, 9))
def test_more_partitions_do_not_move_the_first_ones(count: int, fewer: int, more: int, start: int) -> None:
    brokers = [NodeId(node) for node in range(count)]
    first = place(Sites(brokers), partitions=fewer, replicas=1, start=start)
    assert place(Sites(brokers), partitions=fewer + more, replicas=1, start=start)[:fewer] == first


# ---------------------------------------------------------------------- racks, and brokers that are not there


@st.composite
def racked(draw: st.DrawFn) -> tuple[Sites, int, list[tuple[NodeId, ...]]]:
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    racks: dict[NodeId, str] = {}
    for rack, size in enumerate(sizes):
        for _ in range(size):
            racks[NodeId(len(racks) + 1)] = f"rack {rack}"
    sites = Sites(sorted(racks), racks=racks)
    replicas = draw(st.integers(1, len(racks)))
    return (
        sites,
        replicas,
        place(sites, partitions=draw(st.integers(1, 40)), replicas=replicas, start=draw(st.integers(0, 9))),
    )


@given(racked())
def test_a_partition_is_on_as_many_racks_as_can_be(placement: tuple[Sites, int, list[tuple[NodeId, ...]]]) -> None:
    sites, replicas, placed = placement
    racks = len(set(sites.racks.values()))
    for nodes in placed:
        assert len(set(nodes)) == len(nodes) == replicas
        assert len({sites.racks[node] for node in nodes}) == min(racks, replicas)


@given(racked())
def test_every_broker_leads_its_share_whatever_the_racks(
    placement: tuple[Sites, int, list[tuple[NodeId, ...]]],
) -> None:
    sites, _, placed = placement
    leaders = Counter(nodes[0] for nodes in placed)
    shares = [leaders[node] for node in sites.brokers]
    assert max(shares) - min(shares) <= 1


@given(st.integers(2, 4), st.integers(1, 3), st.integers(2, 3))
def test_racks_of_one_size_share_all_replicas_alike(racks: int, size: int, replicas: int) -> None:
    nodes = [NodeId(node) for node in range(racks * size)]
    sites = Sites(nodes, racks={node: f"rack {node % racks}" for node in nodes})
    replicas = min(replicas, len(nodes))
    placed = place(sites, partitions=len(nodes) * 3, replicas=replicas, start=0)
    held = Counter(node for partition in placed for node in partition)
    assert max(held.values()) - min(held.values()) <= 1


def test_brokers_without_a_rack_are_one_rack_together() -> None:
    sites = Sites([NodeId(1), NodeId(2), NodeId(3)], racks={NodeId(3): "a"})
    assert all(NodeId(3) in nodes for nodes in place(sites, partitions=9, replicas=2, start=0))


def test_brokers_that_are_not_there_are_taken_last() -> None:
    sites = Sites([NodeId(1), NodeId(2)], spare=[NodeId(3), NodeId(4)])
    assert {n for nodes in place(sites, partitions=8, replicas=2, start=0) for n in nodes} == {1, 2}
    placed = place(sites, partitions=8, replicas=3, start=0)
    assert all({1, 2} <= set(nodes) and nodes[0] in (1, 2) for nodes in placed)
    assert Counter(nodes[2] for nodes in placed) == {3: 4, 4: 4}
    assert all(set(nodes) == {1, 2, 3, 4} for nodes in place(sites, partitions=8, replicas=4, start=0))
