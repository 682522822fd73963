"""Topics by the thousand, created and deleted in the middle of everything."""

from pathlib import Path

import pytest

from attacks.arena import create_topic, fetch_request, produced
from cordwood.errors import Error
from cordwood.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsRequestTopic,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsRequestTopic,
    CreateTopicsResponse,
    DeleteRecordsRequest,
    DeleteRecordsRequestPartition,
    DeleteRecordsRequestTopic,
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    DeleteTopicsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    ProduceRequest,
    ProduceRequestPartition,
    ProduceRequestTopic,
)
from support.batches import FETCH_VERSION, PRODUCE_VERSION, values_batch
from support.process import BrokerProcess
from support.raw import RawClient, encoded
from support.waiting import eventually


def produce_everywhere(topic: str, partitions: int) -> ProduceRequest:
    entries = [ProduceRequestPartition(index=n, records=values_batch(b"x")) for n in range(partitions)]
    return ProduceRequest(acks=1, topic_data=[ProduceRequestTopic(name=topic, partition_data=entries)])


def delete(topic: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name=topic)])


def test_a_topic_deleted_while_its_files_are_synced_does_no_harm(client: RawClient, topic: str) -> None:
    """The disk thread is busy with files whose directory has another name by the time it gets to them."""
    for number in range(5):
        name = f"{topic}-{number}"
        create_topic(client, name, {"flush.messages": 1}, partitions=40)
        requests = encoded(produce_everywhere(name, 40), version=PRODUCE_VERSION) + encoded(delete(name), version=6)
        client.send_bytes(requests)
        client.receive_frame()
        client.receive_frame()


def test_a_topic_deleted_while_clients_read_and_write_it_does_no_harm(broker: BrokerProcess, topic: str) -> None:
    with RawClient(broker.bootstrap) as reader, RawClient(broker.bootstrap) as writer:
        for _ in range(5):
            create_topic(writer, topic)
            produced(writer, topic, values_batch(b"x"))
            reader.send(fetch_request(topic, 1, max_wait_ms=10_000), version=FETCH_VERSION)
            records = DeleteRecordsRequestTopic(name=topic, partitions=[DeleteRecordsRequestPartition(offset=1)])
            writer.send(DeleteRecordsRequest(topics=[records]))
            writer.send(delete(topic))
            writer.send(produce_everywhere(topic, 1), version=PRODUCE_VERSION)
            for _ in range(3):
                writer.receive_frame()
            assert reader.receive_frame(), "who waits for a deleted topic is told at once"


@pytest.mark.parametrize("count", [2**31 - 1, 10_001, 0, -1, -(2**31)])
def test_a_number_of_partitions_out_of_range_is_refused(client: RawClient, topic: str, count: int) -> None:
    refused = (Error.INVALID_PARTITIONS, Error.POLICY_VIOLATION)
    if count != -1:  # the default
        assert create_topic(client, topic, partitions=count).error_code in refused
    create_topic(client, topic)
    more = CreatePartitionsRequestTopic(name=topic, count=count, assignments=None)
    answer = client.ask(CreatePartitionsRequest(topics=[more]), CreatePartitionsResponse)
    assert answer.results[0].error_code in refused


def test_many_topics_with_many_partitions_each_are_too_many(client: RawClient, topic: str) -> None:
    """Kafka's limit is on a whole request: 10,000 partitions."""
    topics = [
        CreateTopicsRequestTopic(name=f"{topic}-{number}", num_partitions=5000, replication_factor=1)
        for number in range(3)
    ]
    answer = client.ask(CreateTopicsRequest(topics=topics), CreateTopicsResponse)
    assert {outcome.error_code for outcome in answer.topics} == {Error.POLICY_VIOLATION}


def test_topics_by_asking_are_limited_too(client: RawClient, broker: BrokerProcess) -> None:
    """One request for metadata must not make twenty thousand directories."""
    asked = [MetadataRequestTopic(name=f"by-asking-{number}") for number in range(20_000)]
    client.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=True), MetadataResponse)
    assert len(list(broker.data.glob("by-asking-*"))) <= 1000


def test_thousands_of_names_that_might_collide_keep_nobody_waiting(client: RawClient, topic: str) -> None:
    """Whether a name collides must not cost a look at all others."""
    for number in range(2):
        topics = [
            CreateTopicsRequestTopic(name=f"{topic}_{number}_{index}", num_partitions=1, replication_factor=1)
            for index in range(1500)
        ]
        answer = client.ask(CreateTopicsRequest(topics=topics, validate_only=number == 1), CreateTopicsResponse)
        assert {outcome.error_code for outcome in answer.topics} == {Error.NONE}
    gone = [DeleteTopicsRequestTopic(name=f"{topic}_0_{index}") for index in range(1500)]
    client.ask(DeleteTopicsRequest(topics=gone), DeleteTopicsResponse)


def test_a_thousand_partitions_are_created_and_deleted(client: RawClient, broker: BrokerProcess, topic: str) -> None:
    files = broker.open_files
    assert create_topic(client, topic, partitions=1000).error_code == Error.NONE
    assert len(_directories(broker.data, topic)) == 1000
    gone = client.ask(delete(topic), DeleteTopicsResponse)
    assert gone.responses[0].error_code == Error.NONE
    eventually(lambda: not _directories(broker.data, topic), what="the removal of the files")
    eventually(lambda: broker.open_files <= files + 10, what="the release of the files")


def test_names_come_and_go_quickly(client: RawClient, topic: str) -> None:
    """Created and deleted in one breath, again and again: every request has its answer, and the last word counts."""
    creation = CreateTopicsRequestTopic(name=topic, num_partitions=3, replication_factor=1)
    create = encoded(CreateTopicsRequest(topics=[creation]), version=7)
    client.send_bytes((create + encoded(delete(topic), version=6)) * 20)
    for _ in range(40):
        assert client.receive_frame()
    client.ask(delete(topic), DeleteTopicsResponse)
    assert create_topic(client, topic).error_code == Error.NONE
    assert produced(client, topic, values_batch(b"x")).base_offset == 0


def _directories(data: Path, topic: str) -> list[Path]:
    return [path for path in data.iterdir() if path.name.startswith(f"{topic}-")]
