"""Groups through the broker: finding the coordinator, loading, both kinds of joins, ends of shards."""

import pytest

from broker.harness import Client, Harness
from cordwood.broker.coordinators import LOAD_AGAIN_MS, TOPIC, partition_for
from cordwood.errors import Error
from cordwood.ports import Set
from cordwood.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    CreatePartitionsRequest,
    CreatePartitionsRequestTopic,
    CreatePartitionsResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    DeleteTopicsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestConfig,
    IncrementalAlterConfigsRequestResource,
    IncrementalAlterConfigsResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestGroupTopic,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)


def harness(**settings: object) -> Harness:
    settings = {"offsets_topic_num_partitions": 3, "group_initial_rebalance_delay_ms": 0, **settings}
    return Harness(None, None, **settings)


def find(client: Client, group: str, version: int = 4) -> FindCoordinatorResponse:
    if version >= 4:
        return client.ask(FindCoordinatorRequest(coordinator_keys=[group]), version, FindCoordinatorResponse)
    return client.ask(FindCoordinatorRequest(key=group), version, FindCoordinatorResponse)


def commit(client: Client, group: str, offset: int, topic: str = "t") -> int:
    request = OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(name=topic, partitions=[OffsetCommitRequestPartition(committed_offset=offset)])
        ],
    )
    (answered,) = client.ask(request, 8, OffsetCommitResponse).topics
    return answered.partitions[0].error_code


def committed(client: Client, group: str, topic: str = "t") -> tuple[int, int]:
    wanted = OffsetFetchRequestGroup(
        group_id=group, topics=[OffsetFetchRequestGroupTopic(name=topic, partition_indexes=[0])]
    )
    (answered,) = client.ask(OffsetFetchRequest(groups=[wanted]), 8, OffsetFetchResponse).groups
    if answered.error_code:
        return answered.error_code, -1
    return 0, answered.topics[0].partitions[0].committed_offset


def join_request(group: str, member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"x")],
    )


def test_finding_a_coordinator_brings_the_topic_into_being() -> None:
    world = harness()
    (found,) = find(world.connect(), "g").coordinators
    assert (found.key, found.error_code, found.node_id) == ("g", 0, 1)
    topic = world.broker.image.topics[TOPIC]
    assert len(topic.partitions) == 3
    assert topic.config["cleanup.policy"] == "compact"
    assert topic.internal


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_old_versions_find_one_coordinator(version: int) -> None:
    found = find(harness().connect(), "g", version)
    assert (found.error_code, found.node_id, found.port) == (0, 1, 9092)


def test_two_who_ask_at_once_make_one_topic() -> None:
    world = harness()
    world.hold_metadata = True
    one, two = world.connect(), world.connect()
    for client in (one, two):
        client.send(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    world.release()
    assert [client.take(FindCoordinatorResponse).coordinators[0].error_code for client in (one, two)] == [0, 0]


@pytest.mark.parametrize(
    ("group", "partition"), [("", 0), ("g", 103 % 50), ("test-group", 12), ("gruppe-ü", 22), ("emoji-😀", 6)]
)
def test_a_group_belongs_to_the_partition_that_java_would_give_it(group: str, partition: int) -> None:
    assert partition_for(group, 50) == partition


def test_offsets_survive_a_clean_stop_and_a_kill() -> None:
    world = harness()
    world.topic("t")
    client = world.connect()
    find(client, "g")
    assert commit(client, "g", 5) == 0
    world.stop()
    world.start()
    client = world.connect()
    assert committed(client, "g") == (0, 5)
    assert commit(client, "g", 7) == 0
    world.kill()
    world.start()
    assert committed(world.connect(), "g") == (0, 7)


def test_without_the_topic_nobody_coordinates() -> None:
    world = harness()
    world.topic("t")
    assert commit(world.connect(), "g", 5) == Error.NOT_COORDINATOR


def _many_groups(world: Harness) -> None:
    world.topic("t")
    client = world.connect()
    find(client, "g")
    for number in range(150):
        assert commit(client, f"group-{number}-{'x' * 2000}", number) == 0
    assert commit(client, "g", 5) == 0


def test_while_it_is_loaded_a_group_is_not_served_and_its_members_are_alive() -> None:
    world = harness(offsets_topic_num_partitions=1)
    _many_groups(world)
    world.stop()
    world.start()
    client = world.connect()
    assert committed(client, "g") == (Error.COORDINATOR_LOAD_IN_PROGRESS, -1)
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="somebody")
    assert client.ask(beat, 4, HeartbeatResponse).error_code == Error.NONE
    world.advance(1000)
    assert committed(client, "g") == (0, 5)
    assert client.ask(beat, 4, HeartbeatResponse).error_code == Error.UNKNOWN_MEMBER_ID


def test_a_broker_that_stops_while_it_loads_loses_nothing() -> None:
    world = harness(offsets_topic_num_partitions=1)
    _many_groups(world)
    world.stop()
    world.start()
    world.stop()
    world.start()
    world.advance(1000)
    assert committed(world.connect(), "g") == (0, 5)


def _break_files(world: Harness) -> None:
    """No file that is open can be read, nor its invariants be looked at."""
    world.checking = False
    world.disk.life += 1


def _mend_files(world: Harness) -> None:
    world.disk.life -= 1
    world.checking = True


def test_groups_that_could_not_be_loaded_are_loaded_later() -> None:
    world = harness(offsets_topic_num_partitions=1)
    _many_groups(world)
    world.stop()
    world.start()
    client = world.connect()
    assert committed(client, "g") == (Error.COORDINATOR_LOAD_IN_PROGRESS, -1)
    _break_files(world)
    world.advance(1000)
    assert committed(client, "g") == (Error.NOT_COORDINATOR, -1)
    assert find(client, "g").coordinators[0].error_code == 0, "nobody else could do it"
    world.advance(LOAD_AGAIN_MS)
    assert committed(client, "g") == (Error.NOT_COORDINATOR, -1)
    _mend_files(world)
    world.advance(LOAD_AGAIN_MS + 1000)
    assert committed(client, "g") == (0, 5)
    assert commit(client, "g", 6) == 0


def test_a_shard_that_waits_to_be_loaded_again_may_end() -> None:
    world = harness(offsets_topic_num_partitions=1)
    _many_groups(world)
    world.stop()
    world.start()
    _break_files(world)
    world.advance(1000)
    _mend_files(world)
    request = DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name=TOPIC)])
    assert world.connect().ask(request, 6, DeleteTopicsResponse).responses[0].error_code == 0
    world.advance(2 * LOAD_AGAIN_MS)
    assert committed(world.connect(), "g") == (Error.NOT_COORDINATOR, -1)


def test_a_parked_join_hears_when_its_shard_is_over() -> None:
    world = harness(group_initial_rebalance_delay_ms=3000)
    client = world.connect()
    find(client, "g")
    client.send(join_request("g"), 3)
    assert not client.inbox
    request = DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name=TOPIC)])
    assert world.connect().ask(request, 6, DeleteTopicsResponse).responses[0].error_code == 0
    assert client.take(JoinGroupResponse).error_code == Error.NOT_COORDINATOR
    assert commit(client, "g", 1, topic=TOPIC) in (Error.NOT_COORDINATOR, Error.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_member_that_does_not_ask_for_its_assignment_is_missed() -> None:
    """The clock of the broker wakes the group; nobody has to ask."""
    world = harness(group_initial_rebalance_delay_ms=1000)
    leader, late = world.connect(), world.connect()
    find(leader, "g")
    for client in (leader, late):
        client.send(join_request("g"), 3)
    world.advance(2000)
    joined, other = (client.take(JoinGroupResponse) for client in (leader, late))
    assert (joined.generation_id, other.generation_id, joined.leader) == (1, 1, joined.member_id)
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id)
    assert leader.ask(sync, 3, SyncGroupResponse).error_code == Error.NONE
    beats = [HeartbeatRequest(group_id="g", generation_id=1, member_id=one.member_id) for one in (joined, other)]
    errors = []
    for _ in range(3):
        world.advance(4000)
        errors.append([leader.ask(beat, 3, HeartbeatResponse).error_code for beat in beats])
    assert errors == [[0, 0], [0, 0], [Error.REBALANCE_IN_PROGRESS, Error.UNKNOWN_MEMBER_ID]]


def away(world: Harness, ms: int) -> None:
    """The broker does nothing for a while, as one that is stopped, or has no processor, and then looks at its clock."""
    world._pass(ms)
    world.execute(world.broker.tick(world.now))


def test_a_broker_that_was_away_hears_its_members_before_it_misses_them() -> None:
    world = harness()
    spoke, silent = world.connect(), world.connect()
    find(spoke, "g")
    members = []
    for client, group in ((spoke, "g"), (silent, "h")):
        client.send(join_request(group), 3)
        world.advance(10)
        members.append(client.take(JoinGroupResponse).member_id)
        sync = SyncGroupRequest(group_id=group, generation_id=1, member_id=members[-1])
        assert client.ask(sync, 3, SyncGroupResponse).error_code == Error.NONE
    beats = [
        HeartbeatRequest(group_id=group, generation_id=1, member_id=member)
        for group, member in zip("gh", members, strict=True)
    ]
    away(world, 15_000)
    assert spoke.ask(beats[0], 3, HeartbeatResponse).error_code == Error.NONE, "it lay in the socket all the time"
    world.advance(9_000)
    assert spoke.ask(beats[0], 3, HeartbeatResponse).error_code == Error.NONE
    assert silent.ask(beats[1], 3, HeartbeatResponse).error_code == Error.UNKNOWN_MEMBER_ID


def test_a_broker_that_is_late_all_the_time_misses_silent_members_all_the_same() -> None:
    world = harness()
    client = world.connect()
    find(client, "g")
    client.send(join_request("g"), 3)
    world.advance(10)
    member_id = client.take(JoinGroupResponse).member_id
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id)
    assert client.ask(sync, 3, SyncGroupResponse).error_code == Error.NONE
    for _ in range(5):
        away(world, 5_000)
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
    assert client.ask(beat, 3, HeartbeatResponse).error_code == Error.UNKNOWN_MEMBER_ID


def test_a_classic_member_joins_an_empty_consumer_group_which_becomes_classic() -> None:
    world = harness()
    world.topic("t")
    client = world.connect()
    find(client, "g")
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert client.ask(beat, 1, ConsumerGroupHeartbeatResponse).error_code == 0
    leaving = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1)
    assert client.ask(leaving, 1, ConsumerGroupHeartbeatResponse).error_code == 0
    refused = client.ask(join_request("g", member_id="made-up"), 4, JoinGroupResponse)
    assert refused.error_code == Error.UNKNOWN_MEMBER_ID
    world.stop()
    world.start()
    client = world.connect()
    client.send(join_request("g"), 3)
    world.advance(10)
    joined = client.take(JoinGroupResponse)
    assert (joined.error_code, joined.generation_id) == (0, 1)
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id)
    assert client.ask(sync, 3, SyncGroupResponse).error_code == 0
    world.stop()
    world.start()
    beating = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id)
    assert world.connect().ask(beating, 4, HeartbeatResponse).error_code == 0


def test_small_segments_of_the_offsets_topic_are_as_small_as_a_topic_may_have() -> None:
    world = harness(offsets_topic_segment_bytes=1000)
    assert find(world.connect(), "g").coordinators[0].error_code == 0
    world.stop()
    world.start()
    assert world.partition(TOPIC).log.config.segment_bytes == 1 << 20


def test_a_stored_setting_that_is_not_good_is_left_out_and_named() -> None:
    world = harness()
    world.topic("t", retention_ms=5000)
    world.stop()
    world.store.multi(
        [Set("/config/topics/t", b'{"version": 1, "config": {"segment.bytes": "7", "retention.ms": "9"}}')]
    )
    world.start()
    config = world.partition("t").log.config
    assert (config.segment_bytes, config.retention_ms) == (1 << 30, 9)
    assert "a setting of t is left out: segment.bytes is 7" in world.logger


def test_the_offsets_topic_does_not_grow() -> None:
    world = harness()
    client = world.connect()
    find(client, "g")
    request = CreatePartitionsRequest(topics=[CreatePartitionsRequestTopic(name=TOPIC, count=7)])
    (answer,) = client.ask(request, 3, CreatePartitionsResponse).results
    assert (answer.error_code, len(world.broker.image.topics[TOPIC].partitions)) == (Error.INVALID_REQUEST, 3)


def _delete(world: Harness, name: str) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name=name)])
    assert world.connect().ask(request, 6, DeleteTopicsResponse).responses[0].error_code == 0


@pytest.mark.parametrize("killed", [True, False])
def test_offsets_of_a_topic_are_not_those_of_its_successor_made_while_they_load(killed: bool) -> None:
    world = harness(offsets_topic_num_partitions=1, log_segment_delete_delay_ms=0)
    _many_groups(world)
    world.topic("other")
    assert commit(world.connect(), "g", 5, topic="other") == 0
    if killed:
        _delete(world, "other")
        world.kill()
        world.start()
    else:
        world.stop()
        world.start()
        _delete(world, "other")
    world.topic("other")
    world.advance(60_000)
    assert committed(world.connect(), "g", topic="other") == (0, -1)
    assert committed(world.connect(), "g") == (0, 5)


def test_offsets_are_the_same_after_their_topic_was_compacted() -> None:
    world = harness(offsets_topic_num_partitions=1, log_roll_ms=1000, log_cleaner_backoff_ms=100)
    world.topic("t", 2)
    client = world.connect()
    find(client, "g")
    for number in range(300):
        assert commit(client, f"group-{number % 7}", number) == 0
        world.advance(50)
    world.advance(60_000)
    assert "__consumer_offsets-0 is compacted" in world.logger
    assert world.partition(TOPIC).log.size < 200 * 100
    world.kill()
    world.start()
    world.advance(1000)
    client = world.connect()
    newest = {f"group-{number % 7}": (0, number) for number in range(300)}
    assert {group: committed(client, group) for group in newest} == newest


def test_a_commit_waits_for_the_disk_where_the_topic_says_so() -> None:
    world = harness(log_flush_interval_messages=1)
    world.topic("t")
    client = world.connect()
    find(client, "g")
    world.hold_syncs = True
    topic = OffsetCommitRequestTopic(name="t", partitions=[OffsetCommitRequestPartition(committed_offset=3)])
    client.send(OffsetCommitRequest(group_id="g", topics=[topic]), 8)
    assert not client.inbox
    world.release()
    assert client.take(OffsetCommitResponse).topics[0].partitions[0].error_code == 0


def test_a_commit_does_not_wait_longer_than_its_timeout() -> None:
    world = harness(log_flush_interval_messages=1, offsets_commit_timeout_ms=700)
    world.topic("t")
    client, reader = world.connect(), world.connect()
    find(client, "g")
    world.hold_syncs = True
    topic = OffsetCommitRequestTopic(name="t", partitions=[OffsetCommitRequestPartition(committed_offset=3)])
    client.send(OffsetCommitRequest(group_id="g", topics=[topic]), 8)
    wanted = OffsetFetchRequestGroup(group_id="g", topics=None)
    reader.send(OffsetFetchRequest(groups=[wanted]), 8)
    world.advance(699)
    assert not client.inbox
    assert not reader.inbox
    world.advance(1)
    error = client.take(OffsetCommitResponse).topics[0].partitions[0].error_code
    assert error == Error.COORDINATOR_NOT_AVAILABLE
    assert reader.take(OffsetFetchResponse).groups[0].error_code == Error.NOT_COORDINATOR
    world.release()
    assert not client.inbox
    assert committed(reader, "g") == (0, 3), "it was only late"


def test_a_group_with_more_offsets_than_fit_into_a_batch_is_deleted() -> None:
    world = harness(offsets_topic_num_partitions=1)
    world.topic("t", 300)
    client = world.connect()
    find(client, "g")
    partitions = [OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in range(300)]
    for first in range(0, 300, 10):
        topic = OffsetCommitRequestTopic(name="t", partitions=partitions[first : first + 10])
        (answered,) = client.ask(OffsetCommitRequest(group_id="g", topics=[topic]), 8, OffsetCommitResponse).topics
        assert {each.error_code for each in answered.partitions} == {0}
    _set_batch_bytes(client, 2000)
    assert client.ask(DeleteGroupsRequest(groups_names=["g"]), 2, DeleteGroupsResponse).results[0].error_code == 0
    gone = client.ask(DeleteGroupsRequest(groups_names=["g"]), 2, DeleteGroupsResponse).results[0]
    assert gone.error_code == Error.GROUP_ID_NOT_FOUND
    world.stop()
    world.start()
    assert committed(world.connect(), "g") == (0, -1)


def _set_batch_bytes(client: Client, limit: int) -> None:
    change = IncrementalAlterConfigsRequestConfig(name="max.message.bytes", value=str(limit))
    resource = IncrementalAlterConfigsRequestResource(resource_type=2, resource_name=TOPIC, configs=[change])
    asked = IncrementalAlterConfigsRequest(resources=[resource])
    assert client.ask(asked, 1, IncrementalAlterConfigsResponse).responses[0].error_code == 0
