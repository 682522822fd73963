"""Offsets, listings and descriptions of groups that ask for too much, or name the same thing many times."""

from collections.abc import Iterator, Mapping
from uuid import uuid4

import pytest

from attacks import group_requests
from attacks.arena import MIB, create_topic, produced
from attacks.group_requests import (
    COME_AT_ONCE,
    INT_MAX,
    commit,
    commit_request,
    committed,
    consume,
    consumer_request,
    enter,
    honest_members,
    join,
    join_request,
    leave,
)
from cordwood.errors import Error
from cordwood.wire.client_frame import read_response
from cordwood.wire.messages import (
    ConsumerGroupDescribeRequest,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    JoinGroupResponse,
    LeaveGroupRequestMember,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestGroupTopic,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from support.batches import values_batch
from support.process import BrokerProcess
from support.raw import RawClient, encoded
from support.waiting import eventually

ARENA_SETTINGS = {**group_requests.SETTINGS, "cordwood.max.groups.bytes": 30 * MIB}
NOTE = "n" * 4096


@pytest.fixture(autouse=True)
def _honest(broker: BrokerProcess) -> Iterator[None]:
    with honest_members(broker, f"honest {uuid4()}"):
        yield


# ---------------------------------------------------------------------- the same again and again


def test_a_large_group_described_thousands_of_times_takes_bounded_memory(
    client: RawClient, broker: BrokerProcess, topic: str
) -> None:
    enter(client, topic, protocols={"range": bytes(200_000)})
    before = broker.forget_peak()
    client.send(DescribeGroupsRequest(groups=[topic] * 5000))
    assert len(client.receive_frame()) < 8 * MIB
    assert broker.peak_rss_bytes - before < 60 * MIB


def test_a_consumer_group_described_thousands_of_times_takes_bounded_memory(
    client: RawClient, broker: BrokerProcess, topic: str
) -> None:
    names = [f"topic-{number}" for number in range(10_000)]
    assert consume(client, consumer_request(topic, "m", names=names)).error_code == Error.NONE
    before = broker.forget_peak()
    client.send(ConsumerGroupDescribeRequest(group_ids=[topic] * 5000))
    assert len(client.receive_frame()) < 8 * MIB
    assert broker.peak_rss_bytes - before < 60 * MIB


@pytest.mark.parametrize("way", ["groups", "all topics", "topics", "partitions", "one group"])
def test_offsets_fetched_thousands_of_times_take_bounded_memory(
    client: RawClient, broker: BrokerProcess, topic: str, way: str
) -> None:
    """An offset may have a note of 4 kB."""
    create_topic(client, topic)
    assert commit(client, topic, topic, metadata=NOTE) == [Error.NONE]
    times = 30_000

    def group(*topics: OffsetFetchRequestGroupTopic) -> OffsetFetchRequestGroup:
        return OffsetFetchRequestGroup(group_id=topic, topics=list(topics) or None)

    def named(count: int) -> OffsetFetchRequestGroupTopic:
        return OffsetFetchRequestGroupTopic(name=topic, partition_indexes=[0] * count)

    requests = {
        "groups": (OffsetFetchRequest(groups=[group(named(1))] * times), 9),
        "all topics": (OffsetFetchRequest(groups=[group()] * times), 9),
        "topics": (OffsetFetchRequest(groups=[group(*[named(1)] * times)]), 9),
        "partitions": (OffsetFetchRequest(groups=[group(named(times))]), 9),
        "one group": (
            OffsetFetchRequest(
                group_id=topic, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0] * times)]
            ),
            7,
        ),
    }
    request, version = requests[way]
    before, cpu_s = broker.forget_peak(), broker.cpu_s
    client.send(request, version=version)
    frame = client.receive_frame()
    assert frame.count(NOTE.encode()) == 1
    assert broker.cpu_s - cpu_s < 1.0
    assert broker.peak_rss_bytes - before < 60 * MIB


def test_a_group_deleted_thousands_of_times_is_deleted_once(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    commit(client, topic, topic)
    answer = client.ask(DeleteGroupsRequest(groups_names=[topic] * 50_000), DeleteGroupsResponse)
    assert [result.error_code for result in answer.results] == [Error.NONE]


# ---------------------------------------------------------------------- commits


def test_commits_to_partitions_that_are_not_there_are_refused(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(client, topic, topic, [-1, 0, 1, INT_MAX, -(2**31)]) == [unknown, Error.NONE, *[unknown] * 3]
    assert set(commit(client, topic, "nowhere", range(90_000))) == {unknown}
    assert commit(client, "", topic) == [Error.NONE]
    (found,) = committed(client, topic).topics
    assert [partition.partition_index for partition in found.partitions] == [0]


def test_more_commits_than_fit_into_a_batch_are_refused(client: RawClient, broker: BrokerProcess, topic: str) -> None:
    create_topic(client, topic)
    cpu_s = broker.cpu_s
    assert set(commit(client, topic, topic, [0] * 90_000)) == {Error.INVALID_COMMIT_OFFSET_SIZE}
    assert set(commit(client, topic, topic, [0] * 300, metadata=NOTE)) == {Error.INVALID_COMMIT_OFFSET_SIZE}
    assert broker.cpu_s - cpu_s < 1.5
    assert committed(client, topic).topics == []


def test_a_partition_committed_twice_has_the_last_offset(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    request = commit_request(topic, topic, [0, 0])
    request.topics[0].partitions[1].committed_offset = -(2**63)
    client.ask(request, OffsetCommitResponse, version=9)
    assert committed(client, topic).topics[0].partitions[0].committed_offset == -(2**63)


@pytest.mark.parametrize("note", ["n" * 4097, "\U0001f600" * 2049, "n" * 32_767])
def test_a_note_that_is_too_long_is_refused(client: RawClient, topic: str, note: str) -> None:
    create_topic(client, topic)
    assert commit(client, topic, topic, metadata=note) == [Error.OFFSET_METADATA_TOO_LARGE]


@pytest.mark.parametrize("retention_ms", [-(2**63), -2, 0, 2**63 - 1])
def test_retention_times_beyond_all_bounds_are_taken(client: RawClient, topic: str, retention_ms: int) -> None:
    create_topic(client, topic)
    request = commit_request(topic, topic)
    request.retention_time_ms = retention_ms
    answer = client.ask(request, OffsetCommitResponse, version=2)
    assert answer.topics[0].partitions[0].error_code == Error.NONE


def test_nobody_commits_for_a_member_without_its_generation(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    member = enter(client, topic)
    for generation in (-1, 0, 2, INT_MAX, -(2**31)):
        errors = commit(client, topic, topic, member_id=member.member_id, generation=generation)
        assert errors == [Error.ILLEGAL_GENERATION]
    assert commit(client, topic, topic, member_id="stranger", generation=1) == [Error.UNKNOWN_MEMBER_ID]
    assert commit(client, topic, topic) == [Error.UNKNOWN_MEMBER_ID]
    assert committed(client, topic).topics == []


def test_offsets_deleted_many_times_are_deleted_once(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    commit(client, topic, topic)
    partitions = [OffsetDeleteRequestPartition(partition_index=index % 3 - 1) for index in range(60_000)]
    request = OffsetDeleteRequest(group_id=topic, topics=[OffsetDeleteRequestTopic(name=topic, partitions=partitions)])
    answer = client.ask(request, OffsetDeleteResponse)
    errors = {partition.partition_index: partition.error_code for partition in answer.topics[0].partitions}
    assert errors == {-1: Error.UNKNOWN_TOPIC_OR_PARTITION, 0: Error.NONE, 1: Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert committed(client, topic).topics == []


# ---------------------------------------------------------------------- very many groups


def test_ten_thousand_groups_asked_for_at_once_keep_nobody_waiting(client: RawClient, broker: BrokerProcess) -> None:
    names = [f"no-such-group-{number}" for number in range(10_000)]
    cpu_s = broker.cpu_s
    groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
    assert len(client.ask(OffsetFetchRequest(groups=groups), OffsetFetchResponse, version=9).groups) == 10_000
    client.send(DescribeGroupsRequest(groups=names))
    client.receive_frame()
    assert broker.cpu_s - cpu_s < 1.5


def test_a_flood_of_groups_takes_as_much_memory_as_groups_may(
    client: RawClient, broker: BrokerProcess, topic: str
) -> None:
    """Each with one member that says much. When they have left there is room again, for as many as come and go."""
    create_topic(client, topic)
    before, members, errors = broker.rss_bytes, dict[str, str](), []
    large = {"range": bytes(100_000)}
    for number in range(0, 500, 10):
        names = [f"{topic}-{number + n}" for n in range(10)]
        requests = [join_request(name, protocols=large) for name in names]
        client.send_bytes(b"".join(encoded(request, version=COME_AT_ONCE) for request in requests))
        for name in names:
            answer = read_response(JoinGroupResponse, COME_AT_ONCE, memoryview(client.receive_frame()))
            errors.append(answer.error_code)
            if answer.error_code == Error.NONE:
                members[name] = answer.member_id
    assert set(errors[:150]) == {Error.NONE}
    assert set(errors[-100:]) == {Error.COORDINATOR_NOT_AVAILABLE}
    assert broker.rss_bytes - before < 60 * MIB
    _leave_all(client, members)
    eventually(lambda: commit(client, f"{topic}-new", topic) == [Error.NONE], what="room")
    for n in range(350):  # more than there is room for at once
        later = join_request(f"{topic}-later-{n}", protocols=large, session_ms=1)
        eventually(lambda request=later: join(client, request).error_code == Error.NONE, what="room")  # type: ignore[misc]


def test_a_flood_of_groups_with_long_names_is_bounded(client: RawClient, broker: BrokerProcess, topic: str) -> None:
    """Nobody comes back with the id that it was given. An earlier group whose time is up makes room for a few more."""
    before, members, errors = broker.rss_bytes, dict[str, str](), list[int]()
    while len(errors) < 400 or (len(errors) < 1000 and errors[-1] == Error.MEMBER_ID_REQUIRED):
        name = f"{len(errors):04}" + "x" * 30_000
        answer = join(client, join_request(name), version=9)
        errors.append(answer.error_code)
        if answer.error_code == Error.MEMBER_ID_REQUIRED:
            members[name] = answer.member_id
    assert set(errors[:50]) == {Error.MEMBER_ID_REQUIRED}
    assert errors[-1] == Error.COORDINATOR_NOT_AVAILABLE
    assert broker.rss_bytes - before < 60 * MIB
    _leave_all(client, members)
    assert _deleted(client, list(members))
    larger = join_request(topic, protocols={"range": bytes(500_000)}, session_ms=1)
    eventually(lambda: join(client, larger).error_code == Error.NONE, what="room")


def _leave_all(client: RawClient, members: Mapping[str, str]) -> None:
    for group, member_id in members.items():
        answer = leave(client, group, LeaveGroupRequestMember(member_id=member_id))
        assert [member.error_code for member in answer.members] == [Error.NONE]


def _deleted(client: RawClient, names: list[str]) -> bool:
    for start in range(0, len(names), 100):
        request = DeleteGroupsRequest(groups_names=names[start : start + 100])
        results = client.ask(request, DeleteGroupsResponse).results
        if any(result.error_code == Error.NON_EMPTY_GROUP for result in results):
            return False
    return True


@pytest.mark.parametrize("junk", ["", "\0", "x" * 32_767, "STABLE\n", "\U0001f600"])
def test_filters_of_junk_find_nothing(client: RawClient, junk: str) -> None:
    for request in (
        ListGroupsRequest(states_filter=[junk] * 100, types_filter=[]),
        ListGroupsRequest(states_filter=[], types_filter=[junk] * 100),
    ):
        assert client.ask(request, ListGroupsResponse).groups == []


# ---------------------------------------------------------------------- the groups' own topic


def test_clients_do_not_write_to_the_groups_topic(client: RawClient) -> None:
    for batch in (values_batch(b"x"), values_batch(b"")):
        assert produced(client, "__consumer_offsets", batch).error_code == Error.INVALID_TOPIC
