"""Every client with every protocol that it has, for tests that hold for each."""

from dataclasses import dataclass
from typing import Final

import pytest


@dataclass(frozen=True, slots=True)
class Kind:
    """A client, a protocol, and an assignor: the client's own in the classic protocol, the broker's in the other."""

    client: str
    protocol: str
    assignor: str

    def __str__(self) -> str:
        return f"{self.client}-{self.protocol}-{self.assignor}"


CONFLUENT: Final = Kind("confluent-kafka", "classic", "range")
CONFLUENT_NEW: Final = Kind("confluent-kafka", "consumer", "uniform")
AIOKAFKA: Final = Kind("aiokafka", "classic", "range")
KAFKA_PYTHON: Final = Kind("kafka-python", "classic", "range")
JAVA: Final = Kind("java", "classic", "range")
JAVA_NEW: Final = Kind("java", "consumer", "uniform")

ALL: Final = (CONFLUENT, CONFLUENT_NEW, AIOKAFKA, KAFKA_PYTHON, JAVA, JAVA_NEW)


def each(*kinds: Kind) -> pytest.MarkDecorator:
    """Run a test with each of these as its `kind`."""
    marks = [(pytest.mark.java,) if kind.client == "java" else () for kind in kinds]
    return pytest.mark.parametrize(
        "kind", [pytest.param(kind, id=str(kind), marks=mark) for kind, mark in zip(kinds, marks, strict=True)]
    )
