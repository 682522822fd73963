"""Committed offsets: whoever commits them, whoever asks, and with all that is kept beside them."""

from typing import Final

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException

from clients.admins import LibrdkafkaAdmin
from clients.drivers import Librdkafka, Sent
from clients.groups import offsets
from clients.groups.crew import SETTLE_S, Crew, places, settle
from clients.groups.events import Place
from clients.groups.kinds import ALL, CONFLUENT, CONFLUENT_NEW, Kind, each
from clients.groups.offsets import Kept, LibrdkafkaOffsets, Offsets
from clients.java.bridge import Jvm
from support.waiting import eventually

SESSION_MS: Final = 30_000


@pytest.fixture
def everyone(bootstrap: str, jvm: Jvm) -> list[Offsets]:
    return [client(bootstrap, jvm) for client in offsets.ALL]


def visible(kept: Kept, *, writer: Offsets, reader: Offsets) -> Kept:
    """As much of it as this client hands out. confluent-kafka commits a C string's last byte too, and never sees it."""
    zero = "\0" if writer.name == "confluent-kafka" != reader.name else ""
    metadata = kept.metadata + zero if reader.knows_metadata else ""
    return Kept(kept.offset, metadata, kept.epoch if reader.knows_epochs else None)


@pytest.mark.java
@pytest.mark.parametrize("how", ["commit", "commit_async"])
def test_what_one_client_commits_all_see(everyone: list[Offsets], topic: str, name: str, how: str) -> None:
    first, second, third = (Place(topic, number) for number in range(3))
    for writer in everyone:
        group = f"{name}-{writer.name}"
        told = {first: Kept(17, f"by {writer.name}: ünï"), second: Kept(0, "", 0 if writer.knows_epochs else None)}
        getattr(writer, how)(group, {first: Kept(3)})
        getattr(writer, how)(group, told)
        for reader in everyone:
            seen = {place: visible(kept, writer=writer, reader=reader) for place, kept in told.items()}
            assert reader.committed(group, [first, second, third]) == seen, (writer.name, reader.name)


def commit_refused(bootstrap: str, jvm: Jvm, group: str, told: dict[Place, Kept]) -> int:
    with pytest.raises(KafkaException) as refused:
        LibrdkafkaOffsets(bootstrap, jvm).commit(group, told)
    code: int = refused.value.args[0].code()
    return code


@pytest.mark.java
def test_commits_that_make_no_sense_are_refused(bootstrap: str, jvm: Jvm, topic: str, name: str) -> None:
    def refusal(place: Place, kept: Kept) -> int:
        return commit_refused(bootstrap, jvm, name, {place: kept})

    assert refusal(Place(f"{topic}-unknown", 0), Kept(1)) == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert refusal(Place(topic, 4), Kept(1)) == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert refusal(Place(topic, 0), Kept(1, "x" * 4_096)) == KafkaError.OFFSET_METADATA_TOO_LARGE
    keeper = LibrdkafkaOffsets(bootstrap, jvm)
    assert keeper.committed(name, places(topic, 4)) == {}
    keeper.commit(name, {Place(topic, 0): Kept(1, "x" * 4_095)})
    assert keeper.committed(name, places(topic, 4)) == {Place(topic, 0): Kept(1, "x" * 4_095)}


@pytest.mark.java
@each(CONFLUENT, CONFLUENT_NEW)
def test_stranger_commits_nothing_to_a_group_with_members(
    crew: Crew, bootstrap: str, jvm: Jvm, topic: str, kind: Kind
) -> None:
    member = crew.start(kind)
    settle([member], places(topic, 4), [4])
    told = {Place(topic, 0): Kept(1)}
    assert commit_refused(bootstrap, jvm, crew.wish.group, told) == KafkaError.UNKNOWN_MEMBER_ID
    member.leave()
    LibrdkafkaOffsets(bootstrap, jvm).commit(crew.wish.group, told)


@pytest.mark.java
@each(*ALL)
def test_group_begins_where_it_was_told_to(crew: Crew, bootstrap: str, jvm: Jvm, topic: str, kind: Kind) -> None:
    Librdkafka(bootstrap).produce(topic, [Sent(b"x", partition=number % 4) for number in range(40)])
    LibrdkafkaOffsets(bootstrap, jvm).commit(crew.wish.group, {Place(topic, 1): Kept(7), Place(topic, 2): Kept(10)})
    member = crew.start(kind, commit_every=1)
    eventually(lambda: member.read_count == 23, within_s=SETTLE_S, what="the rest of the records")
    starts = dict.fromkeys(places(topic, 4), 0) | {Place(topic, 1): 7}
    firsts = {event.places[0]: event.offsets[0] for event in reversed(member.told("read"))}
    assert firsts == {place: start for place, start in starts.items() if place.partition != 2}
    crew.forget()


@each(CONFLUENT, CONFLUENT_NEW)
def test_deleted_topic_takes_its_offsets_along(
    bootstrap: str, admin: LibrdkafkaAdmin, topic: str, name: str, kind: Kind
) -> None:
    def committed() -> list[int]:
        consumer = Librdkafka(bootstrap).consumer(group_id=name)
        try:
            asked = [confluent_kafka.TopicPartition(topic, 0)]
            return [one.offset for one in consumer.committed(asked, timeout=20)]
        finally:
            consumer.close()

    consumer = Librdkafka(bootstrap).consumer(group_id=name, group_protocol=kind.protocol)
    consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 5)], asynchronous=False)
    consumer.close()
    assert committed() == [5]
    admin.delete(topic)
    eventually(lambda: topic not in admin.topics(), what="the topic's end")
    eventually(lambda: committed() == [confluent_kafka.OFFSET_INVALID], what="the end of its offsets")
