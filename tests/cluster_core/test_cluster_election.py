"""Elections as tables: who is there, who was in sync, who leads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_core.cluster_tables import live, nodes, topic_of
from cordwood.cluster.election import (
    elect_preferred,
    elect_uncleanly,
    needed_state,
    new_state,
    preferred_state,
    remaining,
)
from cordwood.cluster.image import NO_LEADER, PartitionInfo
from cordwood.cluster.states import Live, State, state_of
from cordwood.errors import Error, Refused
from cordwood.ids import NodeId


def partition(replicas: str, leader: int, isr: str, epoch: int = 5) -> PartitionInfo:
    return PartitionInfo(0, nodes(replicas), NodeId(leader), epoch, nodes(isr))


def needed(info: PartitionInfo, there: str, *, unclean: bool = False) -> tuple[int, int, str] | None:
    """(leader, epoch, in-sync replicas as digits)"""
    state = needed_state(topic_of(info), info, live(there), lambda _: unclean)
    return None if state is None else (state.leader, state.leader_epoch, "".join(map(str, state.isr)))


@pytest.mark.parametrize(
    ("leader", "isr", "there", "expected"),
    [
        (1, "123", "123", None),
        (1, "123", "12", (1, 5, "12")),  # a follower died
        (1, "123", "23", (2, 6, "23")),  # the leader died
        (1, "132", "23", (2, 6, "32")),  # the order of the replicas counts, not that of the in-sync replicas
        (1, "13", "23", (3, 6, "3")),  # 2 is there but not in sync
        (1, "1", "23", (-1, 6, "1")),  # nobody in sync is there: the last one is remembered
        (1, "12", "3", (-1, 6, "12")),  # two at once: both have everything
        (-1, "12", "3", None),
        (-1, "1", "1", (1, 6, "1")),  # it is back
        (-1, "12", "23", (2, 6, "2")),
        (-1, "", "123", None),  # what it had is gone
        (1, "123", "12/3", (1, 5, "12")),  # a follower is about to stop
        (1, "123", "23/1", (2, 6, "23")),  # the leader is about to stop
        (1, "1", "23/1", None),  # nobody else can
        (1, "12", "3/12", None),
        (1, "12", "/2", (2, 6, "2")),  # the last one there is about to stop, and leads until then
        (1, "12", "", (-1, 6, "12")),
        (1, "12", "1", (1, 5, "1")),
        (2, "12", "12", None),  # no need for the preferred one
    ],
)
def test_who_leads(leader: int, isr: str, there: str, expected: tuple[int, int, str] | None) -> None:
    assert needed(partition("123", leader, isr), there) == expected


@pytest.mark.parametrize(
    ("leader", "isr", "there", "expected"),
    [
        (1, "1", "23", (2, 6, "2")),
        (-1, "", "3", (3, 6, "3")),
        (-1, "1", "", None),
        (1, "13", "23", (3, 6, "3")),  # not while one in sync is there
        (-1, "1", "/23", None),  # not by one who is about to stop
    ],
)
def test_who_leads_uncleanly(leader: int, isr: str, there: str, expected: tuple[int, int, str] | None) -> None:
    assert needed(partition("123", leader, isr), there, unclean=True) == expected


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ("123", State(NodeId(1), 0, nodes("123"))),
        ("23", State(NodeId(2), 0, nodes("23"))),
        ("2/13", State(NodeId(2), 0, nodes("2"))),
        ("/3", State(NodeId(3), 0, nodes("3"))),
        ("", State(NO_LEADER, 0, nodes("123"))),
    ],
)
def test_the_first_state(there: str, expected: State) -> None:
    assert new_state(nodes("123"), live(there)) == expected
    assert needed_state(
        topic_of(PartitionInfo(0, nodes("123"))), PartitionInfo(0, nodes("123")), live(there), bool
    ) == (expected)


everybody = st.sets(st.integers(1, 5).map(NodeId)).map(frozenset)


@st.composite
def situations(draw: st.DrawFn) -> tuple[PartitionInfo, Live]:
    replicas = tuple(draw(st.permutations(range(1, 6)))[: draw(st.integers(1, 5))])
    isr = tuple(draw(st.permutations(replicas))[: draw(st.integers(0, len(replicas)))])
    leader = draw(st.sampled_from([*isr, -1]))
    there = draw(everybody)
    stopping = draw(everybody)
    info = PartitionInfo(0, tuple(map(NodeId, replicas)), NodeId(leader), 3, tuple(map(NodeId, isr)))
    return info, Live(there, there - stopping)


@given(situations(), st.booleans())
def test_an_election_never_does_what_it_must_not(situation: tuple[PartitionInfo, Live], unclean: bool) -> None:
    info, there = situation
    before = state_of(info)
    state = needed_state(topic_of(info), info, there, lambda _: unclean) or before
    assert state.leader == NO_LEADER or state.leader in there.there
    assert state.leader == NO_LEADER or state.leader in state.isr
    assert state.leader_epoch - before.leader_epoch == (state.leader != before.leader)
    assert set(state.isr) <= set(info.replicas)
    assert bool(state.isr) >= bool(before.isr)
    if not unclean:
        assert set(state.isr) <= set(before.isr)
        assert (state.leader != NO_LEADER) == bool(set(before.isr) & there.there)
    if there.able & set(before.isr):
        assert set(state.isr) == there.able & set(before.isr)
    after = PartitionInfo(0, info.replicas, state.leader, state.leader_epoch, state.isr)
    assert needed_state(topic_of(after), after, there, lambda _: unclean) is None


def test_who_remains_keeps_its_place() -> None:
    assert remaining(nodes("312"), live("123")) == nodes("312")
    assert remaining(nodes("312"), live("23")) == nodes("32")


# ---------------------------------------------------------------------- elections that somebody asks for


@pytest.mark.parametrize(
    ("leader", "isr", "there", "expected"),
    [
        (2, "12", "123", State(NodeId(1), 6, nodes("12"))),
        (-1, "12", "123", State(NodeId(1), 6, nodes("12"))),
        (-1, "12", "23", State(NodeId(2), 6, nodes("2"))),  # not the preferred one, but one
        (1, "12", "123", Error.ELECTION_NOT_NEEDED),
        (2, "23", "123", Error.PREFERRED_LEADER_NOT_AVAILABLE),  # not in sync
        (2, "12", "23", Error.PREFERRED_LEADER_NOT_AVAILABLE),  # not there
        (2, "12", "23/1", Error.PREFERRED_LEADER_NOT_AVAILABLE),
        (-1, "1", "23", Error.PREFERRED_LEADER_NOT_AVAILABLE),
    ],
)
def test_preferred_elections(leader: int, isr: str, there: str, expected: State | Error) -> None:
    info = partition("123", leader, isr)
    if isinstance(expected, State):
        assert elect_preferred(info, live(there)) == expected
    else:
        with pytest.raises(Refused) as refusal:
            elect_preferred(info, live(there))
        assert (refusal.value.error, bool(refusal.value.message)) == (expected, True)


@pytest.mark.parametrize(
    ("leader", "isr", "there", "expected"),
    [
        (-1, "1", "23", State(NodeId(2), 6, nodes("2"))),
        (-1, "", "3", State(NodeId(3), 6, nodes("3"))),
        (-1, "1", "123", State(NodeId(1), 6, nodes("1"))),  # one in sync is there after all
        (1, "1", "123", Error.ELECTION_NOT_NEEDED),
        (-1, "1", "", Error.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_unclean_elections(leader: int, isr: str, there: str, expected: State | Error) -> None:
    info = partition("123", leader, isr)
    if isinstance(expected, State):
        assert elect_uncleanly(info, live(there)) == expected
    else:
        with pytest.raises(Refused) as refusal:
            elect_uncleanly(info, live(there))
        assert (refusal.value.error, bool(refusal.value.message)) == (expected, True)


@given(situations())
def test_only_one_in_sync_and_able_is_preferred(situation: tuple[PartitionInfo, Live]) -> None:
    info, there = situation
    state = preferred_state(info, there)
    first = info.replicas[0]
    assert (state is not None) == (first in info.isr and first in there.able and info.leader != first)
    assert state is None or state == State(first, 4, info.isr)
