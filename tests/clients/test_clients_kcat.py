"""kcat, the tool that people reach for first: metadata, producing, consuming from anywhere, offsets by time."""

import json

import pytest

from clients.drivers import Librdkafka, MakeTopic, Sent
from clients.kcat import Kcat

BEGIN_MS = 1_700_000_000_000


def test_metadata_shows_brokers_and_topics(kcat: Kcat, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    found = json.loads(kcat.run("-L", "-J", "-t", topic))
    [node] = found["brokers"]
    assert node["name"] == bootstrap
    [shown] = found["topics"]
    assert shown["topic"] == topic
    identity = [{"id": node["id"]}]
    assert shown["partitions"] == [
        {"partition": place, "leader": node["id"], "replicas": identity, "isrs": identity} for place in range(3)
    ]
    assert f'topic "{topic}" with 3 partitions' in kcat.run("-L")


def test_metadata_of_a_missing_topic_says_so(kcat: Kcat, name: str) -> None:
    assert "Unknown topic or partition" in kcat.run("-L", "-X", "allow.auto.create.topics=false", "-t", name)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_come_back(kcat: Kcat, topic: str, codec: str) -> None:
    kcat.run("-P", "-t", topic, "-z", codec, "-K", ":", stdin=b"a:1\nb:2\na:3\n")
    assert kcat.consume(topic) == ["0 0 a 1", "0 1 b 2", "0 2 a 3"]


def test_partition_and_headers_are_kept(kcat: Kcat, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    kcat.run("-P", "-t", topic, "-p", "2", "-H", "one=1", "-H", "two=2", "-Z", "-K", ":", stdin=b"key:\n")
    output = kcat.run("-C", "-q", "-e", "-t", topic, "-p", "2", "-J")
    record = json.loads(output)
    assert (record["partition"], record["offset"]) == (2, 0)
    assert record["headers"] == ["one", "1", "two", "2"]
    assert (record["key"], record["payload"]) == ("key", None)


@pytest.mark.parametrize(
    ("start", "offsets"),
    [
        ("beginning", range(10)),
        ("7", range(7, 10)),
        ("-2", range(8, 10)),
        ("end", range(0)),
        (f"s@{BEGIN_MS + 4_500}", range(5, 10)),
        (f"s@{BEGIN_MS + 99_000}", range(0)),
    ],
)
def test_reading_begins_anywhere(kcat: Kcat, bootstrap: str, topic: str, start: str, offsets: range) -> None:
    records = [Sent(b"v", key=b"k", timestamp_ms=BEGIN_MS + 1_000 * step) for step in range(10)]
    Librdkafka(bootstrap).produce(topic, records)
    assert kcat.consume(topic, "-p", "0", "-o", start) == [f"0 {offset} k v" for offset in offsets]


def test_reading_ends_at_a_time(kcat: Kcat, bootstrap: str, topic: str) -> None:
    records = [Sent(b"v", key=b"k", timestamp_ms=BEGIN_MS + 1_000 * step) for step in range(10)]
    Librdkafka(bootstrap).produce(topic, records)
    window = ("-o", f"s@{BEGIN_MS + 2_000}", "-o", f"e@{BEGIN_MS + 5_000}")
    assert kcat.consume(topic, *window) == [f"0 {offset} k v" for offset in (2, 3, 4)]


def test_offsets_are_found_by_time(kcat: Kcat, bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    records = [Sent(b"v", partition=1, timestamp_ms=BEGIN_MS + 1_000 * step) for step in range(10)]
    Librdkafka(bootstrap).produce(topic, records)
    asked = {f"{topic}:1:{BEGIN_MS + 3_500}": 4, f"{topic}:1:-1": 10, f"{topic}:1:-2": 0, f"{topic}:0:{BEGIN_MS}": -1}
    for question, offset in asked.items():
        place = question.rpartition(":")[0].rpartition(":")[2]
        assert kcat.run("-Q", "-t", question) == f"{topic} [{place}] offset {offset}\n"
