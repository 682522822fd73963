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
