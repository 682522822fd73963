"""A group takes no more members than the broker allows, and goes on with those that it has."""

from typing import Final

from clients.groups.crew import SETTLE_S, Crew, places, settle
from clients.groups.kinds import ALL, Kind, each
from support.waiting import eventually

SESSION_MS: Final = 30_000

BROKER_SETTINGS: Final = {"group.max.size": 2, "group.consumer.max.size": 2}

# What the clients say; aiokafka does not know the error.
FULL: Final = ("GROUP_MAX_SIZE_REACHED", "GroupMaxSizeReached", "GROUP_MAX_SIZE", "maximum size", "UnknownError")


@each(*ALL)
def test_third_member_is_refused(crew: Crew, topic: str, kind: Kind) -> None:
    pair = [crew.start(kind) for _ in range(2)]
    settle(pair, places(topic, 4), [2, 2])
    third = crew.start(kind)
    eventually(lambda: third.complains_of(*FULL), within_s=SETTLE_S, what="the third member's refusal")
    assert not third.owned
    settle(pair, places(topic, 4), [2, 2])
