"""Members of one group share its partitions evenly, whatever their client and the protocol; groups share nothing."""

from functools import partial
from itertools import count
from typing import Final

from clients.admins import LibrdkafkaAdmin
from clients.drivers import Librdkafka, Sent
from clients.groups.conftest import HEARTBEAT_MS, SESSION_TIMEOUT_MS, create_topic
from clients.groups.crew import Crew, places, settle
from clients.groups.events import Place
from clients.groups.kinds import ALL, CONFLUENT, CONFLUENT_NEW, JAVA, JAVA_NEW, KAFKA_PYTHON, Kind, each
from support.waiting import in_time

# A session's end, a heartbeat in which others are told, and what a busy machine adds.
TAKEOVER_LIMIT_S: Final = (SESSION_TIMEOUT_MS + 2 * HEARTBEAT_MS) / 1_000 + 2.0


@each(*ALL)
def test_partitions_are_shared_and_a_killed_members_are_taken_over(
    crew: Crew, topic: str, name: str, kind: Kind
) -> None:
    everything = places(topic, 4)
    numbers = count()

    def take_over() -> float:
        """How long after its kill a member's partition has another owner, in a group of its own."""
        start = partial(crew.start, kind, group=f"{name}-{next(numbers)}")
        members = [start(alone=True), start()]
        settle(members, everything, [2, 2])
        members += [start(), start()]
        settle(members, everything, [1, 1, 1, 1])
        members.append(start())
        settle(members, everything, [1, 1, 1, 1, 0])
        [idle] = [member for member in members if not member.owned]
        victim = next(member for member in members if member.alone and member.owned)
        killed_at = victim.kill()
        settle([member for member in members if member is not victim], everything, [1, 1, 1, 1])
        return idle.told("assigned")[-1].at - killed_at

    in_time(take_over, limit_s=TAKEOVER_LIMIT_S)


@each(*ALL)
def test_every_group_gets_everything_of_all_its_topics(
    crew: Crew, bootstrap: str, admin: LibrdkafkaAdmin, name: str, kind: Kind
) -> None:
    topics = (f"{name}-a", f"{name}-b")
    ends: dict[Place, int] = {}
    for topic in topics:
        create_topic(admin, topic, partitions=2)
        Librdkafka(bootstrap).produce(topic, [Sent(b"%d" % number, partition=number % 2) for number in range(50)])
        ends |= {Place(topic, 0): 25, Place(topic, 1): 25}
    for group in ("one", "one", "two"):
        crew.start(kind, group=f"{name}-{group}", topics=topics)
    for group in ("one", "two"):
        crew.read_all(ends, f"{name}-{group}")
    crew.all_leave()
    crew.check(ends)


@each(
    Kind(CONFLUENT.client, "classic", "cooperative-sticky"),
    Kind(KAFKA_PYTHON.client, "classic", "cooperative-sticky"),
    Kind(JAVA.client, "classic", "cooperative-sticky"),
    CONFLUENT_NEW,
    JAVA_NEW,
)
def test_nothing_is_taken_from_a_member_but_what_another_gets(crew: Crew, topic: str, kind: Kind) -> None:
    everything = places(topic, 4)
    first = crew.start(kind)
    settle([first], everything, [4])
    second = crew.start(kind)
    settle([first, second], everything, [2, 2])
    assert {place for event in first.told("revoked") for place in event.places} == second.owned
    second.leave()
    settle([first], everything, [4])
    assert len([place for event in first.told("assigned") for place in event.places]) == 6
    assert first.told("lost") == []
