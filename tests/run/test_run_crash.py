"""A broker that is killed in the middle of its work: what it acknowledged is there when it comes back."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from cordwood.log.directory import CLEAN_STOP
from cordwood.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsRequestTopic,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    DeleteTopicsResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceResponse,
)
from support.batches import produce, values_batch
from support.process import BrokerProcess
from support.raw import RawClient
from support.waiting import eventually

TOPIC = "orders"
IN_FLIGHT_MAX = 1000


@pytest.mark.parametrize("acks", ["1", "all"])
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, acks: str) -> None:
    """Three lives of one broker on one port, each but the last killed under load."""
    broker = BrokerProcess(tmp_path).start()
    port = int(broker.bootstrap.rpartition(":")[2])
    acknowledged: list[bytes] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        value = message.value()
        assert isinstance(value, bytes)
        acknowledged.append(value)

    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": acks == "all",
            "acks": acks,
            "linger.ms": 1,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
    )
    sent = 0
    for _ in range(2):
        before = len(acknowledged)
        while len(acknowledged) < before + 2000:
            if len(producer) < IN_FLIGHT_MAX:
                producer.produce(TOPIC, str(sent).encode(), partition=0, on_delivery=delivered)
                sent += 1
            producer.poll(0 if len(producer) < IN_FLIGHT_MAX else 0.01)
        broker.kill()
        broker = BrokerProcess(tmp_path, port=port).start()
    assert producer.flush(60) == 0
    values = read_all(broker.bootstrap)
    assert set(acknowledged) <= set(values)
    if acks == "all":  # idempotent: once, and in order
        assert values == [str(number).encode() for number in range(sent)]
    assert broker.stop() == 0


def test_a_torn_batch_at_the_end_is_cut(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        with RawClient(broker.bootstrap) as client:
            create(client, TOPIC)
            append(client, TOPIC, b"whole")
        broker.kill()
    segment = tmp_path / f"{TOPIC}-0" / "00000000000000000000.log"
    whole = segment.read_bytes()
    segment.write_bytes(whole + whole[: len(whole) // 2])
    with BrokerProcess(tmp_path) as broker:
        with RawClient(broker.bootstrap) as client:
            assert append(client, TOPIC, b"next") == 1
        assert segment.read_bytes()[: len(whole)] == whole
        assert read_all(broker.bootstrap) == [b"whole", b"next"]


def test_topics_and_what_is_in_them_survive_a_clean_stop_without_recovery(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        with RawClient(broker.bootstrap) as client:
            create(client, TOPIC)
            append(client, TOPIC, b"kept")
            topic_id = topic_ids(client)[TOPIC]
        assert broker.stop() == 0
    assert (tmp_path / CLEAN_STOP).exists()
    with BrokerProcess(tmp_path) as broker:
        with RawClient(broker.bootstrap) as client:
            assert topic_ids(client) == {TOPIC: topic_id}
        assert read_all(broker.bootstrap) == [b"kept"]
        assert "recover" not in broker.log_text()


def test_a_deletion_frees_the_files_and_outlives_a_kill(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        with RawClient(broker.bootstrap) as client:
            for topic in ("first", "second"):
                create(client, topic, partitions=20)
            delete(client, "first")
            eventually(lambda: not list(tmp_path.glob("first-*")), what="the files of the deleted topic to go")
            delete(client, "second")
        broker.kill()
    with BrokerProcess(tmp_path) as broker, RawClient(broker.bootstrap) as client:
        assert topic_ids(client) == {}
        eventually(lambda: not list(tmp_path.glob("second-*")), what="the files of the deleted topic to go")
        create(client, "second")  # and the name is free again


def create(client: RawClient, topic: str, *, partitions: int = 1) -> None:
    wanted = CreateTopicsRequestTopic(name=topic, num_partitions=partitions, replication_factor=1)
    answer = client.ask(CreateTopicsRequest(topics=[wanted]), CreateTopicsResponse)
    assert answer.topics[0].error_code == 0, answer.topics[0].error_message


def delete(client: RawClient, topic: str) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name=topic)])
    assert client.ask(request, DeleteTopicsResponse).responses[0].error_code == 0


def append(client: RawClient, topic: str, value: bytes) -> int:
    """The offset of a new record."""
    answer = client.ask(produce(topic, values_batch(value)), ProduceResponse, version=9)
    (partition,) = answer.responses[0].partition_responses
    assert partition.error_code == 0, partition.error_message
    return partition.base_offset


def topic_ids(client: RawClient) -> dict[str | None, object]:
    return {topic.name: topic.topic_id for topic in client.ask(MetadataRequest(topics=None), MetadataResponse).topics}


def read_all(bootstrap: str) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "-", "enable.partition.eof": True, "log_level": 0})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    values: list[bytes] = []
    while True:
        message = consumer.poll(30)
        assert message is not None, "no end of the partition in sight"
        error = message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            consumer.close()
            return values
        assert error is None, error
        value = message.value()
        assert isinstance(value, bytes)
        values.append(value)
