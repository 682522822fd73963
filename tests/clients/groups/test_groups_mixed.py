"""Different clients in one group, and groups that change their protocol member by member while they read."""

from typing import Final

import pytest
from confluent_kafka import ConsumerGroupType

from clients.admins import LibrdkafkaAdmin, only
from clients.drivers import Librdkafka, Sent
from clients.groups.crew import Crew, places, settle
from clients.groups.events import Place
from clients.groups.kinds import AIOKAFKA, CONFLUENT, CONFLUENT_NEW, JAVA, JAVA_NEW, KAFKA_PYTHON, Kind

SESSION_MS: Final = 30_000

pytestmark = pytest.mark.java


def feed(bootstrap: str, topic: str) -> None:
    """25 records for each of four partitions."""
    Librdkafka(bootstrap).produce(topic, [Sent(b"%d" % number, partition=number % 4) for number in range(100)])


def ends(topic: str, rounds: int) -> dict[Place, int]:
    return dict.fromkeys(places(topic, 4), 25 * rounds)


def test_four_clients_share_four_partitions(crew: Crew, bootstrap: str, topic: str) -> None:
    feed(bootstrap, topic)
    members = [crew.start(kind) for kind in (CONFLUENT, AIOKAFKA, KAFKA_PYTHON, JAVA)]
    settle(members, places(topic, 4), [1, 1, 1, 1])
    feed(bootstrap, topic)
    crew.read_all(ends(topic, 2))
    for sizes in ([1, 1, 2], [2, 2], [4]):
        members.pop().leave()
        settle(members, places(topic, 4), sizes)
    feed(bootstrap, topic)
    crew.read_all(ends(topic, 3))
    crew.all_leave()
    crew.check(ends(topic, 3))


def test_two_clients_share_by_the_new_protocol(crew: Crew, bootstrap: str, topic: str) -> None:
    feed(bootstrap, topic)
    members = [crew.start(kind) for kind in (CONFLUENT_NEW, JAVA_NEW, CONFLUENT_NEW)]
    settle(members, places(topic, 4), [1, 1, 2])
    feed(bootstrap, topic)
    crew.read_all(ends(topic, 2))
    members.pop().leave()
    settle(members, places(topic, 4), [2, 2])
    crew.all_leave()
    crew.check(ends(topic, 2))


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_group_moves_to_the_new_protocol_and_back(
    crew: Crew, bootstrap: str, admin: LibrdkafkaAdmin, topic: str, assignor: str
) -> None:
    def kind_of_group() -> ConsumerGroupType:
        found: ConsumerGroupType = only(admin.client.describe_consumer_groups([crew.wish.group])).type
        return found

    def replace_both(old: str, new: Kind) -> None:
        """One comes before another of the old protocol leaves, and then one after."""
        for comes_first in (True, False):
            leaving = next(member for member in crew.alive if member.wish.protocol == old)
            if comes_first:
                crew.start(new)
                settle(crew.alive, places(topic, 4), [1, 1, 2])
            leaving.leave()
            if not comes_first:
                crew.start(new)
            settle(crew.alive, places(topic, 4), [2, 2])
            feed(bootstrap, topic)

    for client, sizes in ((CONFLUENT.client, [4]), (JAVA.client, [2, 2])):  # librdkafka leads
        crew.start(Kind(client, "classic", assignor))
        settle(crew.alive, places(topic, 4), sizes)
    feed(bootstrap, topic)
    replace_both("classic", CONFLUENT_NEW)
    assert kind_of_group() == ConsumerGroupType.CONSUMER
    replace_both("consumer", Kind(JAVA.client, "classic", assignor))
    assert kind_of_group() == ConsumerGroupType.CLASSIC
    crew.read_all(ends(topic, 5))
    crew.all_leave()
    crew.check(ends(topic, 5))
