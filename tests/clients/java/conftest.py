"""One JVM and one broker for all tests of Kafka's Java client and tools.

To check the tests themselves against Apache Kafka, name a running one: JAVA_TESTS_BOOTSTRAP=host:port and
JAVA_TESTS_LOG_DIR=its log.dirs.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from clients.java.bridge import Jvm
from clients.java.client import JavaKafka


@dataclass(frozen=True, slots=True)
class Target:
    """The broker under test: its address and the directory of its logs."""

    bootstrap: str
    data: Path


@pytest.fixture(scope="session")
def target() -> Iterator[Target]:
    if bootstrap := os.environ.get("JAVA_TESTS_BOOTSTRAP"):
        yield Target(bootstrap, Path(os.environ["JAVA_TESTS_LOG_DIR"]))
        return
    from cordwood.testing import Broker

    with Broker() as broker:
        yield Target(broker.bootstrap, Path(broker.data))


@pytest.fixture
def java(jvm: Jvm, target: Target) -> JavaKafka:
    return JavaKafka(jvm, target.bootstrap)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses, legal as a topic's."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name).strip("-")[:200]
