"""A broker that comes back knows its groups: they go on from their committed offsets, without anybody's help."""

from functools import partial

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from clients.admins import LibrdkafkaAdmin
from clients.drivers import DEADLINE_S, Librdkafka, Sent
from clients.groups.conftest import MakeBroker, MakeCrew, create_topic
from clients.groups.events import Place
from clients.groups.kinds import ALL
from support.waiting import eventually


def _committed(consumer: Consumer, places: list[TopicPartition]) -> list[TopicPartition]:
    """Nothing while the broker looks for what it knows: librdkafka leaves it to the user to try again."""
    try:
        return consumer.committed(places, timeout=DEADLINE_S)
    except KafkaException as error:
        if error.args[0].code() not in (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS):
            raise
        return []


@pytest.mark.java
@pytest.mark.parametrize("crash", [False, True], ids=["stop", "kill"])
def test_groups_go_on_after_a_restart(make_broker: MakeBroker, make_crew: MakeCrew, name: str, crash: bool) -> None:
    """All kinds of clients at once, each a group of its own."""
    broker = make_broker()
    create_topic(LibrdkafkaAdmin(broker.bootstrap), name, partitions=4)
    ends = {Place(name, number): 25 for number in range(4)}
    records = [Sent(b"%d" % number, partition=number % 4) for number in range(100)]
    Librdkafka(broker.bootstrap).produce(name, records)
    crew = make_crew(broker.bootstrap)
    groups = {kind: f"{name}-{kind}" for kind in ALL}
    for kind, group in groups.items():
        for _ in range(2 if kind.client == "confluent-kafka" else 1):
            crew.start(kind, group=group, commit_every=1)
    for group in groups.values():
        crew.read_all(ends, group)
    if crash:
        broker.kill()
    else:
        broker.stop()
    broker.start()
    Librdkafka(broker.bootstrap).produce(name, records)
    twice = {place: 2 * end for place, end in ends.items()}
    for group in groups.values():
        crew.read_all(twice, group)
    crew.all_leave()
    crew.check(twice)


@pytest.mark.parametrize("crash", [False, True], ids=["stop", "kill"])
def test_offsets_of_groups_without_members_are_kept(make_broker: MakeBroker, name: str, crash: bool) -> None:
    broker = make_broker()
    create_topic(LibrdkafkaAdmin(broker.bootstrap), name, partitions=4)
    groups = [f"{name}-{number}" for number in range(20)]
    for number, group in enumerate(groups):
        consumer = Librdkafka(broker.bootstrap).consumer(group_id=group)
        told = [TopicPartition(name, place, number + place, metadata=group) for place in range(4)]
        consumer.commit(offsets=told, asynchronous=False)
        consumer.close()
    if crash:
        broker.kill()
    else:
        broker.stop()
    broker.start()
    for number, group in enumerate(groups):
        consumer = Librdkafka(broker.bootstrap).consumer(group_id=group)
        asked = [TopicPartition(name, place) for place in range(4)]
        found = eventually(partial(_committed, consumer, asked), within_s=DEADLINE_S, what="the coordinator")
        consumer.close()
        assert [(one.offset, one.metadata) for one in found] == [(number + place, group) for place in range(4)]
