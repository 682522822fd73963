"""One broker for the tests of each module, and topics that no two tests share.

To check the tests themselves against Apache Kafka, name a running one: CLIENT_TESTS_BOOTSTRAP=host:port. Its topics
must not be those of an earlier run, and it must make topics with 4 partitions.
"""

import os
from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from clients.drivers import DEADLINE_S, DRIVERS, Client, MakeTopic
from clients.java.bridge import Jvm
from clients.kcat import Kcat
from cordwood.testing import Broker


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers, one of them has the JVM: to load Kafka's classes takes longer than to use them."""
    for item in items:
        if "jvm" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("jvm"))


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    if running := os.environ.get("CLIENT_TESTS_BOOTSTRAP"):
        yield running
        return
    with Broker(settings={"num.partitions": 4}) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="session")
def jvm() -> Iterator[Jvm]:
    """For Kafka's own client and tools."""
    with Jvm() as jvm:
        yield jvm


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.name)
def client(request: pytest.FixtureRequest, bootstrap: str) -> Client:
    """Each of the clients in turn."""
    client: Client = request.param(bootstrap)
    return client


@pytest.fixture
def kcat(bootstrap: str) -> Kcat:
    return Kcat(bootstrap)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses, legal as a topic's."""
    words = f"{request.path.stem.removeprefix('test_clients_')}-{request.node.name.removeprefix('test_')}"
    return "".join(letter if letter.isalnum() else "-" for letter in words).strip("-")[:200]


@pytest.fixture
def make_topic(bootstrap: str, name: str) -> MakeTopic:
    def make(*, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        [made] = admin.create_topics(
            [NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(configs or {}))]
        ).values()
        made.result(DEADLINE_S)
        return name

    return make


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    """The test's topic with one partition."""
    return make_topic()
