"""Moves of partitions: from some replicas to others, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_core.cluster_tables import live, nodes, topic_of
from cordwood.cluster.image import PartitionInfo
from cordwood.cluster.layout import Assignment
from cordwood.cluster.reassignment import Move, cancel, check_number, completed, move
from cordwood.cluster.states import State, state_of
from cordwood.errors import Error, Refused
from cordwood.ids import NodeId

ALL = frozenset(nodes("12345"))
HERE = live("12345")


def at(replicas: str, adding: str = "", removing: str = "", *, leader: int = 1, isr: str = "123") -> PartitionInfo:
    return PartitionInfo(0, nodes(replicas), NodeId(leader), 7, nodes(isr), nodes(adding), nodes(removing))


def to(replicas: str, adding: str = "", removing: str = "") -> Assignment:
    return Assignment(nodes(replicas), nodes(adding), nodes(removing))


@pytest.mark.parametrize(
    ("info", "target", "expected"),
    [
        (at("123"), "124", to("1243", "4", "3")),
        (at("123"), "456", None),
        (at("123"), "321", to("321")),  # another order is nothing to wait for
        (at("123"), "1234", to("1234", "4")),
        (at("123", isr="1"), "12", to("123", "", "3")),  # waits for 2
        (at("1243", "4", "3"), "123", to("1234", "4", "4")),  # 4 was wanted, and is not any more
        (at("1243", "4", "3"), "125", to("12534", "45", "34")),
        (at("12534", "45", "34"), "124", to("12435", "45", "35")),
    ],
)
def test_a_move_has_both_ends(info: PartitionInfo, target: str, expected: Assignment | None) -> None:
    if expected is None:
        with pytest.raises(Refused) as refusal:
            move(info, nodes(target), ALL, HERE)
        assert refusal.value.error == Error.INVALID_REPLICA_ASSIGNMENT
    elif expected.removing == expected.adding == nodes("4"):
        assert move(info, nodes(target), ALL, HERE) == Move(to("123"), State(NodeId(1), 8, nodes("123")))
    else:
        assert move(info, nodes(target), ALL, HERE) == Move(expected)


def test_nothing_comes_of_a_wish_that_is_fulfilled() -> None:
    assert move(at("123"), nodes("123"), ALL, HERE) is None
    assert move(at("1243", "4", "3"), nodes("124"), ALL, HERE) is None


@pytest.mark.parametrize("target", ["", "11", "19"])
def test_a_target_must_make_sense(target: str) -> None:
    with pytest.raises(Refused) as refusal:
        move(at("123"), nodes(target), ALL, HERE)
    assert refusal.value.error == Error.INVALID_REPLICA_ASSIGNMENT
    assert refusal.value.message


def test_the_number_of_replicas_may_have_to_stay() -> None:
    check_number(at("1243", "4", "3"), nodes("125"))
    with pytest.raises(Refused) as refusal:
        check_number(at("1243", "4", "3"), nodes("1234"))
    assert refusal.value.error == Error.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(
    ("info", "there", "expected"),
    [
        (at("1243", "4", "3", isr="123"), "12345", None),
        (at("1243", "4", "3", isr="124"), "12345", Move(to("124"), State(NodeId(1), 8, nodes("124")))),
        (at("1243", "4", "3", isr="3142"), "12345", Move(to("124"), State(NodeId(1), 8, nodes("142")))),
        (at("1243", "4", "3", isr="14"), "12345", None),  # 2 is not in sync
        (at("231", "", "1", isr="123"), "12345", Move(to("23"), State(NodeId(2), 8, nodes("23")))),  # the leader goes
        (at("231", "", "1", isr="123"), "145/23", Move(to("23"), State(NodeId(2), 8, nodes("23")))),
        (at("123", isr="123"), "12345", None),  # it does not move
    ],
)
def test_a_move_ends_when_all_that_stay_are_in_sync(info: PartitionInfo, there: str, expected: Move | None) -> None:
    assert completed(info.assignment, state_of(info), live(there)) == expected


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        (at("1243", "4", "3"), Move(to("123"), State(NodeId(1), 8, nodes("123")))),
        (at("1243", "4", "3", leader=4, isr="41"), Move(to("123"), State(NodeId(1), 8, nodes("1")))),
        (at("4123", "4", isr="1234"), Move(to("123"), State(NodeId(1), 8, nodes("123")))),
        (at("12534", "45", "34"), Move(to("123"), State(NodeId(1), 8, nodes("123")))),
        (at("123"), Error.NO_REASSIGNMENT_IN_PROGRESS),
        (at("1243", "4", "3", leader=4, isr="4"), Error.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_move_is_called_off(info: PartitionInfo, expected: Move | Error) -> None:
    if isinstance(expected, Move):
        assert cancel(topic_of(info), info, HERE, lambda _: False) == expected
    else:
        with pytest.raises(Refused) as refusal:
            cancel(topic_of(info), info, HERE, lambda _: False)
        assert refusal.value.error == expected


def test_a_topic_may_allow_to_go_back_at_a_loss() -> None:
    info = at("1243", "4", "3", leader=4, isr="4")
    assert cancel(topic_of(info), info, HERE, lambda _: True) == Move(to("123"), State(NodeId(1), 8, nodes("1")))


targets = st.lists(st.integers(1, 5).map(NodeId), min_size=1, max_size=5, unique=True)


@given(targets, st.lists(targets, min_size=1, max_size=4))
def test_both_ends_are_known_however_often_the_aim_changes(first: list[NodeId], aims: list[list[NodeId]]) -> None:
    info = PartitionInfo(0, tuple(first), NodeId(first[0]), 0, (first[0],))
    for aim in aims:
        planned = move(info, aim, ALL, HERE)
        if planned is not None and planned.state is not None:
            assert planned.assignment == Assignment(tuple(aim))
            return
        if planned is not None:
            info.replicas, info.adding, info.removing = planned.assignment
        assert [n for n in info.replicas if n not in info.removing] == list(aim)
        assert {n for n in info.replicas if n not in info.adding} == set(first)
        assert len(set(info.replicas)) == len(info.replicas)
