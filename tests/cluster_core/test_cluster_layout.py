"""The store's paths and texts: what is written can be read, and looks as Kafka's did."""

import json
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from cordwood.cluster import layout
from cordwood.cluster.layout import Assignment, DeletedTopic, Incarnation
from cordwood.ids import NodeId, TopicId, TopicName

nodes = st.integers(0, 2**31 - 1).map(NodeId)
several = st.lists(nodes, max_size=4).map(tuple)
assignments = st.lists(st.builds(Assignment, several, several, several), min_size=1, max_size=12)


@given(st.uuids())
def test_an_id_has_the_text_that_kafka_gives_it(value: UUID) -> None:
    text = layout.uuid_text(value)
    assert len(text) == 22
    assert layout.parse_uuid(text) == value


def test_a_known_id() -> None:
    assert layout.uuid_text(UUID("8a7e0bd6-4c11-4d9b-9a4e-3a3b3a0a52a5")) == "in4L1kwRTZuaTjo7OgpSpQ"


@given(st.uuids().map(TopicId), assignments)
def test_a_topic_is_read_as_it_was_written(topic_id: TopicId, assignment: list[Assignment]) -> None:
    assert layout.parse_topic(layout.topic_data(topic_id, assignment)) == (topic_id, assignment)


@given(nodes, st.integers(0, 2**31 - 1), st.lists(nodes, max_size=4).map(tuple))
def test_a_partitions_state_is_read_as_it_was_written(leader: NodeId, epoch: int, isr: tuple[NodeId, ...]) -> None:
    data = layout.partition_data(leader=leader, leader_epoch=epoch, isr=isr, controller_epoch=3)
    assert layout.parse_partition(data) == (leader, epoch, isr)


@given(st.dictionaries(st.text(), st.text()))
def test_settings_are_read_as_they_were_written(config: dict[str, str]) -> None:
    assert layout.parse_config(layout.config_data(config)) == config


@given(st.text())
def test_names_and_ids_are_read_as_they_were_written(text: str) -> None:
    assert layout.parse_cluster_id(layout.cluster_id_data(text)) == text


@given(st.text().map(TopicName), several)
def test_a_deletion_is_read_as_it_was_written(name: TopicName, replicas: tuple[NodeId, ...]) -> None:
    mark = DeletedTopic(name, replicas)
    assert layout.parse_deleted_topic(layout.deleted_topic_data(mark)) == mark


def test_a_deletion_of_an_older_version_is_read() -> None:
    assert layout.parse_deleted_topic(b'{"version":1,"name":"t"}') == DeletedTopic(TopicName("t"), ())


@given(st.uuids(), st.text())
def test_an_incarnation_is_read_as_it_was_written(directory_id: UUID, boot_id: str) -> None:
    incarnation = Incarnation(directory_id, boot_id)
    assert layout.parse_incarnation(layout.incarnation_data(incarnation)) == incarnation


@given(st.integers(0, 2**62))
def test_the_last_id_of_a_block_is_known(first: int) -> None:
    data = layout.producer_ids_data(NodeId(1), first)
    assert layout.parse_producer_ids(data) == first + layout.PRODUCER_ID_BLOCK_SIZE - 1


def test_somebody_who_knows_kafkas_zookeeper_reads_it() -> None:
    topic = TopicName("t")
    assert layout.topic_path(topic) == "/brokers/topics/t"
    assert layout.partition_path(topic, 3) == "/brokers/topics/t/partitions/3/state"
    assert layout.topic_config_path(topic) == "/config/topics/t"
    assert layout.broker_config_path(layout.DEFAULT_BROKER) == "/config/brokers/<default>"
    assert json.loads(layout.topic_data(TopicId(UUID(int=1)), [Assignment((NodeId(1), NodeId(2)))])) == {
        "version": 3,
        "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "partitions": {"0": [1, 2]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    assert json.loads(layout.config_data({"b": "2", "a": "1"})) == {"version": 1, "config": {"a": "1", "b": "2"}}
