"""Kafka's Java client as Python objects: records to send, places they got, records read back."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from clients.java.bridge import Json, Jvm

Headers = Sequence[tuple[str, bytes | None]]

# Short, so that a broken broker fails a test soon; the deadline of a delivery must hold both others.
DEFAULTS: Final = {"request.timeout.ms": "15000", "default.api.timeout.ms": "20000"}
PRODUCER_DEFAULTS: Final = {"linger.ms": "5", "delivery.timeout.ms": "30000"}
# A consumer that closes waits for its last fetch.
CONSUMER_DEFAULTS: Final = {"fetch.max.wait.ms": "50"}


@dataclass(frozen=True, slots=True)
class Sent:
    """A record to send. No partition: the client's partitioner chooses. No timestamp: the client's clock."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a record went, or the Java exception that it met instead."""

    partition: int = -1
    offset: int = -1
    timestamp_ms: int = -1
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Read:
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class JavaKafka:
    """Kafka's Java producer, consumer and admin client, bound to one broker. Every call makes a client of its own."""

    def __init__(self, jvm: Jvm, bootstrap: str) -> None:
        self._jvm = jvm
        self.bootstrap = bootstrap

    def produce(self, topic: str, records: Sequence[Sent], **config: str) -> list[Placed]:
        """Send what must be stored. Config names are written with underscores."""
        placed = self.try_produce(topic, records, **config)
        assert [place.error for place in placed if place.error] == []
        return placed

    def try_produce(self, topic: str, records: Sequence[Sent], **config: str) -> list[Placed]:
        """Send them all, then wait for all; some may have met an error."""
        request = {
            "config": self._config(PRODUCER_DEFAULTS, config),
            "records": [_sent_json(topic, record) for record in records],
        }
        return [Placed(**place) for place in self._jvm.ask("JavaClient", "produce", request)]

    def consume(self, topic: str, starts: Mapping[int, int], count: int, **config: str) -> list[Read]:
        """Read by assignment: each partition from its offset on, until `count` records have come."""
        partitions = [[topic, partition, offset] for partition, offset in starts.items()]
        request = {"config": self._config(CONSUMER_DEFAULTS, config), "partitions": partitions, "count": count}
        return [_read(record) for record in self._jvm.ask("JavaClient", "consume", request)]

    def offsets_for_times(self, topic: str, times_ms: Mapping[int, int]) -> dict[int, tuple[int, int] | None]:
        """By partition: the first offset at or after the time, and that record's own time."""
        partitions = [[topic, partition, time_ms] for partition, time_ms in times_ms.items()]
        request = {"config": self._config({}, {}), "partitions": partitions}
        found = self._jvm.ask("JavaClient", "offsets-for-times", request)
        return {int(partition): None if place is None else (place[0], place[1]) for partition, place in found.items()}

    def admin(self, command: str, **request: object) -> Json:
        """One command of JavaAdmin.java."""
        return self._jvm.ask("JavaAdmin", command, {"config": self._config({}, {}), **request})

    def create_topic(self, topic: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic that the test needs."""
        answer = self.try_create_topic(topic, partitions=partitions, configs=configs)
        assert "error" not in answer, answer

    def try_create_topic(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
        assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> Json:
        """Ask for a topic; return what the admin client learned, an error included."""
        return self.admin(
            "create-topic",
            topic=topic,
            partitions=partitions,
            replication_factor=replication_factor,
            configs=dict(configs or {}),
            assignments=assignments,
            validate_only=validate_only,
        )

    def _config(self, defaults: Mapping[str, str], config: Mapping[str, str]) -> dict[str, str]:
        named = {name.replace("_", "."): value for name, value in config.items()}
        return {"bootstrap.servers": self.bootstrap, **DEFAULTS, **defaults, **named}


def _sent_json(topic: str, record: Sent) -> dict[str, object]:
    return {
        "topic": topic,
        "partition": record.partition,
        "timestamp_ms": record.timestamp_ms,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[name, _text(value)] for name, value in record.headers],
    }


def _read(record: Json) -> Read:
    return Read(
        topic=record["topic"],
        partition=record["partition"],
        offset=record["offset"],
        timestamp_ms=record["timestamp_ms"],
        key=_bytes(record["key"]),
        value=_bytes(record["value"]),
        headers=tuple((name, _bytes(value)) for name, value in record["headers"]),
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
