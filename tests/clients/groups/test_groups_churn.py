"""Members join, leave, are killed and come back while records are written: each record is read once, by one owner.

It takes CHURN_SECONDS, which the environment may set: a minute is for those who have it.
"""

import logging
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Final

import confluent_kafka
import pytest

from clients.drivers import DEADLINE_S
from clients.groups.crew import Crew, reached
from clients.groups.events import Place
from clients.groups.history import secured
from clients.groups.kinds import AIOKAFKA, CONFLUENT, CONFLUENT_NEW, JAVA_NEW, KAFKA_PYTHON, Kind
from support.waiting import eventually

CHURN_S: Final = float(os.environ.get("CHURN_SECONDS", "10"))
MEMBERS_MAX: Final = 5
"""At a time."""
MEMBERS_MIN: Final = 5
"""Altogether, however long a slow machine takes for that."""
PARTITIONS: Final = 4
PAUSE_S: Final = 0.02
"""Between one record for each partition and the next."""
RECORDS_BETWEEN_ACTIONS: Final = 60
PATIENCE_S: Final = 30.0
"""A crash may stop all reading for a session timeout, and so may the next."""

CASES: Final = (
    pytest.param((CONFLUENT, AIOKAFKA, KAFKA_PYTHON), id="classic"),
    pytest.param((Kind(CONFLUENT.client, "classic", "cooperative-sticky"),), id="cooperative"),
    pytest.param((CONFLUENT_NEW, CONFLUENT_NEW, JAVA_NEW), id="consumer", marks=pytest.mark.java),
)


class Feeder:
    """Writes to all partitions of a topic until it is stopped, and knows what was acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.ends = {Place(topic, number): 0 for number in range(PARTITIONS)}
        self._producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._stopping = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._stopping.wait(PAUSE_S):
            for topic, partition in self.ends:
                self._producer.produce(topic, b"x", partition=partition, on_delivery=self._delivered)
            self._producer.poll(0)

    def _delivered(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        assert error is None, error
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        self.ends[Place(topic, partition)] = offset + 1

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            self._thread.join()
            assert self._producer.flush(DEADLINE_S) == 0


def act(crew: Crew, kinds: Sequence[Kind], chance: random.Random) -> None:
    """One thing happens to the group. There are always two members at least, and all of them are different."""
    alive = crew.alive
    mortal = [member for member in alive if member.alone]
    words = ["join"] if len(alive) < MEMBERS_MAX else []
    words += ["leave"] if len(alive) > 2 else []
    words += ["kill", "kill and come back"] if len(alive) > 2 and mortal else []
    word = chance.choice(words)
    if word == "leave":
        chance.choice(alive).ask_to_leave()
    elif word.startswith("kill"):
        chance.choice(mortal).kill()
    if word in ("join", "kill and come back"):
        kind = chance.choice(kinds)
        crew.start(kind, commit_every=chance.choice([1, 20, 50]))


def wait_for_records(crew: Crew) -> None:
    goal = records_read(crew) + RECORDS_BETWEEN_ACTIONS
    eventually(lambda: records_read(crew) >= goal, within_s=PATIENCE_S, what="progress")


def records_read(crew: Crew) -> int:
    return sum(reached(crew.events()).values())


def finish(crew: Crew, kind: Kind, ends: dict[Place, int]) -> None:
    """All is read, all is committed, and everybody has left."""
    crew.read_all(ends)
    crew.all_leave()
    if not ends.items() <= secured(crew.events()).items():
        # A busy machine may cost a member its session while it leaves. What it had read is for whoever comes next.
        crew.start(kind)
        crew.read_all(ends)
        crew.all_leave()


@pytest.mark.parametrize("kinds", CASES)
def test_each_record_is_read_once_whoever_comes_and_goes(
    crew: Crew, bootstrap: str, topic: str, kinds: tuple[Kind, ...], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "cordwood")  # it says whom the broker expels, and why
    chance = random.Random(f"{[str(kind) for kind in kinds]}")
    feeder = Feeder(bootstrap, topic)
    for kind in (kinds * 2)[:2]:
        crew.start(kind)
    deadline = monotonic() + CHURN_S
    with feeder.running():
        while monotonic() < deadline or len(crew.members) < MEMBERS_MIN:
            wait_for_records(crew)
            act(crew, kinds, chance)
    finish(crew, kinds[0], feeder.ends)
    crew.check(feeder.ends)
    assert sum(feeder.ends.values()) > 100
    assert sum(member.ended for member in crew.members) >= MEMBERS_MIN
    # A busy machine may cost a member its session; a broker that expelled members all the time would be another matter.
    lost = [event for event in crew.events() if event.kind == "lost" and event.places]
    assert len(lost) <= len(crew.members) // 4
