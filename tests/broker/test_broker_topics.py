"""CreateTopics, DeleteTopics, CreatePartitions: what is refused, what is done, and what a crash leaves."""

from dataclasses import replace
from uuid import UUID

import pytest

from broker.harness import Client, Harness, codes, fetch, read
from cordwood.broker.additions import AT_ONCE
from cordwood.broker.proposals import ATTEMPTS_MAX
from cordwood.cluster.controller import PARTITIONS_PER_REQUEST_MAX
from cordwood.errors import Error, StorageError
from cordwood.ids import TopicName
from cordwood.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsRequestAssignment,
    CreatePartitionsRequestTopic,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsRequestAssignment,
    CreateTopicsRequestConfig,
    CreateTopicsRequestTopic,
    CreateTopicsResponse,
    CreateTopicsResponseTopic,
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    DeleteTopicsResponse,
    FetchResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestConfig,
    IncrementalAlterConfigsRequestResource,
    IncrementalAlterConfigsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

SET, DELETE = 0, 1


def new(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    assign: dict[int, list[int]] | None = None,
    **config: str | None,
) -> CreateTopicsRequestTopic:
    return CreateTopicsRequestTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreateTopicsRequestAssignment(partition_index=index, broker_ids=nodes)
            for index, nodes in (assign or {}).items()
        ],
        configs=[CreateTopicsRequestConfig(name=key.replace("_", "."), value=value) for key, value in config.items()],
    )


def create(
    client: Client, *topics: CreateTopicsRequestTopic, version: int = 7, validate_only: bool = False
) -> list[CreateTopicsResponseTopic]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    return client.ask(request, version, CreateTopicsResponse).topics


def delete(client: Client, *names: str, version: int = 5) -> dict[str | None, int]:
    response = client.ask(DeleteTopicsRequest(topic_names=list(names)), version, DeleteTopicsResponse)
    return {topic.name: topic.error_code for topic in response.responses}


def grow(
    client: Client, name: str, count: int, assign: list[list[int]] | None = None, *, version: int = 3
) -> tuple[int, str | None]:
    assignments = None if assign is None else [CreatePartitionsRequestAssignment(broker_ids=a) for a in assign]
    wanted = CreatePartitionsRequestTopic(name=name, count=count, assignments=assignments)
    response = client.ask(CreatePartitionsRequest(topics=[wanted]), version, CreatePartitionsResponse)
    (answer,) = response.results
    assert answer.name == name
    return answer.error_code, answer.error_message


# ---------------------------------------------------------------------- creating


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_created_in_every_version(version: int) -> None:
    harness = Harness()
    (answer,) = create(harness.connect(), new("t", 3, retention_ms="1000"), version=version)
    assert (answer.name, answer.error_code, answer.error_message) == ("t", Error.NONE, None)
    topic = harness.broker.image.topics[TopicName("t")]
    assert len(topic.partitions) == 3
    assert topic.config == {"retention.ms": "1000"}
    if version >= 5:
        assert (answer.num_partitions, answer.replication_factor) == (3, 1)
        configs = {config.name: config for config in answer.configs or []}
        assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("1000", 1)
        assert configs["cleanup.policy"].config_source == 5
    if version >= 7:
        assert answer.topic_id == topic.id


def test_minus_one_means_the_brokers_defaults() -> None:
    harness = Harness(num_partitions=4)
    (answer,) = create(harness.connect(), new("t", -1, -1))
    assert (answer.num_partitions, answer.replication_factor) == (4, 1)


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (new("a b"), Error.INVALID_TOPIC),
        (new(""), Error.INVALID_TOPIC),
        (new(".."), Error.INVALID_TOPIC),
        (new("x" * 250), Error.INVALID_TOPIC),
        (new("old"), Error.TOPIC_ALREADY_EXISTS),
        (new("old", 0, 0, no_such_thing="1"), Error.TOPIC_ALREADY_EXISTS),
        (new("a b", no_such_thing="1"), Error.INVALID_TOPIC),
        (new("t", 0, 0), Error.INVALID_REPLICATION_FACTOR),
        (new("one_name"), Error.INVALID_TOPIC),
        (new("t", 0), Error.INVALID_PARTITIONS),
        (new("t", -2), Error.INVALID_PARTITIONS),
        (new("t", 2**31 - 1), Error.INVALID_PARTITIONS),
        (new("t", 1, 0), Error.INVALID_REPLICATION_FACTOR),
        (new("t", 1, -2), Error.INVALID_REPLICATION_FACTOR),
        (new("t", 1, 2), Error.INVALID_REPLICATION_FACTOR),
        (new("t", no_such_thing="1"), Error.INVALID_CONFIG),
        (new("t", retention_ms="soon"), Error.INVALID_CONFIG),
        (new("t", retention_ms=None), Error.INVALID_CONFIG),
        (new("t", 1, -1, {0: [1]}), Error.INVALID_REQUEST),
        (new("t", -1, 1, {0: [1]}), Error.INVALID_REQUEST),
        (new("t", -1, -1, {0: [2]}), Error.INVALID_REPLICA_ASSIGNMENT),
        (new("t", -1, -1, {0: [1, 1]}), Error.INVALID_REPLICA_ASSIGNMENT),
        (new("t", -1, -1, {0: []}), Error.INVALID_REPLICA_ASSIGNMENT),
        (new("t", -1, -1, {1: [1]}), Error.INVALID_REPLICA_ASSIGNMENT),
        (new("t", -1, -1, {0: [1], 2: [1]}), Error.INVALID_REPLICA_ASSIGNMENT),
        (new("t", -1, -1, {-1: [1]}), Error.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_topic_that_can_not_be_is_refused_and_its_neighbour_is_not(
    topic: CreateTopicsRequestTopic, error: Error
) -> None:
    harness = Harness()
    harness.topic("old")
    harness.topic("one.name")
    refused, created = create(harness.connect(), topic, new("good"))
    assert refused.error_code == error
    assert refused.error_message
    assert created.error_code == Error.NONE
    assert set(harness.broker.image.topics) == {"old", "one.name", "good"}


def test_an_assignment_may_be_given_by_hand() -> None:
    harness = Harness(node_id=3)
    (answer,) = create(harness.connect(), new("t", -1, -1, {1: [3], 0: [3]}))
    assert (answer.error_code, answer.num_partitions) == (Error.NONE, 2)


def test_a_partition_assigned_twice_is_refused() -> None:
    topic = new("t", -1, -1, {0: [1]})
    topic.assignments *= 2
    (answer,) = create(Harness().connect(), topic)
    assert answer.error_code == Error.INVALID_REPLICA_ASSIGNMENT


def test_a_name_twice_in_one_request_is_refused() -> None:
    harness = Harness()
    answers = create(harness.connect(), new("twice"), new("once"), new("twice"))
    assert {a.name: a.error_code for a in answers} == {"twice": Error.INVALID_REQUEST, "once": Error.NONE}
    assert set(harness.broker.image.topics) == {"once"}


def test_two_new_names_that_collide_are_not_both_created() -> None:
    harness = Harness()
    answers = create(harness.connect(), new("a.b"), new("a_b"), new("a-b"))
    assert [a.error_code for a in answers] == [Error.NONE, Error.INVALID_TOPIC, Error.NONE]


def test_validation_creates_nothing() -> None:
    harness = Harness()
    good, bad = create(harness.connect(), new("good", 2), new("bad", 0), validate_only=True)
    assert (good.error_code, good.num_partitions) == (Error.NONE, 2)
    assert bad.error_code == Error.INVALID_PARTITIONS
    assert not harness.broker.image.topics
    assert harness.disk.list("") == []


def test_topics_are_there_after_a_restart() -> None:
    harness = Harness()
    harness.topic("t", partitions=2, retention_ms=1000)
    topic = harness.broker.image.topics[TopicName("t")]
    harness.stop()
    harness.start()
    assert harness.broker.image.topics[TopicName("t")] == topic
    assert harness.partition("t", 1).log.config.retention_ms == 1000


def test_a_new_leader_epoch_begins_after_a_crash_and_not_after_a_clean_stop() -> None:
    """What a crash took was written in the old epoch; what is written instead must not look like it."""
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"before")
    harness.stop()
    harness.start()
    assert harness.partition("t").leader_epoch == 0
    harness.kill()
    harness.start()
    assert harness.partition("t").leader_epoch == 1
    harness.append("t", b"after")
    assert harness.partition("t").log.end_offset_for(0) == (0, 1)
    assert harness.partition("t").log.end_offset_for(1) == (1, 2)


@pytest.mark.parametrize("room", [PARTITIONS_PER_REQUEST_MAX + 5, 1])
def test_one_request_does_not_create_more_partitions_than_there_is_room_for(room: int) -> None:
    harness = Harness()
    harness.topic("old")
    harness.broker.replicas._partitions_max = room
    client = harness.connect()
    many = PARTITIONS_PER_REQUEST_MAX if room > PARTITIONS_PER_REQUEST_MAX else 1
    answers = create(client, new("a", many), new("b", 1))
    assert [answer.error_code for answer in answers] == [Error.POLICY_VIOLATION] * 2
    assert grow(client, "old", many + 2)[0] == Error.POLICY_VIOLATION
    assert set(harness.broker.image.topics) == {"old"}


# ---------------------------------------------------------------------- the store


def test_a_conflict_in_the_store_is_tried_again() -> None:
    harness = Harness()
    harness.conflicts = ATTEMPTS_MAX - 1
    (answer,) = create(harness.connect(), new("t"))
    assert answer.error_code == Error.NONE


def test_a_store_that_keeps_changing_is_given_up() -> None:
    harness = Harness()
    harness.conflicts = ATTEMPTS_MAX
    (answer,) = create(harness.connect(), new("t"))
    assert answer.error_code == Error.NOT_CONTROLLER
    assert len(harness.broker.proposals) == 0
    assert not harness.broker.image.topics


def test_a_store_that_fails_is_told_to_the_client() -> None:
    harness = Harness()
    harness.store_error = StorageError("the disk is full")
    client = harness.connect()
    (answer,) = create(client, new("t"))
    assert (answer.error_code, answer.error_message) == (Error.UNKNOWN_SERVER_ERROR, "the disk is full")


def test_of_two_clients_that_create_one_topic_one_is_refused() -> None:
    harness = Harness()
    harness.hold_metadata = True
    first, second = harness.connect(), harness.connect()
    for client in (first, second):
        client.send(CreateTopicsRequest(topics=[new("t")]), 7)
    harness.release()
    assert first.take(CreateTopicsResponse).topics[0].error_code == Error.NONE
    assert second.take(CreateTopicsResponse).topics[0].error_code == Error.TOPIC_ALREADY_EXISTS


def test_a_topic_deleted_while_it_grows_is_gone() -> None:
    harness = Harness()
    harness.topic("t")
    harness.hold_metadata = True
    first, second = harness.connect(), harness.connect()
    first.send(DeleteTopicsRequest(topic_names=["t"]), 5)
    second.send(CreatePartitionsRequest(topics=[CreatePartitionsRequestTopic(name="t", count=3, assignments=None)]), 3)
    harness.release()
    assert first.take(DeleteTopicsResponse).responses[0].error_code == Error.NONE
    answer = second.take(CreatePartitionsResponse).results[0]
    assert answer.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_change_that_became_needless_is_answered() -> None:
    harness = Harness()
    harness.topic("t")
    harness.hold_metadata = True
    clients = [harness.connect(), harness.connect()]
    for client in clients:
        client.send(DeleteTopicsRequest(topic_names=["t"]), 5)
    harness.release()
    assert [c.take(DeleteTopicsResponse).responses[0].error_code for c in clients] == [
        Error.NONE,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
    ]


# ---------------------------------------------------------------------- deleting


@pytest.mark.parametrize("version", range(1, 6))
def test_a_topic_is_deleted_by_name(version: int) -> None:
    harness = Harness()
    harness.topic("t", partitions=2)
    harness.append("t", b"x")
    client = harness.connect()
    assert delete(client, "t", "no", version=version) == {"t": 0, "no": Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert not harness.broker.image.topics
    assert harness.disk.list("") == []
    assert codes(client.ask(fetch(("t", 0, 0)), 12, FetchResponse)) == {("t", 0): Error.UNKNOWN_TOPIC_OR_PARTITION}


def test_version_6_deletes_by_name_or_id() -> None:
    harness = Harness()
    ids = {name: harness.broker.image.topics[harness.topic(name)].id for name in ("a", "b", "c", "d")}
    wanted = [
        DeleteTopicsRequestTopic(name="a"),
        DeleteTopicsRequestTopic(name=None, topic_id=ids["b"]),
        DeleteTopicsRequestTopic(name=None, topic_id=UUID(int=5)),
        DeleteTopicsRequestTopic(name=None),
        DeleteTopicsRequestTopic(name="c", topic_id=ids["c"]),
        DeleteTopicsRequestTopic(name="d"),
        DeleteTopicsRequestTopic(name=None, topic_id=ids["d"]),
    ]
    response = harness.connect().ask(DeleteTopicsRequest(topics=wanted), 6, DeleteTopicsResponse)
    assert [(t.name, t.topic_id, t.error_code) for t in response.responses] == [
        ("a", ids["a"], Error.NONE),
        ("b", ids["b"], Error.NONE),
        (None, UUID(int=5), Error.UNKNOWN_TOPIC_ID),
        (None, UUID(int=0), Error.INVALID_REQUEST),
        ("c", ids["c"], Error.INVALID_REQUEST),
        ("d", UUID(int=0), Error.INVALID_REQUEST),
        (None, ids["d"], Error.INVALID_REQUEST),
    ]
    assert set(harness.broker.image.topics) == {"c", "d"}


def named_twice(*topics: DeleteTopicsRequestTopic) -> list[tuple[str | None, int]]:
    harness = Harness()
    harness.topic("a")
    harness.topic("b")
    known = harness.broker.image.topics
    wanted = [t if t.name else replace(t, topic_id=known[TopicName("a")].id) for t in topics]
    response = harness.connect().ask(DeleteTopicsRequest(topics=wanted), 6, DeleteTopicsResponse)
    assert set(known) == {"a"}
    return [(topic.name, topic.error_code) for topic in response.responses]


def test_a_name_twice_in_a_deletion_is_refused_once() -> None:
    """Two answers of one name are too many for librdkafka."""
    a, b = DeleteTopicsRequestTopic(name="a"), DeleteTopicsRequestTopic(name="b")
    assert named_twice(a, b, a) == [("a", Error.INVALID_REQUEST), ("b", Error.NONE)]


def test_an_id_twice_in_a_deletion_is_refused_once() -> None:
    a, b = DeleteTopicsRequestTopic(name=None), DeleteTopicsRequestTopic(name="b")
    assert named_twice(a, b, a) == [(None, Error.INVALID_REQUEST), ("b", Error.NONE)]


@pytest.mark.parametrize(
    ("version", "error"),
    [(1, Error.INVALID_REQUEST), (2, Error.INVALID_REQUEST), (3, Error.TOPIC_DELETION_DISABLED)],
)
def test_deletion_may_be_forbidden(version: int, error: Error) -> None:
    harness = Harness(delete_topic_enable="false")
    harness.topic("t")
    assert delete(harness.connect(), "t", version=version) == {"t": error}
    assert "t" in harness.broker.image.topics


def test_a_name_is_free_again_at_once() -> None:
    harness = Harness()
    harness.topic("t", retention_ms=1000)
    harness.append("t", b"old")
    harness.hold_removals = True
    delete(harness.connect(), "t")
    harness.topic("t")
    assert harness.append("t", b"new") == 0
    assert harness.partition("t").log.config.retention_ms != 1000
    harness.release()
    assert harness.disk.list("") == ["t-0"]
    assert read(harness.connect().ask(fetch(("t", 0, 0)), 12, FetchResponse)) == {("t", 0): [b"new"]}
    assert not harness.broker.image.deleted_topics


@pytest.mark.parametrize("end", ["kill", "lose_power"])
@pytest.mark.parametrize("moment", ["before the files are removed", "between two files", "before the mark goes"])
def test_a_deletion_survives_a_crash_in_its_middle(end: str, moment: str) -> None:
    harness = Harness()
    harness.topic("t", partitions=3)
    harness.topic("kept")
    for partition in range(3):
        harness.append("t", b"x", partition=partition)
    harness.hold_removals = True
    delete(harness.connect(), "t")
    assert len(harness.broker.image.deleted_topics) == 1
    if moment == "between two files":
        directories = [name for name in harness.disk.list("") if name.endswith("-delete")]
        harness.disk.remove_tree(directories[1])
    elif moment == "before the mark goes":
        harness.hold_metadata = True
        harness.release(1)
        assert harness.disk.list("") == ["kept-0"]
    getattr(harness, end)()
    harness.hold_removals = harness.hold_metadata = False
    harness.start()
    assert set(harness.broker.image.topics) == {"kept"}
    assert not harness.broker.image.deleted_topics
    assert [name for name in harness.disk.list("") if name.startswith("t-")] == []
    assert not any("deleted_topics" in node.path for node in harness.store.load())


def test_a_topic_deleted_and_made_anew_before_a_crash_is_the_new_one() -> None:
    harness = Harness()
    harness.topic("t", partitions=2)
    harness.append("t", b"old")
    harness.hold_removals = True
    delete(harness.connect(), "t")
    harness.topic("t")
    harness.append("t", b"new")
    harness.kill()
    harness.hold_removals = False
    harness.start()
    assert read(harness.connect().ask(fetch(("t", 0, 0)), 12, FetchResponse)) == {("t", 0): [b"new"]}
    assert harness.disk.list("") == ["t-0"]


def test_a_directory_that_lost_its_id_is_not_taken_for_the_new_topic_of_its_name() -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"old")
    harness.hold_removals = True
    delete(harness.connect(), "t")
    (old,) = [name for name in harness.disk.list("") if name.endswith("-delete")]
    harness.topic("t")
    harness.kill()
    # What the loss of power may make of it: neither the renaming nor the new directory reached the disk.
    harness.disk.remove_tree("t-0")
    harness.disk.rename(old, "t-0")
    harness.disk.remove("t-0/partition.metadata")
    harness.hold_removals = False
    harness.start()
    assert harness.partition("t").log.end_offset == 0
    assert harness.disk.list("") == ["t-0"]


def test_a_topic_that_could_not_be_set_aside_is_not_taken_for_a_new_one_of_its_name() -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"old")
    harness.disk.fails_after = 0
    assert delete(harness.connect(), "t") == {"t": Error.NONE}
    assert "t-0 could not be set aside" in harness.logger
    harness.topic("t")
    assert harness.append("t", b"new") == 0
    harness.kill()
    harness.start()
    assert read(harness.connect().ask(fetch(("t", 0, 0)), 12, FetchResponse)) == {("t", 0): [b"new"]}
    assert [name for name in harness.disk.list("") if name.startswith("t-")] == ["t-0"]
    assert not harness.broker.image.deleted_topics


def test_a_partition_that_got_no_log_gets_one_at_the_next_start() -> None:
    harness = Harness()
    harness.disk.fails_after = 0
    (answer,) = create(harness.connect(), new("t"))
    assert answer.error_code == Error.NONE
    assert "t-0 has no log" in harness.logger
    response = harness.connect().ask(fetch(("t", 0, 0)), 12, FetchResponse)
    assert codes(response) == {("t", 0): Error.UNKNOWN_TOPIC_OR_PARTITION}
    harness.kill()
    harness.start()
    assert harness.append("t", b"x") == 0


def test_a_partition_that_got_no_log_gets_one_when_the_disk_has_room() -> None:
    harness = Harness()
    harness.disk.fails_after = 0
    create(harness.connect(), new("t"), new("u"))
    assert "t-0 has no log" in harness.logger
    harness.disk.fails_after = 0
    harness.advance(10_000)
    harness.advance(10_000)
    assert harness.append("t", b"x") == 0
    assert harness.append("u", b"x") == 0


def test_directories_that_nobody_knows_are_kept_aside() -> None:
    harness = Harness()
    harness.topic("t")
    harness.append("t", b"precious")
    harness.stop()
    harness.disk.rename("t-0", "lost-0")
    harness.disk.make_directory("no-partition")
    harness.start()
    stray = [name for name in harness.disk.list("") if name.endswith("-stray")]
    assert len(stray) == 1
    assert stray[0].startswith("lost-0.")
    assert "00000000000000000000.log" in harness.disk.list(stray[0])
    assert "the metadata does not know lost-0" in harness.logger
    assert "no-partition" in harness.disk.list("")
    assert harness.partition("t").log.end_offset == 0
    harness.kill()
    harness.start()
    assert stray[0] in harness.disk.list("")


def test_a_partition_beyond_the_topics_number_is_a_stray() -> None:
    harness = Harness()
    harness.topic("t")
    harness.stop()
    harness.disk.make_directory("t-1")
    harness.start()
    assert "the metadata does not know t-1" in harness.logger


def test_removals_that_fail_are_tried_again_at_the_next_start() -> None:
    harness = Harness()
    harness.topic("t")
    harness.hold_removals = True
    delete(harness.connect(), "t")
    harness.held.clear()  # as a driver does whose disk refuses
    harness.advance(3_600_000)
    assert len(harness.broker.image.deleted_topics) == 1
    harness.stop()
    harness.hold_removals = False
    harness.start()
    assert not harness.broker.image.deleted_topics
    assert not [name for name in harness.disk.list("") if name.startswith("t-")]


@pytest.mark.parametrize("config", [{}, {"retention_ms": 5}])
def test_settings_do_not_outlive_their_topic(config: dict[str, int]) -> None:
    harness = Harness()
    harness.topic("t", **config)
    client = harness.connect()
    alter(client, "t", "retention.ms", "7")
    alter(client, "t", "retention.ms", None)
    assert delete(client, "t") == {"t": Error.NONE}
    assert not any("/config/topics" in node.path for node in harness.store.load())
    harness.topic("t", retention_ms=9)
    assert harness.partition("t").log.config.retention_ms == 9


def test_settings_altered_while_the_topic_is_deleted_go_with_it() -> None:
    harness = Harness()
    harness.topic("t")
    harness.hold_metadata = True
    first, second = harness.connect(), harness.connect()
    first.send(altering("t", "retention.ms", "7"), 1)
    second.send(DeleteTopicsRequest(topic_names=["t"]), 5)
    harness.release()
    assert second.take(DeleteTopicsResponse).responses[0].error_code == Error.NONE
    harness.hold_metadata = False
    harness.topic("t")
    harness.kill()
    harness.start()
    assert harness.broker.image.topics[TopicName("t")].config == {}


def altering(topic: str, name: str, value: str | None) -> IncrementalAlterConfigsRequest:
    change = IncrementalAlterConfigsRequestConfig(
        name=name, config_operation=DELETE if value is None else SET, value=value
    )
    resource = IncrementalAlterConfigsRequestResource(resource_type=2, resource_name=topic, configs=[change])
    return IncrementalAlterConfigsRequest(resources=[resource])


def alter(client: Client, topic: str, name: str, value: str | None) -> None:
    response = client.ask(altering(topic, name, value), 1, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == Error.NONE


# ---------------------------------------------------------------------- growing


@pytest.mark.parametrize("version", range(4))
def test_a_topic_grows(version: int) -> None:
    harness = Harness()
    harness.topic("t")
    assert grow(harness.connect(), "t", 3, version=version) == (Error.NONE, None)
    assert harness.append("t", b"x", partition=2) == 0
    harness.kill()
    harness.start()
    assert len(harness.broker.image.topics[TopicName("t")].partitions) == 3
    assert harness.partition("t", 2).log.end_offset == 1


@pytest.mark.parametrize(
    ("name", "count", "assign", "error"),
    [
        ("t", 1, None, Error.INVALID_PARTITIONS),
        ("t", 2, None, Error.INVALID_PARTITIONS),
        ("t", 0, None, Error.INVALID_PARTITIONS),
        ("t", -1, None, Error.INVALID_PARTITIONS),
        ("t", 2**31 - 1, None, Error.INVALID_PARTITIONS),
        ("no", 3, None, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 3, [], Error.INVALID_REPLICA_ASSIGNMENT),
        ("t", 3, [[1], [1]], Error.INVALID_REPLICA_ASSIGNMENT),
        ("t", 3, [[2]], Error.INVALID_REPLICA_ASSIGNMENT),
        ("t", 3, [[]], Error.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_growth_that_can_not_be_is_refused(name: str, count: int, assign: list[list[int]] | None, error: Error) -> None:
    harness = Harness()
    harness.topic("t", partitions=2)
    code, message = grow(harness.connect(), name, count, assign)
    assert code == error
    assert message
    assert len(harness.broker.image.topics[TopicName("t")].partitions) == 2


def test_new_partitions_may_be_assigned_by_hand() -> None:
    harness = Harness()
    harness.topic("t")
    assert grow(harness.connect(), "t", 3, [[1], [1]]) == (Error.NONE, None)


def test_growth_is_per_topic_and_a_name_twice_is_refused() -> None:
    harness = Harness()
    harness.topic("a")
    harness.topic("b")
    wanted = [CreatePartitionsRequestTopic(name=n, count=2, assignments=None) for n in ("a", "b", "a")]
    response = harness.connect().ask(CreatePartitionsRequest(topics=wanted), 3, CreatePartitionsResponse)
    assert {r.name: r.error_code for r in response.results} == {"a": Error.INVALID_REQUEST, "b": Error.NONE}


def test_validated_growth_does_not_happen() -> None:
    harness = Harness()
    harness.topic("t")
    wanted = [CreatePartitionsRequestTopic(name="t", count=2, assignments=None)]
    request = CreatePartitionsRequest(topics=wanted, validate_only=True)
    response = harness.connect().ask(request, 3, CreatePartitionsResponse)
    assert response.results[0].error_code == Error.NONE
    assert len(harness.broker.image.topics[TopicName("t")].partitions) == 1


def test_a_store_that_fails_refuses_the_growth() -> None:
    harness = Harness()
    harness.topic("t")
    client = harness.connect()
    harness.store_error = StorageError("full")
    assert grow(client, "t", 3) == (Error.UNKNOWN_SERVER_ERROR, "full")


def test_the_name_of_kafkas_metadata_log_is_nobodys() -> None:
    harness = Harness()
    client = harness.connect()
    assert create(client, new("__cluster_metadata"))[0].error_code == Error.INVALID_REQUEST
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="__cluster_metadata")], allow_auto_topic_creation=True)
    (topic,) = client.ask(asked, 12, MetadataResponse).topics
    assert topic.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


# ---------------------------------------------------------------------- thousands of partitions


def logs_of(harness: Harness, topic: str) -> int:
    return len(harness.broker.replicas.by_name.get(TopicName(topic), {}))


def test_a_few_logs_are_made_at_a_time_and_all_before_the_answer() -> None:
    harness = Harness()
    client, other = harness.connect(), harness.connect()
    client.send(CreateTopicsRequest(topics=[new("many", 1000)]), 7)
    made = [logs_of(harness, "many")]
    assert not client.inbox
    assert create(other, new("one"))[0].error_code == Error.NONE, "others do not wait"
    while not client.inbox:
        harness.advance(1)
        made.append(logs_of(harness, "many"))
    assert client.take(CreateTopicsResponse).topics[0].error_code == Error.NONE
    assert made[-1] == 1000
    assert max(after - before for before, after in zip([0, *made], made, strict=False)) <= AT_ONCE


def test_so_it_is_with_many_topics_and_with_partitions_that_come_later() -> None:
    harness = Harness()
    client = harness.connect()
    client.send(CreateTopicsRequest(topics=[new(f"t{number}") for number in range(300)]), 7)
    assert len(harness.broker.replicas.all()) == AT_ONCE
    harness.advance(10)
    assert {topic.error_code for topic in client.take(CreateTopicsResponse).topics} == {Error.NONE}
    assert len(harness.broker.replicas.all()) == 300
    client.send(
        CreatePartitionsRequest(topics=[CreatePartitionsRequestTopic(name="t0", count=200, assignments=None)]), 3
    )
    assert logs_of(harness, "t0") == 1 + AT_ONCE
    harness.advance(10)
    assert client.take(CreatePartitionsResponse).results[0].error_code == Error.NONE
    assert logs_of(harness, "t0") == 200


def test_a_topic_that_comes_into_being_by_being_asked_for_has_its_logs_when_it_is_told_of() -> None:
    harness = Harness(num_partitions=200)
    client = harness.connect()
    client.send(MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=True), 12)
    assert logs_of(harness, "t") == AT_ONCE
    assert not client.inbox
    harness.advance(10)
    assert client.take(MetadataResponse).topics[0].error_code == Error.NONE
    assert logs_of(harness, "t") == 200


def test_topics_that_are_deleted_before_their_logs_are_made_are_gone_for_good() -> None:
    harness = Harness()
    client, other = harness.connect(), harness.connect()
    names = [f"t{number}" for number in range(200)]
    client.send(CreateTopicsRequest(topics=[new(name) for name in names]), 7)
    gone = DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name=name) for name in names])
    assert {topic.error_code for topic in other.ask(gone, 6, DeleteTopicsResponse).responses} == {Error.NONE}
    harness.advance(10)
    assert {topic.error_code for topic in client.take(CreateTopicsResponse).topics} == {Error.NONE}
    assert not harness.broker.replicas.all()
    assert not harness.broker.image.deleted_topics
    assert not [path for path in harness.disk.list("") if path.startswith("t")]
    harness.kill()
    harness.start()
    assert not harness.broker.replicas.all()


def test_a_start_makes_the_logs_that_a_crash_prevented() -> None:
    harness = Harness()
    harness.connect().send(CreateTopicsRequest(topics=[new("many", 200)]), 7)
    assert logs_of(harness, "many") == AT_ONCE
    harness.kill()
    harness.start()
    assert logs_of(harness, "many") == 200
