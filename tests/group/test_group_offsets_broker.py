"""The APIs about offsets and lists of groups, asked of a whole broker: their shapes in all versions, and restarts."""

import pytest

from broker.harness import Client, Harness
from cordwood.coordinator.shard import LOAD_SLICE_BYTES
from cordwood.errors import Error
from cordwood.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    DeleteTopicsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

LOADING = Error.COORDINATOR_LOAD_IN_PROGRESS
ALL_OPERATIONS = 3400


@pytest.fixture
def harness() -> Harness:
    harness = Harness(offsets_topic_num_partitions=3)
    harness.topic("t", 4)
    ready(harness)
    return harness


def ready(harness: Harness) -> Client:
    """A client that has asked for the coordinator, so that there is one."""
    client = harness.connect()
    asked = FindCoordinatorRequest(coordinator_keys=["g"])
    assert not client.ask(asked, 4, FindCoordinatorResponse).coordinators[0].error_code
    harness.advance(100)
    return client


def commit(client: Client, group: str, *indexes: int, version: int = 9) -> list[Error]:
    partitions = [OffsetCommitRequestPartition(partition_index=index, committed_offset=5) for index in indexes]
    request = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)])
    [topic] = client.ask(request, version, OffsetCommitResponse).topics
    return [Error(partition.error_code) for partition in topic.partitions]


def offsets_of(client: Client, group: str) -> dict[tuple[str, int], int]:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    [found] = client.ask(request, 9, OffsetFetchResponse).groups
    assert not found.error_code
    return {(topic.name, p.partition_index): p.committed_offset for topic in found.topics for p in topic.partitions}


@pytest.mark.parametrize("version", range(2, 10))
def test_commits_in_all_versions(harness: Harness, version: int) -> None:
    client = harness.connect()
    assert commit(client, "g", 0, 9, version=version) == [Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert offsets_of(client, "g") == {("t", 0): 5}


@pytest.mark.parametrize("version", range(1, 8))
def test_one_groups_offsets_in_all_versions(harness: Harness, version: int) -> None:
    client = harness.connect()
    commit(client, "g", 0)
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
    response = client.ask(OffsetFetchRequest(group_id="g", topics=topics), version, OffsetFetchResponse)
    assert not response.error_code
    assert [(p.partition_index, p.committed_offset) for p in response.topics[0].partitions] == [(0, 5), (1, -1)]
    if version >= 2:
        response = client.ask(OffsetFetchRequest(group_id="g", topics=None), version, OffsetFetchResponse)
        assert [(p.partition_index, p.committed_offset) for p in response.topics[0].partitions] == [(0, 5)]


def test_offsets_of_groups_in_several_shards(harness: Harness) -> None:
    client = harness.connect()
    names = [f"group-{number}" for number in range(10)]
    for name in names[:8]:
        commit(client, name, 1)
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in names])
    groups = client.ask(request, 8, OffsetFetchResponse).groups
    assert [group.group_id for group in groups] == names
    assert [len(group.topics) for group in groups] == [1] * 8 + [0] * 2
    assert client.ask(OffsetFetchRequest(groups=[]), 8, OffsetFetchResponse).groups == []


def test_groups_are_listed_described_and_deleted(harness: Harness) -> None:
    client = harness.connect()
    names = [f"group-{number}" for number in range(10)]
    for name in names:
        commit(client, name, 1)
    listed = client.ask(ListGroupsRequest(), 5, ListGroupsResponse)
    assert sorted(group.group_id for group in listed.groups) == names
    none = client.ask(ListGroupsRequest(types_filter=["consumer"]), 5, ListGroupsResponse)
    assert (none.error_code, none.groups) == (Error.NONE, [])
    deleted = client.ask(DeleteGroupsRequest(groups_names=[*names[:9], names[0], "unknown"]), 2, DeleteGroupsResponse)
    assert [(result.group_id, result.error_code) for result in deleted.results] == [
        *((name, Error.NONE) for name in names[:9]),
        ("unknown", Error.GROUP_ID_NOT_FOUND),
    ]
    described = client.ask(DescribeGroupsRequest(groups=[names[0], names[9]]), 5, DescribeGroupsResponse)
    assert [(group.group_id, group.group_state) for group in described.groups] == [
        (names[0], "Dead"),
        (names[9], "Empty"),
    ]


def test_what_may_be_done_with_a_group_is_told_to_those_who_ask(harness: Harness) -> None:
    client = harness.connect()
    commit(client, "g", 0)
    for asked, operations in [(True, ALL_OPERATIONS), (False, -(1 << 31))]:
        request = DescribeGroupsRequest(groups=["g"], include_authorized_operations=asked)
        [group] = client.ask(request, 6, DescribeGroupsResponse).groups
        assert group.authorized_operations == operations


def test_a_classic_group_is_no_consumer_group(harness: Harness) -> None:
    client = harness.connect()
    commit(client, "g", 0)
    request = ConsumerGroupDescribeRequest(group_ids=["g", "unknown", ""])
    groups = client.ask(request, 1, ConsumerGroupDescribeResponse).groups
    assert [(group.group_id, group.error_code) for group in groups] == [
        ("g", Error.GROUP_ID_NOT_FOUND),
        ("unknown", Error.GROUP_ID_NOT_FOUND),
        ("", Error.INVALID_GROUP_ID),
    ]


def test_offsets_are_deleted(harness: Harness) -> None:
    client = harness.connect()
    commit(client, "g", 0, 1)
    topics = [OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)])]
    response = client.ask(OffsetDeleteRequest(group_id="g", topics=topics), 0, OffsetDeleteResponse)
    assert (response.error_code, response.topics[0].partitions[0].error_code) == (Error.NONE, Error.NONE)
    assert offsets_of(client, "g") == {("t", 1): 5}
    refused = client.ask(OffsetDeleteRequest(group_id="unknown", topics=topics), 0, OffsetDeleteResponse)
    assert (refused.error_code, refused.topics) == (Error.GROUP_ID_NOT_FOUND, [])


def test_offsets_survive_a_restart(harness: Harness) -> None:
    commit(harness.connect(), "g", 0, 3)
    harness.kill()
    harness.start()
    assert offsets_of(harness.connect(), "g") == {("t", 0): 5, ("t", 3): 5}


def test_offsets_go_with_their_topic(harness: Harness) -> None:
    client = harness.connect()
    commit(client, "g", 0)
    client.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name="t")]), 6, DeleteTopicsResponse)
    harness.advance(10)
    assert offsets_of(client, "g") == {}


def test_a_commit_that_is_too_large_for_a_batch_is_refused_and_others_are_served(harness: Harness) -> None:
    client = harness.connect()
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=n) for n in range(20_000)]
    request = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)])
    [topic] = client.ask(request, 9, OffsetCommitResponse).topics
    assert {partition.error_code for partition in topic.partitions} == {Error.INVALID_COMMIT_OFFSET_SIZE}
    assert commit(client, "g", 0) == [Error.NONE]


def test_while_groups_are_loaded_everyone_is_told_to_wait() -> None:
    harness = Harness(offsets_topic_num_partitions=1)
    harness.topic("t", 4)
    client = ready(harness)
    commit(client, "g", *[0] * (2 * LOAD_SLICE_BYTES // 50))
    harness.kill()
    harness.start()
    client = harness.connect()
    assert commit(client, "g", 0, 9) == [LOADING, Error.UNKNOWN_TOPIC_OR_PARTITION]
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    first = client.ask(OffsetFetchRequest(group_id="g", topics=topics), 1, OffsetFetchResponse)
    assert [(p.committed_offset, p.error_code) for p in first.topics[0].partitions] == [(-1, LOADING)]
    second = client.ask(OffsetFetchRequest(group_id="g", topics=topics), 7, OffsetFetchResponse)
    assert (second.error_code, second.topics) == (LOADING, [])
    many = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    assert [group.error_code for group in client.ask(many, 8, OffsetFetchResponse).groups] == [LOADING]
    assert client.ask(ListGroupsRequest(), 4, ListGroupsResponse).error_code == LOADING
    assert client.ask(OffsetDeleteRequest(group_id="g"), 0, OffsetDeleteResponse).error_code == LOADING
    deleted = client.ask(DeleteGroupsRequest(groups_names=["g"]), 1, DeleteGroupsResponse)
    assert [result.error_code for result in deleted.results] == [LOADING]
    described = client.ask(DescribeGroupsRequest(groups=["g"]), 5, DescribeGroupsResponse)
    assert [group.error_code for group in described.groups] == [LOADING]
    consumers = client.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 0, ConsumerGroupDescribeResponse)
    assert [group.error_code for group in consumers.groups] == [LOADING]
    harness.advance(100)
    assert offsets_of(client, "g") == {("t", 0): 5}


def test_before_anybody_had_a_group_there_is_no_coordinator() -> None:
    harness = Harness()
    harness.topic("t", 4)
    client = harness.connect()
    assert commit(client, "g", 0) == [Error.NOT_COORDINATOR]
    assert client.ask(ListGroupsRequest(), 4, ListGroupsResponse).groups == []
