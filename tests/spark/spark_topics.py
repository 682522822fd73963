"""Topics with records of every kind, and a reader that has nothing to do with ours."""

import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic
from pyspark.sql import DataFrame, Row

from support.waiting import eventually

DEADLINE_S = 30.0
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Headers = list[tuple[str, str | bytes | None]] | None


class Read(NamedTuple):
    """A record as whoever read it says it is."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    timestamp_type: int
    headers: tuple[tuple[str, bytes | None], ...] | None


class Kafka:
    """A cluster, seen through librdkafka."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def make(self, topic: str, partitions: int = 1, **configs: object) -> str:
        config = {name.replace("_", "."): str(value) for name, value in configs.items()}
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=config)
        self.admin.create_topics([new])[topic].result(DEADLINE_S)
        return topic

    def set(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        wanted = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        self.admin.incremental_alter_configs([wanted])[wanted].result(DEADLINE_S)

    def grow(self, topic: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(DEADLINE_S)

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(DEADLINE_S)
        eventually(lambda: topic not in self.admin.list_topics(timeout=DEADLINE_S).topics, what=f"{topic} to be gone")

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        wanted = TopicPartition(topic, partition, before)
        self.admin.delete_records([wanted])[wanted].result(DEADLINE_S)

    def produce(
        self,
        topic: str,
        values: Iterable[bytes],
        *,
        partition: int = 0,
        codec: str = "none",
        timestamp_ms: int = 0,
    ) -> None:
        """Records with this time, or with the time that it is."""
        producer = self.producer(codec)
        for value in values:
            producer.produce(topic, value, partition=partition, timestamp=timestamp_ms)
        assert producer.flush(DEADLINE_S) == 0

    def producer(self, codec: str) -> Producer:
        return Producer(
            {"bootstrap.servers": self.bootstrap, "compression.type": codec, "linger.ms": 5, "log_level": 0}
        )

    def produce_random(self, topic: str, partitions: int, count: int, seed: int) -> None:
        """Records of every kind, in batches of every codec."""
        chance = random.Random(seed)
        first_ms = 1_700_000_000_000
        for codec in CODECS:
            producer = self.producer(codec)
            for _ in range(count // len(CODECS)):
                producer.produce(
                    topic,
                    value=_bytes(chance, 300),
                    key=_bytes(chance, 20),
                    partition=chance.randrange(partitions),
                    timestamp=first_ms + chance.randrange(100_000),
                    headers=_headers(chance),
                )
            assert producer.flush(DEADLINE_S) == 0

    def read(self, *topics: str, isolation: str = "read_committed") -> list[Read]:
        """All records of these topics, by topic, partition and offset."""
        config = {"bootstrap.servers": self.bootstrap, "group.id": "judge", "log_level": 0, "enable.auto.commit": False}
        config |= {"auto.offset.reset": "earliest", "enable.partition.eof": True, "isolation.level": isolation}
        consumer = Consumer(config)
        metadata = self.admin.list_topics(timeout=DEADLINE_S).topics
        wanted = [TopicPartition(t, p, 0) for t in topics for p in metadata[t].partitions]
        consumer.assign(wanted)
        found, open_ = [], len(wanted)
        while open_:
            message = consumer.poll(DEADLINE_S)
            assert message is not None, "the judge got no answer"
            if message.error():
                open_ -= 1
                continue
            found.append(_read(message))
        consumer.close()
        return sorted(found, key=lambda read: read[:3])

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """What a group has committed, as any Kafka tool sees it."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group, "log_level": 0})
        numbers = self.admin.list_topics(timeout=DEADLINE_S).topics[topic].partitions
        found = consumer.committed([TopicPartition(topic, number) for number in numbers], timeout=DEADLINE_S)
        consumer.close()
        return {entry.partition: entry.offset for entry in found if entry.offset >= 0}


def _bytes(chance: random.Random, most: int) -> bytes | None:
    return None if chance.random() < 0.1 else chance.randbytes(chance.randrange(most))


def _headers(chance: random.Random) -> Headers:
    if chance.random() < 0.5:
        return None
    names = ["a", "a", "trace-id", "grün", ""]
    return [(chance.choice(names), _bytes(chance, 9)) for _ in range(chance.randrange(1, 4))]


def _read(message: object) -> Read:
    kind, timestamp_ms = message.timestamp()  # type: ignore[attr-defined]
    headers = message.headers()  # type: ignore[attr-defined]
    return Read(
        message.topic(),  # type: ignore[attr-defined]
        message.partition(),  # type: ignore[attr-defined]
        message.offset(),  # type: ignore[attr-defined]
        message.key(),  # type: ignore[attr-defined]
        message.value(),  # type: ignore[attr-defined]
        timestamp_ms,
        kind - 1,  # librdkafka counts from "not available"
        tuple(headers) if headers else None,
    )


def collected(frame: DataFrame) -> list[Read]:
    """A table of the source as the judge would say it."""
    columns = "topic, partition, offset, key, value, unix_millis(timestamp) AS ms, timestampType"
    headers = ["headers"] if "headers" in frame.columns else []
    return sorted(
        (_row(row) for row in frame.selectExpr(*columns.split(", "), *headers).collect()), key=lambda r: r[:3]
    )


def _row(row: Row) -> Read:
    values = row.asDict()
    headers = values.get("headers")
    return Read(
        values["topic"],
        values["partition"],
        values["offset"],
        _or_none(values["key"]),
        _or_none(values["value"]),
        values["ms"],
        values["timestampType"],
        None if headers is None else tuple((h["key"], _or_none(h["value"])) for h in headers),
    )


def _or_none(value: bytearray | bytes | None) -> bytes | None:
    return None if value is None else bytes(value)


def without_headers(records: Sequence[Read]) -> list[Read]:
    return [record._replace(headers=None) for record in records]


def offsets_text(offsets: Mapping[int, int], topic: str) -> str:
    """Offsets as an option has them."""
    return f'{{"{topic}":{{' + ",".join(f'"{number}":{offset}' for number, offset in offsets.items()) + "}}"


def compacted(data: Path, topic: str) -> bool:
    """Is the first partition compacted as far as it can be, which is up to its active segment?"""
    checkpoint = data / "cleaner-offset-checkpoint"
    lines = checkpoint.read_text().splitlines() if checkpoint.exists() else []
    reached = [int(line.split()[2]) for line in lines if line.startswith(f"{topic} 0 ")]
    active = max(int(log.stem) for log in (data / f"{topic}-0").glob("*.log"))
    return reached == [active]
