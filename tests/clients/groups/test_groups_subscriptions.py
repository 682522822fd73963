"""Groups grow with what they read: partitions, topics, and topics that a pattern finds."""

from typing import Final

from clients.admins import LibrdkafkaAdmin
from clients.groups.crew import Crew, places, settle
from clients.groups.kinds import AIOKAFKA, ALL, CONFLUENT, CONFLUENT_NEW, JAVA, JAVA_NEW, KAFKA_PYTHON, Kind, each

SESSION_MS: Final = 30_000


@each(*ALL)
def test_added_partitions_are_shared_out(crew: Crew, topic: str, admin: LibrdkafkaAdmin, kind: Kind) -> None:
    for _ in range(2):
        crew.start(kind)
    settle(crew.members, places(topic, 4), [2, 2])
    admin.grow(topic, total=6)
    settle(crew.members, places(topic, 6), [3, 3])


@each(CONFLUENT, AIOKAFKA, KAFKA_PYTHON, JAVA)
def test_pattern_of_a_client_finds_later_topics(crew: Crew, admin: LibrdkafkaAdmin, name: str, kind: Kind) -> None:
    admin.create(f"{name}-a", partitions=2)
    admin.create(f"{name}-other", partitions=2)
    for _ in range(2):
        crew.start(kind, pattern=f"{name}-[abc]")
    settle(crew.members, places(f"{name}-a", 2), [1, 1])
    admin.create(f"{name}-b", partitions=4)
    settle(crew.members, places(f"{name}-a", 2) | places(f"{name}-b", 4), [3, 3])


def test_pattern_of_the_broker_finds_later_topics(crew: Crew, admin: LibrdkafkaAdmin, name: str) -> None:
    """Kafka looks for new topics no more often than every ten seconds, so this is one test for both clients."""
    admin.create(f"{name}-a", partitions=2)
    admin.create(f"{name}-other", partitions=2)
    groups = [
        [crew.start(kind, group=f"{name}-{kind}", pattern=f"{name}-(a|b{{1,2}})") for _ in range(2)]
        for kind in (CONFLUENT_NEW, JAVA_NEW)
    ]
    for members in groups:
        settle(members, places(f"{name}-a", 2), [1, 1])
    admin.create(f"{name}-bb", partitions=2)
    for members in groups:
        settle(members, places(f"{name}-a", 2) | places(f"{name}-bb", 2), [2, 2])


@each(CONFLUENT, CONFLUENT_NEW, JAVA_NEW)
def test_topic_may_come_after_its_readers(crew: Crew, admin: LibrdkafkaAdmin, name: str, kind: Kind) -> None:
    admin.create(f"{name}-1", partitions=1)
    member = crew.start(kind, topics=(f"{name}-1", f"{name}-2"))
    settle([member], places(f"{name}-1", 1), [1])
    admin.create(f"{name}-2", partitions=2)
    settle([member], places(f"{name}-1", 1) | places(f"{name}-2", 2), [3])


@each(CONFLUENT, CONFLUENT_NEW, JAVA, JAVA_NEW)
def test_members_may_read_different_topics(crew: Crew, admin: LibrdkafkaAdmin, name: str, kind: Kind) -> None:
    topics = [f"{name}-{number}" for number in range(3)]
    for topic in topics:
        admin.create(topic, partitions=2)
    first = crew.start(kind, topics=(topics[0], topics[1]))
    second = crew.start(kind, topics=(topics[1], topics[2]))
    settle([first, second], set().union(*(places(topic, 2) for topic in topics)), [3, 3])
    assert places(topics[0], 2) < first.owned
    assert places(topics[2], 2) < second.owned
