"""Hostile members of consumer groups, and of groups between the two protocols."""

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from attacks import group_requests
from attacks.arena import MIB, create_topic
from attacks.group_requests import (
    INT_MAX,
    SUBSCRIPTION,
    beat,
    commit,
    consume,
    consumer_request,
    honest_members,
    join,
    join_request,
    leave,
    sync,
    sync_request,
)
from cordwood.errors import Error
from cordwood.group.consumer.patterns import PATTERNS_MAX
from cordwood.wire.client_frame import read_response
from cordwood.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequestTopic,
    ConsumerGroupHeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupRequestMember,
)
from support.process import BrokerProcess
from support.raw import RawClient, encoded
from support.waiting import eventually

VERSION = 1
ARENA_SETTINGS = group_requests.SETTINGS


@pytest.fixture(autouse=True)
def _honest(broker: BrokerProcess) -> Iterator[None]:
    with honest_members(broker, f"honest {uuid4()}"):
        yield


# ---------------------------------------------------------------------- between the protocols


@pytest.mark.parametrize("nonsense", [b"", b"\0", b"\xff\xff", b"\x7f\xff", b"\0\0\xff\xff\xff\xff"])
def test_nonsense_with_a_protocol_that_is_not_chosen_harms_nobody(
    client: RawClient, broker: BrokerProcess, topic: str, nonsense: bytes
) -> None:
    """It goes along when the group becomes a consumer group and, at its last consumer's end, a classic one again."""
    protocols = {"nonsense": nonsense, "range": SUBSCRIPTION}
    with RawClient(broker.bootstrap) as other:
        first = join(client, join_request(topic))
        other.send(join_request(topic, protocols=protocols), version=3)
        eventually(lambda: beat(client, topic, first.member_id, 1) == Error.REBALANCE_IN_PROGRESS, what="the other")
        first = join(client, join_request(topic, first.member_id))
        assert first.protocol_name == "range"
        second = read_response(JoinGroupResponse, 3, memoryview(other.receive_frame()))
        assignments = {first.member_id: b"", second.member_id: b""}
        assert sync(client, sync_request(topic, first.member_id, 2, assignments)).error_code == Error.NONE
        assert sync(other, sync_request(topic, second.member_id, 2)).error_code == Error.NONE
    joined = consume(client, consumer_request(topic, "m", names=[topic]))
    assert joined.error_code == Error.NONE
    for member in (first, second):
        answer = sync(client, sync_request(topic, member.member_id, 2))
        assert answer.error_code in (Error.NONE, Error.REBALANCE_IN_PROGRESS)
    assert consume(client, consumer_request(topic, "m", -1)).error_code == Error.NONE
    assert beat(client, topic, first.member_id, INT_MAX) in (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID)


@pytest.mark.parametrize(
    "said", [b"", b"\0", b"\0\0", b"\0\1\xff\xff\xff\xff", b"\xff\xff" + SUBSCRIPTION[2:], b"\0\0\x7f\xff\xff\xff"]
)
def test_a_classic_member_that_makes_no_sense_is_not_in_a_consumer_group(
    client: RawClient, topic: str, said: bytes
) -> None:
    consume(client, consumer_request(topic, "m"))
    answer = join(client, join_request(topic, protocols={"range": said}))
    assert answer.error_code == Error.INCONSISTENT_GROUP_PROTOCOL


def test_what_a_leader_assigns_is_not_believed(client: RawClient, topic: str) -> None:
    """Partitions that do not exist, given by the leader of a classic group that becomes a consumer group."""
    create_topic(client, topic)
    name = topic.encode()
    assignment = (
        b"\0\0" + b"\0\0\0\1" + len(name).to_bytes(2) + name + b"\0\0\0\2" + b"\x7f\xff\xff\xff\xff\xff\xff\xff"
    )
    joined = join(client, join_request(topic))
    request = sync_request(topic, joined.member_id, 1, {joined.member_id: assignment + b"\xff\xff\xff\xff"})
    assert sync(client, request).error_code == Error.NONE
    consumed = consume(client, consumer_request(topic, "m", names=[topic]))
    assert consumed.error_code == Error.NONE
    leave(client, topic, LeaveGroupRequestMember(member_id=joined.member_id))
    described = client.ask(ConsumerGroupDescribeRequest(group_ids=[topic]), ConsumerGroupDescribeResponse).groups[0]
    assert [member.member_id for member in described.members] == ["m"]


# ---------------------------------------------------------------------- heartbeats


@pytest.mark.parametrize("epoch", [-(2**31), -4, -3, -2, 1, INT_MAX])
def test_epochs_that_nobody_has_are_refused(client: RawClient, topic: str, epoch: int) -> None:
    consume(client, consumer_request(topic, "m"))
    for member in ("m", "stranger"):
        answer = consume(client, consumer_request(topic, member, epoch))
        assert answer.error_code in (
            Error.INVALID_REQUEST,
            Error.UNKNOWN_MEMBER_ID,
            Error.FENCED_MEMBER_EPOCH,
        )
    assert consume(client, consumer_request(topic + "-no-group", "m", epoch)).error_code != Error.NONE


def test_partitions_that_nobody_was_given_are_not_owned(client: RawClient, topic: str) -> None:
    create_topic(client, topic, partitions=2)
    epoch = consume(client, consumer_request(topic, "m", names=[topic])).member_epoch
    ids = [UUID(int=0), UUID(int=1), UUID(int=2**128 - 1)]
    owned = [
        ConsumerGroupHeartbeatRequestTopic(topic_id=topic_id, partitions=[0, 0, 1, -1, INT_MAX] * 10)
        for topic_id in ids * 100
    ]
    answer = consume(client, consumer_request(topic, "m", epoch, names=[topic], owned=owned))
    assert answer.error_code == Error.NONE
    assert answer.assignment is not None
    assert [sorted(each.partitions) for each in answer.assignment.topic_partitions] == [[0, 1]]


def test_another_members_id_is_enough_for_nothing_but_its_own_epoch(client: RawClient, topic: str) -> None:
    """Whoever commits, leaves or reports as another member must know what that member knows."""
    create_topic(client, topic)
    mine = consume(client, consumer_request(topic, "mine", names=[topic]))
    assert commit(client, topic, topic, member_id="mine", generation=mine.member_epoch + 5) != [Error.NONE]
    assert commit(client, topic, topic, member_id="yours", generation=mine.member_epoch) == [Error.UNKNOWN_MEMBER_ID]
    assert commit(client, topic, topic) == [Error.UNKNOWN_MEMBER_ID]
    assert consume(client, consumer_request(topic, "yours", -1)).error_code == Error.UNKNOWN_MEMBER_ID
    assert beat(client, topic, "mine", mine.member_epoch) == Error.UNKNOWN_MEMBER_ID


# ---------------------------------------------------------------------- too much


def test_a_subscription_to_very_many_names_is_refused(client: RawClient, broker: BrokerProcess, topic: str) -> None:
    """Each member wants other topics than the others: what they cost is what all of them together want."""
    errors, cpu_s = [], broker.cpu_s
    for number in range(5):
        names = [f"{number}{index}" for index in range(60_000)]
        errors.append(consume(client, consumer_request(topic, f"m{number}", names=names)).error_code)
    assert errors == [Error.NONE] + [Error.INVALID_REQUEST] * 4
    assert broker.cpu_s - cpu_s < 2.5


def test_more_patterns_than_a_group_needs_are_refused(client: RawClient, broker: BrokerProcess, topic: str) -> None:
    for number in range(20):
        create_topic(client, f"{topic[:100]}-{'ab' * 50}{number}")
    errors = []
    for number in range(PATTERNS_MAX + 3):
        pattern = f"(a|b)*a(a|b){{40}}{number}"
        answer = consume(client, consumer_request(topic, f"m{number}", names=None, pattern=pattern))
        errors.append(answer.error_code)
    assert errors == [Error.NONE] * PATTERNS_MAX + [Error.INVALID_REGULAR_EXPRESSION] * 3
    create_topic(client, f"{topic[:100]}-another")
    cpu_s = broker.cpu_s
    for _ in range(10):
        consume(client, consumer_request(topic, "m0", names=None, pattern="(a|b)*a(a|b){40}0"))
    assert broker.cpu_s - cpu_s < 1.0


@pytest.mark.parametrize(
    "pattern", ["(", "*", "\\", "(?P<x", "a{1000000}", "(a{1000}){1000}", "\0", "x" * 32_767, "[z-a]"]
)
def test_a_pattern_that_is_none_or_too_much_is_refused(client: RawClient, topic: str, pattern: str) -> None:
    answer = consume(client, consumer_request(topic, "m", names=None, pattern=pattern))
    assert answer.error_code in (Error.INVALID_REGULAR_EXPRESSION, Error.NONE)
    assert len(answer.error_message or "") < 2000


def test_thousands_of_members_at_once_fit_or_are_refused(client: RawClient, broker: BrokerProcess, topic: str) -> None:
    """They all fall silent too, at the same time."""
    consume(client, consumer_request(f"{topic}-first", "m", names=["t"]))  # the broker's first group costs more
    before, total = broker.rss_bytes, 1000
    _many(client, [consumer_request(topic, f"m{number}", names=["t"]) for number in range(total)])
    assert broker.rss_bytes - before < 30 * MIB
    described = client.ask(ConsumerGroupDescribeRequest(group_ids=[topic]), ConsumerGroupDescribeResponse).groups[0]
    assert len(described.members) == total
    leavers = [LeaveGroupRequestMember(member_id=f"m{number}") for number in range(total)]
    assert {member.error_code for member in leave(client, topic, *leavers).members} == {Error.NONE}


def _many(client: RawClient, requests: list[object]) -> list[ConsumerGroupHeartbeatResponse]:
    answers = []
    for start in range(0, len(requests), 100):
        part = requests[start : start + 100]
        client.send_bytes(b"".join(encoded(request, version=VERSION) for request in part))
        frames = [client.receive_frame() for _ in part]
        answers += [read_response(ConsumerGroupHeartbeatResponse, VERSION, memoryview(frame)) for frame in frames]
    assert {answer.error_code for answer in answers} == {Error.NONE}
    return answers
