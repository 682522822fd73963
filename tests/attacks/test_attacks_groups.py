"""Hostile members of classic groups: an error code or bounded work, and other groups go on."""

import logging
from collections.abc import Iterator
from time import monotonic
from typing import TypeVar
from uuid import uuid4

import pytest

from attacks import group_requests
from attacks.arena import MIB, create_topic
from attacks.group_requests import (
    COME_AT_ONCE,
    INT_MAX,
    beat,
    commit,
    consume,
    consumer_request,
    enter,
    honest_members,
    join,
    join_request,
    leave,
    sync,
    sync_request,
)
from cordwood.errors import Error
from cordwood.wire.client_frame import read_response
from cordwood.wire.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupResponse,
    LeaveGroupRequestMember,
    ListGroupsRequest,
    ListGroupsResponse,
    SyncGroupResponse,
)
from support.process import BrokerProcess
from support.raw import RawClient, crowd, encoded
from support.waiting import eventually

R = TypeVar("R")

ARENA_SETTINGS = group_requests.SETTINGS


@pytest.fixture(autouse=True)
def _honest(broker: BrokerProcess) -> Iterator[None]:
    with honest_members(broker, f"honest {uuid4()}"):
        yield


# ---------------------------------------------------------------------- timeouts


@pytest.mark.parametrize("rebalance_ms", [0, -(2**31)])
def test_a_static_member_without_patience_leaves_the_broker_time_for_others(
    client: RawClient, broker: BrokerProcess, topic: str, rebalance_ms: int
) -> None:
    """The only one who is awaited is static, does not come, and its time to come is none: again and again."""
    enter(client, topic, instance="a")
    returned = join(client, join_request(topic, instance="a", rebalance_ms=rebalance_ms), version=5)
    assert returned.error_code == Error.NONE
    member_id = join(client, join_request(topic), version=4).member_id
    with RawClient(broker.bootstrap) as other:
        other.send(join_request(topic, member_id, rebalance_ms=10_000), version=4)
        eventually(lambda: _state(client, topic) == "PreparingRebalance", what="the join")
        leave(client, topic, LeaveGroupRequestMember(member_id=member_id))
        cpu_s = broker.cpu_s
        assert received(other, JoinGroupResponse, 4).error_code == Error.UNKNOWN_MEMBER_ID
        until_s = monotonic() + 0.4
        eventually(lambda: monotonic() > until_s and _state(client, topic), what="the member's time, often enough")
    assert broker.cpu_s - cpu_s < 1.0


@pytest.mark.parametrize("number", [-(2**31), -1, 0, INT_MAX])
def test_session_timeouts_out_of_bounds_are_refused(client: RawClient, topic: str, number: int) -> None:
    for version in (0, 3, 9):
        answer = join(client, join_request(topic, session_ms=number), version=version)
        assert answer.error_code == Error.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("number", [-(2**31), -1, 0, INT_MAX])
def test_rebalance_timeouts_beyond_all_bounds_get_an_answer(client: RawClient, topic: str, number: int) -> None:
    assert join(client, join_request(topic, rebalance_ms=number)).error_code == Error.NONE
    assert beat(client, topic, "nobody", 1) == Error.UNKNOWN_MEMBER_ID


# ---------------------------------------------------------------------- names

NAMES = ["\0", "\n", "a/../b", "/", "\U0001f600" * 8191, "\u0645\u062c", "\u2028", "x" * 32_767, "\x1b[2J", " ", "."]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name[:6]))
def test_every_name_is_a_group(client: RawClient, broker: BrokerProcess, name: str, topic: str) -> None:
    """Group, instance, client, protocol and member in any script and length: served, or refused with a code."""
    create_topic(client, topic)
    client.send(join_request(name, instance=name, protocols={name: b"x"}, reason=name), version=9, client_id=name)
    joined = received(client, JoinGroupResponse, 9)
    assert joined.error_code == Error.NONE
    request = sync_request(name, joined.member_id, joined.generation_id, {name: b"", joined.member_id: b"mine"})
    assert sync(client, request).assignment == b"mine"
    member_id, generation = joined.member_id, joined.generation_id
    (error,) = commit(client, name, topic, member_id=member_id, generation=generation, metadata=name[:4000])
    assert error in (Error.NONE, Error.OFFSET_METADATA_TOO_LARGE)
    assert name in {group.group_id for group in client.ask(ListGroupsRequest(), ListGroupsResponse).groups}
    described = client.ask(DescribeGroupsRequest(groups=[name]), DescribeGroupsResponse).groups[0]
    assert described.members[0].group_instance_id == name
    leave(client, name, LeaveGroupRequestMember(group_instance_id=name, reason=name))
    consumed = consume(client, consumer_request(name, name, instance=name))
    assert consumed.error_code == (Error.NONE if name.strip("".join(map(chr, range(33)))) else Error.INVALID_REQUEST)
    assert consume(client, consumer_request(name, name, -1, instance=name)).error_code in (0, Error.INVALID_REQUEST)
    answer = client.ask(DeleteGroupsRequest(groups_names=[name]), DeleteGroupsResponse)
    assert answer.results[0].error_code == Error.NONE


def test_no_member_forges_a_log_line(client: RawClient, broker: BrokerProcess, topic: str) -> None:
    forged = f"{topic}\n2026-01-01 00:00:00,000 FORGED by them"
    client.send(
        join_request(forged, protocols={forged: b""}, reason=forged, session_ms=50), version=3, client_id=forged
    )
    received(client, JoinGroupResponse, 3)
    assert broker.says("was not heard of")
    client.send(consumer_request(f"{forged} 2", forged, instance=forged), client_id=forged)
    client.receive_frame()
    leave(client, forged, LeaveGroupRequestMember(member_id=forged, reason=forged))
    assert broker.says("is empty")
    lines = list(broker.log)
    assert any("FORGED" in line for line in lines), "the group is not named at all"
    for line in lines:
        assert line.isprintable()
        assert len(line) < 2000
        assert line.split()[2] in logging.getLevelNamesMapping()


def test_long_names_cost_little(client: RawClient, broker: BrokerProcess) -> None:
    """Where a group lives depends on all letters of its name, and a request has room for millions of them."""
    names = [f"{number:03}" + "x" * 32_700 for number in range(100)]
    cpu_s = broker.cpu_s
    client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=names), FindCoordinatorResponse)
    client.ask(DescribeGroupsRequest(groups=names), DescribeGroupsResponse)
    client.ask(DeleteGroupsRequest(groups_names=names), DeleteGroupsResponse)
    assert broker.cpu_s - cpu_s < 0.6


# ---------------------------------------------------------------------- too much


@pytest.mark.parametrize("size", [MIB // 2, 2 * MIB, 8 * MIB - 5000])
def test_an_assignment_of_megabytes_is_handed_on_or_refused(
    client: RawClient, broker: BrokerProcess, topic: str, size: int
) -> None:
    """What a batch of the groups' topic cannot hold is refused, and the group must begin anew."""
    for _ in range(3):
        joined = join(client, join_request(topic))
        answer = sync(
            client, sync_request(topic, joined.member_id, joined.generation_id, {joined.member_id: bytes(size)})
        )
        if size < MIB:
            assert (answer.error_code, answer.assignment) == (Error.NONE, bytes(size))
        else:
            assert answer.error_code == Error.UNKNOWN_SERVER_ERROR
        leave(client, topic, LeaveGroupRequestMember(member_id=joined.member_id))


def test_what_a_member_says_may_be_as_large_as_a_request(client: RawClient, topic: str) -> None:
    joined = join(client, join_request(topic, protocols={"range": bytes(7 * MIB)}))
    assert joined.error_code == Error.NONE
    answer = sync(client, sync_request(topic, joined.member_id, joined.generation_id))
    assert answer.error_code == Error.UNKNOWN_SERVER_ERROR, "no batch can hold it"


def test_members_who_say_too_much_together_are_refused(broker: BrokerProcess, topic: str) -> None:
    """Each waits with its megabytes for others to join."""
    before = broker.rss_bytes
    with RawClient(broker.bootstrap) as first, crowd(broker.bootstrap, 12) as clients:
        assert join(first, join_request(topic)).error_code == Error.NONE
        for client in clients:
            client.send(join_request(topic, protocols={"range": bytes(4 * MIB)}), version=COME_AT_ONCE)
        for client in clients[4:]:
            assert received(client, JoinGroupResponse, COME_AT_ONCE).error_code == Error.GROUP_MAX_SIZE_REACHED
        assert broker.rss_bytes - before < 60 * MIB


def test_very_many_protocols_are_a_member(client: RawClient, broker: BrokerProcess, topic: str) -> None:
    protocols = {f"{number}": b"" for number in range(50_000)}
    cpu_s = broker.cpu_s
    assert join(client, join_request(topic, protocols=protocols, rebalance_ms=100)).error_code == Error.NONE
    for _ in range(2):
        joined = join(client, join_request(topic, protocols={"49999": b""}, rebalance_ms=100))
        assert joined.protocol_name == "49999"
    assert broker.cpu_s - cpu_s < 2.0


def test_a_flood_of_given_ids_is_bounded(client: RawClient, broker: BrokerProcess, topic: str) -> None:
    """Nobody comes back with one."""
    before = broker.rss_bytes
    frame = encoded(join_request(topic, session_ms=1_800_000), version=9, client_id="x" * 30_000)
    for _ in range(40):
        client.send_bytes(frame * 50)
        for _ in range(50):
            assert received(client, JoinGroupResponse, 9).error_code == Error.MEMBER_ID_REQUIRED
    assert broker.rss_bytes - before < 30 * MIB


def test_thousands_of_members_at_once_get_their_generation(broker: BrokerProcess, topic: str) -> None:
    """All of them on a few connections, which is enough to be in a group many times."""
    total, cpu_s = 2000, broker.cpu_s
    frame = encoded(join_request(topic, rebalance_ms=300), version=COME_AT_ONCE)
    with crowd(broker.bootstrap, 20) as clients:
        for client in clients:
            client.send_bytes(frame * (total // len(clients)))
        members = {received(client, JoinGroupResponse, COME_AT_ONCE).member_id for client in clients}
        assert len(members) == len(clients)
    assert broker.cpu_s - cpu_s < 4.0


def test_a_leader_that_asks_again_and_never_reads_is_not_answered_for_ever(broker: BrokerProcess, topic: str) -> None:
    """Each answer has what all members say, and costs the leader some hundred bytes."""
    with crowd(broker.bootstrap, 2) as (client, other), crowd(broker.bootstrap, 5) as deaf:
        leader = enter(client, topic)
        other.send(join_request(topic, protocols={"range": bytes(4 * MIB)}), version=COME_AT_ONCE)
        eventually(lambda: beat(client, topic, leader.member_id, 1) == Error.REBALANCE_IN_PROGRESS, what="the other")
        request = join_request(topic, leader.member_id)
        assert len(join(client, request).members) == 2
        before = broker.rss_bytes
        for each in deaf:
            each.send_bytes(encoded(request, version=COME_AT_ONCE) * 200)
        assert len(join(client, request).members) == 2
        assert broker.rss_bytes - before < 60 * MIB


def test_joins_of_clients_who_are_gone_are_forgotten(broker: BrokerProcess, topic: str) -> None:
    with RawClient(broker.bootstrap) as client:
        first = enter(client, topic, rebalance_ms=500)
        for _ in range(5):
            with crowd(broker.bootstrap, 20) as clients:
                for other in clients:
                    other.send(join_request(topic, rebalance_ms=500, session_ms=1000), version=COME_AT_ONCE)
        eventually(lambda: beat(client, topic, first.member_id, 1) == Error.REBALANCE_IN_PROGRESS, what="the others")
        joined = join(client, join_request(topic, first.member_id, rebalance_ms=500, session_ms=1000))
        assert joined.error_code == Error.NONE


# ---------------------------------------------------------------------- who one is not


def test_nobody_acts_for_another_member_without_its_generation(client: RawClient, topic: str) -> None:
    member = enter(client, topic).member_id
    for generation in (-(2**31), -1, 0, 2, INT_MAX):
        assert beat(client, topic, member, generation) == Error.ILLEGAL_GENERATION
        assert sync(client, sync_request(topic, member, generation)).error_code == Error.ILLEGAL_GENERATION
    assert beat(client, topic, "stranger", 1) == Error.UNKNOWN_MEMBER_ID
    assert sync(client, sync_request(topic, "stranger", 1, {member: b"mine now"})).error_code == Error.UNKNOWN_MEMBER_ID
    left = leave(client, topic, *[LeaveGroupRequestMember(member_id="stranger")] * 50_000).members
    assert {each.error_code for each in left} == {Error.UNKNOWN_MEMBER_ID}
    assert join(client, join_request(topic, "stranger")).error_code == Error.UNKNOWN_MEMBER_ID
    assert beat(client, topic, member, 1) == Error.NONE


def test_only_the_leader_assigns_and_only_to_members(client: RawClient, broker: BrokerProcess, topic: str) -> None:
    with RawClient(broker.bootstrap) as other:
        leader = enter(client, topic)
        other.send(join_request(topic), version=COME_AT_ONCE)
        eventually(lambda: beat(client, topic, leader.member_id, 1) == Error.REBALANCE_IN_PROGRESS, what="the other")
        join(client, join_request(topic, leader.member_id))
        follower = received(other, JoinGroupResponse, COME_AT_ONCE)
        forged = {leader.member_id: b"nothing", follower.member_id: b"everything", "stranger": b"x"}
        other.send(sync_request(topic, follower.member_id, 2, forged), version=4)
        given = {leader.member_id: b"all", "stranger": bytes(MIB), **{f"nobody-{n}": b"x" for n in range(1000)}}
        assert sync(client, sync_request(topic, leader.member_id, 2, given)).assignment == b"all"
        assert received(other, SyncGroupResponse, 4).assignment == b""


def received(client: RawClient, answer: type[R], version: int) -> R:
    """The answer to a request that was sent."""
    return read_response(answer, version, memoryview(client.receive_frame()))


def _state(client: RawClient, group: str) -> str:
    return client.ask(DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse).groups[0].group_state
