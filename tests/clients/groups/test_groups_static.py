"""Members with a name of their own (KIP-345): they come back to what they had, and nobody can be one of them twice."""

from typing import Final

from clients.groups.crew import SETTLE_S, Crew, Member, places, settle
from clients.groups.kinds import AIOKAFKA, CONFLUENT, CONFLUENT_NEW, JAVA, JAVA_NEW, KAFKA_PYTHON, Kind, each
from support.waiting import eventually

# Longer than any member takes to come back: if the group is shared out anew, it is not for a session that ended.
SESSION_MS: Final = 30_000

# What the clients say when another has their name.
FENCED: Final = ("FencedInstanceId", "Static consumer fenced")
UNRELEASED: Final = ("UnreleasedInstanceId", "instance ID is still used")


def start(crew: Crew, kind: Kind, instance: str) -> Member:
    return crew.start(kind, instance=instance)


@each(CONFLUENT, AIOKAFKA, KAFKA_PYTHON, JAVA)
def test_killed_member_that_comes_back_disturbs_nobody(crew: Crew, topic: str, kind: Kind) -> None:
    one, two = start(crew, kind, "one"), start(crew, kind, "two")
    settle([one, two], places(topic, 4), [2, 2])
    before, had = len(one.told("assigned")), two.owned
    if two.alone:
        two.kill()
    else:
        two.leave()  # such a member leaves without a word, which is as good as a kill
    back = start(crew, kind, "two")
    eventually(lambda: back.owned == had, within_s=SETTLE_S, what="the same partitions")
    assert len(one.told("assigned")) == before
    assert len(one.owned) == 2


@each(CONFLUENT, JAVA)
def test_newcomer_with_the_same_name_fences_the_old_member(crew: Crew, topic: str, kind: Kind) -> None:
    """The classic protocol believes that the old one is dead. aiokafka and kafka-python do not understand the error."""
    old = start(crew, kind, "same")
    settle([old], places(topic, 4), [4])
    new = start(crew, kind, "same")
    eventually(lambda: new.owned == places(topic, 4), within_s=SETTLE_S, what="the newcomer's partitions")
    eventually(lambda: old.complains_of(*FENCED), within_s=SETTLE_S, what="the old member's fencing")
    old.declare_lost()


@each(CONFLUENT_NEW, JAVA_NEW)
def test_newcomer_is_refused_while_the_name_is_in_use(crew: Crew, topic: str, kind: Kind) -> None:
    """The new protocol believes that the old one is alive until it says farewell, or is silent for too long."""
    old = start(crew, kind, "same")
    settle([old], places(topic, 4), [4])
    new = start(crew, kind, "same")
    eventually(lambda: new.complains_of(*UNRELEASED), within_s=SETTLE_S, what="the newcomer's refusal")
    assert old.owned == places(topic, 4)
    assert new.told("assigned") == []


@each(CONFLUENT_NEW, JAVA_NEW)
def test_name_is_free_after_a_farewell(crew: Crew, topic: str, kind: Kind) -> None:
    one, two = start(crew, kind, "one"), start(crew, kind, "two")
    settle([one, two], places(topic, 4), [2, 2])
    had, before = two.owned, len(one.told("assigned"))
    two.leave()
    back = start(crew, kind, "two")
    eventually(lambda: back.owned == had, within_s=SETTLE_S, what="the same partitions")
    assert len(one.told("assigned")) == before
