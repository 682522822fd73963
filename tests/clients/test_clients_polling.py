"""Consumers that wait, brokers that come back, topics that come into being."""

import socket
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import confluent_kafka
import pytest
from kafka.net.inet import KafkaNetSocket

from clients.admins import KafkaPythonAdmin
from clients.drivers import Client, Librdkafka, MakeTopic, Sent
from clients.sessions import FEEDS, FETCH_WAIT_MS, TAILS
from cordwood.testing import Broker

EACH = pytest.mark.parametrize("which", list(TAILS))


@pytest.fixture
def closed_sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """kafka-python forgets the sockets of refused connections: close them in its place, lest Python complain later."""
    made: list[socket.socket] = []
    make = KafkaNetSocket.socket

    def remember(self: KafkaNetSocket, *arguments: int) -> socket.socket:
        made.append(make(self, *arguments))
        return made[-1]

    monkeypatch.setattr(KafkaNetSocket, "socket", remember)
    yield
    for one in made:
        one.close()


@EACH
def test_waiting_consumer_gets_a_record_when_it_comes(which: str, bootstrap: str, topic: str) -> None:
    producer = Librdkafka(bootstrap)
    began = monotonic()
    with TAILS[which](bootstrap, topic, 1) as tail:
        assert tail.nothing()
        for number in range(5):
            producer.produce(topic, [Sent(b"%d" % number)])
            assert [(record.offset, record.value) for record in tail.read(1)] == [(number, b"%d" % number)]
    assert monotonic() - began < FETCH_WAIT_MS / 1_000


@EACH
def test_consumer_at_the_end_sees_only_what_is_new(which: str, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    producer = Librdkafka(bootstrap)
    producer.produce(topic, [Sent(b"old", partition=number % 3) for number in range(30)])
    with TAILS[which](bootstrap, topic, 3) as tail:
        producer.produce(topic, [Sent(b"new", partition=number % 3) for number in range(6)])
        read = tail.read(6)
    assert sorted((record.partition, record.offset, record.value) for record in read) == [
        (place, offset, b"new") for place in range(3) for offset in (10, 11)
    ]


def test_records_arrive_in_order_in_each_partition(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    records = [Sent(b"%d" % number, partition=number * 7 % 3) for number in range(1_500)]
    client.produce(topic, records, batch_bytes=1_000, linger_ms=0, idempotent=True)
    found: defaultdict[int, list[tuple[int, bytes | None]]] = defaultdict(list)
    for record in client.consume(topic, {0: 0, 1: 0, 2: 0}, 1_500):
        found[record.partition].append((record.offset, record.value))
    for place in range(3):
        values = [record.value for record in records if record.partition == place]
        assert found[place] == list(enumerate(values))


@EACH
@pytest.mark.usefixtures("closed_sockets")
def test_clients_go_on_after_the_broker_comes_back(which: str, tmp_path: Path) -> None:
    broker = Broker(data=str(tmp_path)).start()
    try:
        bootstrap, port = broker.bootstrap, broker.port
        Librdkafka(bootstrap).produce("lasting", [Sent(b"first")])
        with FEEDS[which](bootstrap, "lasting") as feed, TAILS[which](bootstrap, "lasting", 1) as tail:
            assert [place.offset for place in feed([b"1", b"2"])] == [1, 2]
            assert [record.value for record in tail.read(2)] == [b"1", b"2"]
            broker.stop()
            broker = Broker(data=str(tmp_path), port=port).start()
            assert [place.offset for place in feed([b"3", b"4"])] == [3, 4]
            assert [record.value for record in tail.read(2)] == [b"3", b"4"]
    finally:
        broker.stop()


def test_topic_comes_into_being_with_its_first_record(client: Client, bootstrap: str, name: str) -> None:
    [placed] = client.produce(name, [Sent(b"x")])
    assert placed.offset == 0
    assert KafkaPythonAdmin(bootstrap).partitions(name) == [0, 1, 2, 3]
    [record] = client.consume(name, {placed.partition: 0}, 1)
    assert record.value == b"x"


def test_reading_makes_no_topic(bootstrap: str, name: str) -> None:
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        Librdkafka(bootstrap).ends(name, [0])
    assert refused.value.args[0].code() == confluent_kafka.KafkaError._UNKNOWN_PARTITION
    assert name not in KafkaPythonAdmin(bootstrap).topics()


def test_topics_do_not_come_by_themselves_where_that_is_off(name: str) -> None:
    with Broker(settings={"auto.create.topics.enable": False}) as broker:
        settings = {"bootstrap.servers": broker.bootstrap, "topic.metadata.propagation.max.ms": 100}
        producer = confluent_kafka.Producer(settings)
        with pytest.raises(confluent_kafka.KafkaException) as refused:
            Librdkafka(broker.bootstrap).send(producer, name, [Sent(b"x")])
        assert refused.value.args[0].code() == confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART
        assert KafkaPythonAdmin(broker.bootstrap).topics() == []
