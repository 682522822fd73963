"""A broker whose timeouts are short, and members that are gone when a test ends.

To check the tests themselves, let them run on Apache Kafka: CLIENT_TESTS_PEER=kafka. It is started with the same
settings, and restarted where the test does that.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol
from uuid import uuid4

import pytest
from benchmarks.brokers import free_port

from clients.admins import LibrdkafkaAdmin
from clients.groups.crew import Crew, JavaHost
from clients.groups.events import Wish
from cordwood.testing import Broker
from support.kafka import KafkaProcess
from support.process import BrokerProcess
from support.waiting import eventually

ON_KAFKA: Final = os.environ.get("CLIENT_TESTS_PEER") == "kafka"

SESSION_TIMEOUT_MS: Final = 2_000
HEARTBEAT_MS: Final = 250
SETTINGS: Final[Mapping[str, object]] = {
    "num.partitions": 4,
    "offsets.topic.num.partitions": 4,
    "offsets.topic.replication.factor": 1,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1_000,
    "group.consumer.session.timeout.ms": SESSION_TIMEOUT_MS,
    "group.consumer.min.session.timeout.ms": 1_000,
    "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.assignment.interval.ms": 0,
}


class RunningBroker(Protocol):
    """Ours or Kafka, in a process of its own."""

    @property
    def bootstrap(self) -> str: ...

    def start(self) -> object: ...

    def stop(self) -> object: ...

    def kill(self) -> None: ...


MakeBroker = Callable[..., RunningBroker]


@pytest.fixture(scope="session")
def peers() -> Iterator[Callable[[Mapping[str, object]], str]]:
    """Apache Kafka for all tests that need the same settings: it starts slowly."""
    made: dict[str, KafkaProcess] = {}

    def get(settings: Mapping[str, object]) -> str:
        if (key := repr(settings)) not in made:
            made[key] = KafkaProcess(Path(directory) / f"{len(made)}", settings)
            made[key].start()
        return made[key].bootstrap

    with tempfile.TemporaryDirectory(prefix="kafka-") as directory:
        yield get
        for kafka in made.values():
            kafka.stop()


@pytest.fixture(scope="module")
def session_ms(request: pytest.FixtureRequest) -> int:
    """A module that waits for no session's end names a long one: no member then loses its own to a slow machine."""
    return int(getattr(request.module, "SESSION_MS", SESSION_TIMEOUT_MS))


@pytest.fixture(scope="module")
def bootstrap(request: pytest.FixtureRequest, session_ms: int) -> Iterator[str]:
    """One broker for the tests of a module, which may name settings of its own."""
    session = {"group.consumer.session.timeout.ms": session_ms}
    settings = {**SETTINGS, **session, **getattr(request.module, "BROKER_SETTINGS", {})}
    if ON_KAFKA:
        yield request.getfixturevalue("peers")(settings)
        return
    with Broker(settings=settings) as broker:
        yield broker.bootstrap


@pytest.fixture
def make_broker(tmp_path: Path) -> Iterator[MakeBroker]:
    """Start a broker of the test's own, to be stopped or killed and started again."""
    made: list[RunningBroker] = []

    def make() -> RunningBroker:
        data = tmp_path / f"broker-{len(made)}"
        broker: RunningBroker
        if ON_KAFKA:
            broker = KafkaProcess(data, SETTINGS)
        else:
            broker = BrokerProcess(data, settings=SETTINGS, port=free_port())
        made.append(broker)
        broker.start()
        return broker

    yield make
    for broker in made:
        broker.stop()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test and no other run uses, legal as a topic's."""
    words = f"{request.path.stem.removeprefix('test_')}-{request.node.name.removeprefix('test_')}-{uuid4().hex[:8]}"
    return "".join(letter if letter.isalnum() else "-" for letter in words).strip("-")[:200]


@pytest.fixture
def admin(bootstrap: str) -> LibrdkafkaAdmin:
    return LibrdkafkaAdmin(bootstrap)


@pytest.fixture
def topic(admin: LibrdkafkaAdmin, name: str) -> str:
    """The test's topic with four partitions."""
    return create_topic(admin, name, partitions=4)


def create_topic(admin: LibrdkafkaAdmin, name: str, *, partitions: int) -> str:
    """Not only accepted, but known: Kafka's parts learn of it one after the other."""
    admin.create(name, partitions=partitions)
    eventually(lambda: name in admin.topics() and len(admin.partitions(name)) == partitions, what="the topic")
    return name


@pytest.fixture(scope="session")
def java_host() -> Iterator[JavaHost]:
    host = JavaHost()
    yield host
    host.end()


MakeCrew = Callable[[str], Crew]


@pytest.fixture
def make_crew(name: str, java_host: JavaHost, session_ms: int) -> Iterator[MakeCrew]:
    """Members on any broker. What they went through is judged at the end of the test."""
    made: list[Crew] = []

    def make(bootstrap: str) -> Crew:
        wish = Wish("", "", bootstrap, f"group-{name}", (name,))
        made.append(Crew(replace(wish, session_timeout_ms=session_ms, heartbeat_ms=HEARTBEAT_MS), java_host))
        return made[-1]

    yield make
    for crew in made:
        crew.end()
    for crew in made:
        if crew.judged:
            crew.check()


@pytest.fixture
def crew(make_crew: MakeCrew, bootstrap: str) -> Crew:
    """Members on the shared broker. Without other words they join the test's group and read the test's topic."""
    return make_crew(bootstrap)
