"""Four clients' ways to commit offsets and to ask for them, behind one small face. None of them joins the group."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import closing
from threading import Event
from typing import NamedTuple, Protocol

import aiokafka
import confluent_kafka
import kafka
from confluent_kafka import KafkaError, KafkaException
from kafka.structs import OffsetAndMetadata

from clients.drivers import DEADLINE_S, Aiokafka, Librdkafka
from clients.groups.events import Place
from clients.java.bridge import Jvm
from clients.java.client import DEFAULTS


class Kept(NamedTuple):
    """What is committed for a partition. No epoch: the client gave none, or cannot tell."""

    offset: int
    metadata: str = ""
    epoch: int | None = None


class Offsets(Protocol):
    """What each of the four can do."""

    name: str
    knows_metadata: bool
    knows_epochs: bool

    def commit(self, group: str, offsets: Mapping[Place, Kept]) -> None: ...

    def commit_async(self, group: str, offsets: Mapping[Place, Kept]) -> None:
        """By the call that does not wait; then wait for what it is told."""
        ...

    def committed(self, group: str, places: Iterable[Place]) -> dict[Place, Kept]: ...


class LibrdkafkaOffsets:
    name = "confluent-kafka"
    knows_metadata = True
    knows_epochs = True

    def __init__(self, bootstrap: str, jvm: Jvm) -> None:
        self._driver = Librdkafka(bootstrap)

    def commit(self, group: str, offsets: Mapping[Place, Kept]) -> None:
        with closing(self._driver.consumer(group_id=group)) as consumer:
            _raise_first(consumer.commit(offsets=_told_librdkafka(offsets), asynchronous=False) or [])

    def commit_async(self, group: str, offsets: Mapping[Place, Kept]) -> None:
        answered: list[KafkaError | None] = []
        told = Event()

        def on_commit(error: KafkaError | None, places: list[confluent_kafka.TopicPartition]) -> None:
            answered.extend([error, *(place.error for place in places)])
            told.set()

        with closing(self._driver.consumer(group_id=group, on_commit=on_commit)) as consumer:
            consumer.commit(offsets=_told_librdkafka(offsets), asynchronous=True)
            while not told.is_set():
                consumer.poll(0.05)
        assert not any(answered), answered

    def committed(self, group: str, places: Iterable[Place]) -> dict[Place, Kept]:
        asked = [confluent_kafka.TopicPartition(*place) for place in places]
        with closing(self._driver.consumer(group_id=group)) as consumer:
            found = consumer.committed(asked, timeout=DEADLINE_S)
        _raise_first(found)
        return {
            Place(one.topic, one.partition): Kept(one.offset, one.metadata or "", one.leader_epoch)
            for one in found
            if one.offset >= 0
        }


def _told_librdkafka(offsets: Mapping[Place, Kept]) -> list[confluent_kafka.TopicPartition]:
    return [
        confluent_kafka.TopicPartition(
            *place, kept.offset, metadata=kept.metadata, leader_epoch=-1 if kept.epoch is None else kept.epoch
        )
        for place, kept in offsets.items()
    ]


def _raise_first(answers: list[confluent_kafka.TopicPartition]) -> None:
    for answer in answers:
        if answer.error is not None:
            raise KafkaException(answer.error)


class AiokafkaOffsets:
    """It commits without epochs, has no second way to commit, and hands out the offset alone."""

    name = "aiokafka"
    knows_metadata = False
    knows_epochs = False

    def __init__(self, bootstrap: str, jvm: Jvm) -> None:
        self._driver = Aiokafka(bootstrap)

    def commit(self, group: str, offsets: Mapping[Place, Kept]) -> None:
        told = {aiokafka.TopicPartition(*place): (kept.offset, kept.metadata) for place, kept in offsets.items()}

        async def commit() -> None:
            async with self._driver.consumer(group_id=group) as consumer:
                consumer.assign(list(told))
                await consumer.commit(told)

        asyncio.run(asyncio.wait_for(commit(), DEADLINE_S))

    commit_async = commit

    def committed(self, group: str, places: Iterable[Place]) -> dict[Place, Kept]:
        asked = [aiokafka.TopicPartition(*place) for place in places]

        async def ask() -> dict[Place, Kept]:
            async with self._driver.consumer(group_id=group) as consumer:
                consumer.assign(asked)
                found = {place: await consumer.committed(place) for place in asked}
            return {Place(*place): Kept(offset) for place, offset in found.items() if offset is not None}

        return asyncio.run(asyncio.wait_for(ask(), DEADLINE_S))


class KafkaPythonOffsets:
    name = "kafka-python"
    knows_metadata = True
    knows_epochs = True

    def __init__(self, bootstrap: str, jvm: Jvm) -> None:
        self.bootstrap = bootstrap

    def _consumer(self, group: str) -> kafka.KafkaConsumer:
        return kafka.KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=group, enable_auto_commit=False)

    def commit(self, group: str, offsets: Mapping[Place, Kept]) -> None:
        with closing(self._consumer(group)) as consumer:
            consumer.assign([kafka.TopicPartition(*place) for place in offsets])
            consumer.commit(_told_kafka_python(offsets), timeout_ms=int(DEADLINE_S * 1_000))

    def commit_async(self, group: str, offsets: Mapping[Place, Kept]) -> None:
        with closing(self._consumer(group)) as consumer:
            consumer.assign([kafka.TopicPartition(*place) for place in offsets])
            future = consumer.commit_async(_told_kafka_python(offsets))
            while not future.is_done:
                consumer.poll(timeout_ms=20)
            if future.failed():
                raise future.exception

    def committed(self, group: str, places: Iterable[Place]) -> dict[Place, Kept]:
        with closing(self._consumer(group)) as consumer:
            found = {place: consumer.committed(kafka.TopicPartition(*place), metadata=True) for place in places}
        return {
            place: Kept(kept.offset, kept.metadata, None if kept.leader_epoch < 0 else kept.leader_epoch)
            for place, kept in found.items()
            if kept is not None
        }


def _told_kafka_python(offsets: Mapping[Place, Kept]) -> dict[kafka.TopicPartition, OffsetAndMetadata]:
    return {
        kafka.TopicPartition(*place): OffsetAndMetadata(
            kept.offset, kept.metadata, -1 if kept.epoch is None else kept.epoch
        )
        for place, kept in offsets.items()
    }


class JavaOffsets:
    name = "java"
    knows_metadata = True
    knows_epochs = True

    def __init__(self, bootstrap: str, jvm: Jvm) -> None:
        self.bootstrap = bootstrap
        self._jvm = jvm

    def _request(self, group: str, offsets: Mapping[Place, Kept]) -> dict[str, object]:
        config = {"bootstrap.servers": self.bootstrap, "group.id": group, "enable.auto.commit": "false", **DEFAULTS}
        return {"config": config, "offsets": [[*place, *kept] for place, kept in offsets.items()]}

    def commit(self, group: str, offsets: Mapping[Place, Kept]) -> None:
        assert self._jvm.ask("JavaOffsets", "commit", self._request(group, offsets)) == {}

    def commit_async(self, group: str, offsets: Mapping[Place, Kept]) -> None:
        assert self._jvm.ask("JavaOffsets", "commit-async", self._request(group, offsets)) == {}

    def committed(self, group: str, places: Iterable[Place]) -> dict[Place, Kept]:
        found = self._jvm.ask("JavaOffsets", "committed", self._request(group, dict.fromkeys(places, Kept(0))))
        return {Place(topic, partition): Kept(*kept) for topic, partition, *kept in found}


ALL = (LibrdkafkaOffsets, AiokafkaOffsets, KafkaPythonOffsets, JavaOffsets)
