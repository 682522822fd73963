"""Metadata: all versions, all ways to ask, and topics that come into being by being asked for."""

from uuid import UUID

import pytest

from broker.harness import Harness
from cordwood.cluster.image import NO_LEADER
from cordwood.errors import Error, StorageError
from cordwood.ids import TopicName
from cordwood.wire.messages import MetadataRequest, MetadataRequestTopic, MetadataResponse

UNSET = -(2**31)


def named(*names: str, create: bool = False) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=create)


def by_id(*ids: UUID) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids],
        allow_auto_topic_creation=False,
    )


def errors(response: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}


@pytest.mark.parametrize("version", range(14))
def test_a_topic_is_described_in_every_version(version: int) -> None:
    harness = Harness()
    harness.topic("t", partitions=3)
    response = harness.connect().ask(named("t", create=True), version, MetadataResponse)
    (topic,) = response.topics
    assert (topic.name, topic.error_code, topic.is_internal) == ("t", Error.NONE, False)
    assert topic.topic_id == (harness.broker.image.topics[TopicName("t")].id if version >= 10 else UUID(int=0))
    assert [p.partition_index for p in topic.partitions] == [0, 1, 2]
    for partition in topic.partitions:
        assert (partition.error_code, partition.leader_id) == (Error.NONE, 1)
        assert partition.leader_epoch == (0 if version >= 7 else -1)
        assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1], [1], [])
    assert response.cluster_id == (harness.broker.image.cluster_id if version >= 2 else None)
    assert response.controller_id == (1 if version >= 1 else -1)


@pytest.mark.parametrize("version", range(8, 14))
def test_authorised_operations_stay_unset_even_if_asked_for(version: int) -> None:
    harness = Harness()
    harness.topic("t")
    request = named("t")
    request.include_topic_authorized_operations = True
    request.include_cluster_authorized_operations = version <= 10
    response = harness.connect().ask(request, version, MetadataResponse)
    assert response.topics[0].topic_authorized_operations == UNSET
    assert response.cluster_authorized_operations == UNSET


@pytest.mark.parametrize("version", range(14))
def test_an_empty_list_is_all_topics_in_version_zero_and_none_later(version: int) -> None:
    harness = Harness()
    harness.topic("a")
    harness.topic("b")
    response = harness.connect().ask(MetadataRequest(topics=[]), version, MetadataResponse)
    assert set(errors(response)) == ({"a", "b"} if version == 0 else set())


@pytest.mark.parametrize("version", range(1, 14))
def test_no_list_is_all_topics(version: int) -> None:
    harness = Harness()
    harness.topic("a")
    harness.topic("b")
    response = harness.connect().ask(MetadataRequest(topics=None), version, MetadataResponse)
    assert set(errors(response)) == {"a", "b"}


def test_unknown_and_invalid_names_have_an_error_each() -> None:
    response = Harness().connect().ask(named("no", "a b", "..", "x" * 250, ""), 9, MetadataResponse)
    assert errors(response) == {
        "no": Error.UNKNOWN_TOPIC_OR_PARTITION,
        "a b": Error.INVALID_TOPIC,
        "..": Error.INVALID_TOPIC,
        "x" * 250: Error.INVALID_TOPIC,
        "": Error.INVALID_TOPIC,
    }


@pytest.mark.parametrize("version", [12, 13])
def test_topics_are_found_by_id(version: int) -> None:
    harness = Harness()
    harness.topic("t")
    topic_id = harness.broker.image.topics[TopicName("t")].id
    other = UUID(int=99)
    found, unknown = harness.connect().ask(by_id(topic_id, other), version, MetadataResponse).topics
    assert (found.name, found.topic_id, found.error_code) == ("t", topic_id, Error.NONE)
    assert (unknown.name, unknown.topic_id, unknown.error_code) == (None, other, Error.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("name", ["", "other"])
def test_an_id_counts_more_than_names(name: str) -> None:
    harness = Harness()
    harness.topic("t")
    topic_id = harness.broker.image.topics[TopicName("t")].id
    wanted = [MetadataRequestTopic(name=name, topic_id=topic_id), MetadataRequestTopic(name="other")]
    (topic,) = harness.connect().ask(MetadataRequest(topics=wanted), 13, MetadataResponse).topics
    assert (topic.name, topic.topic_id, topic.error_code) == ("t", topic_id, Error.NONE)
    assert "other" not in harness.broker.image.topics


def test_a_topic_without_name_and_id_is_an_invalid_request() -> None:
    (topic,) = Harness().connect().ask(by_id(UUID(int=0)), 12, MetadataResponse).topics
    assert topic.error_code == Error.INVALID_REQUEST


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize(
    "wanted",
    [
        MetadataRequestTopic(name=None, topic_id=UUID(int=9)),
        MetadataRequestTopic(name="t", topic_id=UUID(int=9)),
        MetadataRequestTopic(name=None),
    ],
)
def test_versions_10_and_11_have_ids_and_refuse_them(version: int, wanted: MetadataRequestTopic) -> None:
    harness = Harness()
    harness.topic("t")
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t"), wanted])
    response = harness.connect().ask(request, version, MetadataResponse)
    assert [topic.error_code for topic in response.topics] == [Error.INVALID_REQUEST] * 2


def test_an_unknown_topic_is_created_and_the_answer_holds_it() -> None:
    harness = Harness(num_partitions=3)
    response = harness.connect().ask(named("new", create=True), 9, MetadataResponse)
    assert errors(response) == {"new": Error.NONE}
    assert len(response.topics[0].partitions) == 3
    assert harness.partition("new", 2).log.end_offset == 0


def test_the_answer_waits_for_the_store() -> None:
    harness = Harness()
    harness.hold_metadata = True
    client = harness.connect()
    client.send(named("new", create=True), 9)
    assert not client.inbox
    harness.release()
    assert errors(client.take(MetadataResponse)) == {"new": Error.NONE}


def test_old_versions_always_allow_creation() -> None:
    response = Harness().connect().ask(named("new", create=True), 3, MetadataResponse)
    assert errors(response) == {"new": Error.NONE}


@pytest.mark.parametrize(("allowed", "enabled"), [(False, "true"), (True, "false")])
def test_a_topic_is_not_created_unless_both_sides_want_it(allowed: bool, enabled: str) -> None:
    harness = Harness(auto_create_topics_enable=enabled)
    response = harness.connect().ask(named("new", create=allowed), 9, MetadataResponse)
    assert errors(response) == {"new": Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert not harness.broker.image.topics


def test_a_topic_is_never_created_by_asking_for_an_id() -> None:
    harness = Harness()
    request = by_id(UUID(int=99))
    request.allow_auto_topic_creation = True
    harness.connect().ask(request, 12, MetadataResponse)
    assert not harness.broker.image.topics


def test_invalid_names_do_not_hinder_the_creation_of_others() -> None:
    harness = Harness()
    harness.topic("old.name")
    response = harness.connect().ask(named("new", "a b", "old_name", create=True), 9, MetadataResponse)
    assert errors(response) == {
        "new": Error.NONE,
        "a b": Error.INVALID_TOPIC,
        "old_name": Error.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_topic_named_twice_is_created_and_described_once() -> None:
    harness = Harness()
    response = harness.connect().ask(named("new", "new", create=True), 9, MetadataResponse)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("new", Error.NONE)]
    assert list(harness.broker.image.topics) == ["new"]


def test_of_two_new_names_that_collide_one_is_created() -> None:
    harness = Harness()
    response = harness.connect().ask(named("a.b", "a_b", create=True), 9, MetadataResponse)
    assert errors(response) == {"a.b": Error.NONE, "a_b": Error.UNKNOWN_TOPIC_OR_PARTITION}


def test_the_offsets_topic_that_is_asked_for_is_the_one_that_groups_would_make() -> None:
    harness = Harness(num_partitions=2, offsets_topic_num_partitions=7)
    (topic,) = harness.connect().ask(named("__consumer_offsets", create=True), 9, MetadataResponse).topics
    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (Error.NONE, True, 7)
    assert harness.broker.image.topics[TopicName("__consumer_offsets")].config["cleanup.policy"] == "compact"


@pytest.mark.parametrize("name", ["__transaction_state", "__share_group_state"])
def test_an_internal_topic_that_nobody_needs_here_is_not_created(name: str) -> None:
    harness = Harness()
    (topic,) = harness.connect().ask(named(name, create=True), 9, MetadataResponse).topics
    assert (topic.error_code, topic.is_internal) == (Error.UNKNOWN_TOPIC_OR_PARTITION, True)
    assert not harness.broker.image.topics


def test_what_one_request_creates_is_counted_in_partitions() -> None:
    harness = Harness(num_partitions=400, offsets_topic_num_partitions=500)
    harness.connect().send(named("a", "__consumer_offsets", "b", create=True), 9)
    assert list(harness.broker.image.topics) == ["a", "__consumer_offsets"]


def test_two_clients_that_create_one_topic_both_get_it() -> None:
    harness = Harness()
    harness.hold_metadata = True
    first, second = harness.connect(), harness.connect()
    first.send(named("new", create=True), 9)
    second.send(named("new", create=True), 9)
    harness.release()
    for client in (first, second):
        assert errors(client.take(MetadataResponse)) == {"new": Error.NONE}


def test_a_store_that_fails_leaves_the_topic_unknown() -> None:
    harness = Harness()
    harness.store_error = StorageError("the disk is full")
    response = harness.connect().ask(named("new", create=True), 9, MetadataResponse)
    assert errors(response) == {"new": Error.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_partition_without_leader_says_so() -> None:
    harness = Harness()
    harness.topic("t")
    harness.broker.image.topics[TopicName("t")].partitions[0].leader = NO_LEADER
    (topic,) = harness.connect().ask(named("t"), 9, MetadataResponse).topics
    assert topic.partitions[0].error_code == Error.LEADER_NOT_AVAILABLE
