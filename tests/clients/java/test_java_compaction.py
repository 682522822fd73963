"""Compacted segments hold against Kafka's own readers: its consumer, and its tool that looks into files."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.java.bridge import Jvm
from clients.java.client import JavaKafka, Sent
from cordwood.testing import Broker
from support.waiting import eventually

pytestmark = pytest.mark.java

DUMP = "org.apache.kafka.tools.DumpLogSegments"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(settings={"log.cleaner.backoff.ms": 50}) as broker:
        yield broker


def dump(jvm: Jvm, files: list[Path], *options: str) -> str:
    ran = jvm.run(DUMP, "--files", ",".join(map(str, files)), *options)
    assert ran.code == 0, ran
    return ran.out


def test_compacted_segments_are_read_by_kafkas_own_tools(jvm: Jvm, broker: Broker, topic: str) -> None:
    java = JavaKafka(jvm, broker.bootstrap)
    config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "index.interval.bytes": "100"}
    java.create_topic(topic, configs=config | {"internal.segment.bytes": "1500"})
    for number, codec in enumerate(CODECS * 4):
        sent = [Sent(b"%d" % number * 40, key=b"key-%d" % key) for key in range(number % 3, 12, 2)]
        java.produce(topic, [*sent, Sent(None, key=b"deleted")], compression_type=codec, linger_ms="50")
    directory = Path(broker.data) / f"{topic}-0"
    checkpoint = Path(broker.data) / "cleaner-offset-checkpoint"
    eventually(lambda: checkpoint.exists() and topic in checkpoint.read_text(), within_s=30, what="compaction")
    logs = sorted(directory.glob("*.log"))
    found = dump(jvm, logs, "--print-data-log", "--deep-iteration")
    assert "isvalid: false" not in found
    assert found.count("isvalid: true") == found.count("baseOffset: ")
    assert re.search(r"deleteHorizonMs: OptionalLong\[\d+\]", found), "a deletion has a time after which it goes"
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", found, re.MULTILINE)]
    assert offsets == sorted(set(offsets))
    for kind in ("index", "timeindex"):
        checked = dump(jvm, sorted(directory.glob(f"*.{kind}")), "--verify-index-only")
        assert "ismatch" not in checked
        assert "out of order" not in checked
