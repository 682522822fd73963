"""Commits that come in one turn of the loop are written together, and nobody can tell but by their speed."""

import pytest

from broker.harness import Client, Harness
from cordwood.broker.coordinators import TOPIC
from cordwood.errors import Error
from cordwood.record.batch import batches
from cordwood.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    DeleteTopicsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)


@pytest.fixture
def world() -> Harness:
    """Group g is there, with an offset in topic t; from now on the turn ends when the test says so."""
    return ready(Harness(offsets_topic_num_partitions=1, group_consumer_assignment_interval_ms=0))


def ready(world: Harness) -> Harness:
    world.topic("t", 4)
    client = world.connect()
    asked = FindCoordinatorRequest(coordinator_keys=["g"])
    assert not client.ask(asked, 4, FindCoordinatorResponse).coordinators[0].error_code
    commit(client, 0)
    world.release()
    assert take(client) == Error.NONE
    world.hold_lingers = True
    return world


def commit(client: Client, offset: int, *, group: str = "g", generation: int = -1, note: str = "") -> None:
    asked = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=note)
    client.send(
        OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            topics=[OffsetCommitRequestTopic(name="t", partitions=[asked])],
        ),
        9,
    )


def take(client: Client) -> Error:
    [topic] = client.take(OffsetCommitResponse).topics
    return Error(topic.partitions[0].error_code)


def committed(client: Client) -> list[int]:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    [found] = client.ask(request, 9, OffsetFetchResponse).groups
    return [partition.committed_offset for topic in found.topics for partition in topic.partitions]


def stored_batches(world: Harness) -> int:
    log = world.partition(TOPIC).log
    found = log.read(log.log_start_offset, 1 << 20, up_to_offset=log.end_offset)
    assert found is not None
    return len(list(batches(memoryview(found.read()))))


def test_commits_of_one_turn_are_one_batch(world: Harness) -> None:
    clients = [world.connect() for _ in range(5)]
    before = stored_batches(world)
    for number, client in enumerate(clients):
        commit(client, number)
        commit(client, 10 + number)
        assert not client.inbox
    world.release()
    assert [take(client) for client in clients for _ in range(2)] == 10 * [Error.NONE]
    assert stored_batches(world) == before + 1
    assert committed(clients[0]) == [14]


def test_a_turn_ends_once_however_much_has_come(world: Harness) -> None:
    client = world.connect()
    commit(client, 1)
    commit(client, 2)
    assert len(world.held) == 1
    world.release()
    commit(client, 3)
    assert len(world.held) == 1


def test_whoever_asks_in_the_same_turn_sees_the_commit(world: Harness) -> None:
    client, other = world.connect(), world.connect()
    commit(client, 7)
    assert not client.inbox
    assert committed(other) == [7]
    assert take(client) == Error.NONE
    commit(client, 8)
    world.release()
    assert take(client) == Error.NONE


def test_answers_keep_their_order(world: Harness) -> None:
    client = world.connect()
    commit(client, 1)
    client.send(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    commit(client, 2)
    assert not client.inbox
    world.release()
    assert [correlation_id for correlation_id, _ in client.inbox] == [1, 2, 3]
    assert take(client) == Error.NONE
    client.take(ApiVersionsResponse)
    assert take(client) == Error.NONE


def test_a_commit_that_is_refused_does_not_keep_the_others_back(world: Harness) -> None:
    good, bad = world.connect(), world.connect()
    commit(good, 1)
    commit(bad, 2, generation=5)
    assert take(bad) == Error.UNKNOWN_MEMBER_ID
    world.release()
    assert take(good) == Error.NONE
    assert committed(good) == [1]


def test_a_commit_that_makes_a_group_does_not_wait(world: Harness) -> None:
    client = world.connect()
    commit(client, 1, group="new")
    assert take(client) == Error.NONE
    commit(client, 2, group="new", generation=5)
    assert take(client) == Error.UNKNOWN_MEMBER_ID, "the group is there by now"


def test_nothing_has_changed_if_it_can_not_be_written(world: Harness) -> None:
    clients = [world.connect(), world.connect()]
    for number, client in enumerate(clients):
        commit(client, 1 + number)
    world.close_files()
    world.release()
    assert [take(client) for client in clients] == 2 * [Error.COORDINATOR_NOT_AVAILABLE]
    assert committed(clients[0]) == [0]


def test_notes_that_are_too_much_for_one_batch_are_all_stored() -> None:
    world = ready(Harness(offsets_topic_num_partitions=1, message_max_bytes=5000))
    clients = [world.connect(), world.connect(), world.connect()]
    for number, client in enumerate(clients):
        commit(client, number, note=4000 * "x")
    world.release()
    assert [take(client) for client in clients] == 3 * [Error.NONE]
    assert committed(clients[0]) == [2]


def test_a_topic_that_goes_takes_the_commits_of_the_turn_with_it(world: Harness) -> None:
    client = world.connect()
    commit(client, 5)
    gone = DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name="t")])
    world.connect().ask(gone, 6, DeleteTopicsResponse)
    assert take(client) == Error.NONE
    world.advance(10)
    assert committed(client) == []


def test_a_client_that_goes_has_committed_all_the_same(world: Harness) -> None:
    client = world.connect()
    commit(client, 5)
    client.disconnect()
    world.release()
    assert committed(world.connect()) == [5]


def test_those_who_wait_are_sent_away_when_the_coordinator_moves(world: Harness) -> None:
    client = world.connect()
    commit(client, 5)
    gone = DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name=TOPIC)])
    world.connect().ask(gone, 6, DeleteTopicsResponse)
    assert take(client) == Error.NOT_COORDINATOR
    world.release()
    assert not client.inbox


def test_a_broker_that_stops_writes_what_has_gathered(world: Harness) -> None:
    commit(world.connect(), 5)
    world.stop()
    world.hold_lingers = False
    world.start()
    world.advance(100)
    assert committed(world.connect()) == [5]


def test_without_lingering_every_commit_is_written_when_it_comes() -> None:
    world = ready(Harness(offsets_topic_num_partitions=1, group_coordinator_append_linger_ms=0))
    client = world.connect()
    before = stored_batches(world)
    for number in range(3):
        commit(client, number)
        assert take(client) == Error.NONE
    assert stored_batches(world) == before + 3


def test_commits_may_be_told_to_wait_for_more() -> None:
    world = Harness(offsets_topic_num_partitions=1, group_coordinator_append_linger_ms=5)
    ready(world)
    client = world.connect()
    before = stored_batches(world)
    commit(client, 1)
    world.advance(4)
    commit(client, 2)
    assert not client.inbox
    world.advance(1)
    assert [take(client), take(client)] == [Error.NONE, Error.NONE]
    assert stored_batches(world) == before + 1


def beat(client: Client, member_id: str, epoch: int) -> None:
    said = {"rebalance_timeout_ms": 5000, "subscribed_topic_names": ["t"], "topic_partitions": []} if not epoch else {}
    request = ConsumerGroupHeartbeatRequest(group_id="c", member_id=member_id, member_epoch=epoch, **said)  # type: ignore[arg-type]
    client.send(request, 1)


def told(client: Client) -> ConsumerGroupHeartbeatResponse:
    response = client.take(ConsumerGroupHeartbeatResponse)
    assert response.error_code == 0, response
    return response


def test_members_that_join_in_one_turn_are_one_batch_and_know_of_each_other(world: Harness) -> None:
    clients = [world.connect() for _ in range(4)]
    beat(clients[0], "m0", 0)
    assert told(clients[0]).member_epoch > 0, "the first one makes the group, at once"
    before = stored_batches(world)
    for number, client in enumerate(clients[1:], 1):
        beat(client, f"m{number}", 0)
        assert not client.inbox
    world.release()
    epochs = [told(client).member_epoch for client in clients[1:]]
    assert epochs == sorted(set(epochs)), "each came after the one before"
    assert stored_batches(world) == before + 1


def test_a_commit_finds_the_member_that_has_joined_in_the_same_turn(world: Harness) -> None:
    first, second = world.connect(), world.connect()
    beat(first, "m0", 0)
    epoch = told(first).member_epoch
    beat(second, "m1", 0)
    assert not second.inbox
    asked = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    first.send(
        OffsetCommitRequest(
            group_id="c",
            member_id="m1",
            generation_id_or_member_epoch=epoch + 1,
            topics=[OffsetCommitRequestTopic(name="t", partitions=[asked])],
        ),
        9,
    )
    assert told(second).member_epoch == epoch + 1
    world.release()
    assert take(first) == Error.NONE


def test_heartbeats_that_can_not_be_written_are_refused_together(world: Harness) -> None:
    clients = [world.connect() for _ in range(3)]
    beat(clients[0], "m0", 0)
    epoch = told(clients[0]).member_epoch
    beat(clients[1], "m1", 0)
    beat(clients[2], "m2", 0)
    world.close_files()
    world.release()
    for client in clients[1:]:
        assert client.take(ConsumerGroupHeartbeatResponse).error_code == Error.COORDINATOR_NOT_AVAILABLE
    beat(clients[0], "m0", epoch)
    assert told(clients[0]).member_epoch == epoch, "nobody has joined"
