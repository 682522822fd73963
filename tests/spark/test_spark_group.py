"""A consumer group that follows a query: its lag is there for every Kafka tool."""

import json
import logging
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from pyspark.sql import SparkSession

from cordwood.cli.main import main
from cordwood.errors import ConfigError
from cordwood.spark.listener import OffsetCommitter
from cordwood.testing import Broker
from spark.conftest import Load, Stream
from spark.spark_topics import DEADLINE_S, Kafka
from support.waiting import eventually


def lag(broker: Broker, group: str, capsys: pytest.CaptureFixture[str]) -> dict[int, int]:
    """What ``cordwood groups describe`` says."""
    capsys.readouterr()
    main(["groups", "describe", group, "--bootstrap", broker.bootstrap, "--json"])
    described = json.loads(capsys.readouterr().out)
    return {entry["partition"]: entry["lag"] for entry in described["partitions"]}


def test_the_group_is_where_the_query_is(
    broker: Broker, stream: Stream, kafka: Kafka, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka.produce(kafka.make(name, 2), [b"x"] * 10)
    query = stream(subscribe=name, startingOffsets="earliest", group=name, maxOffsetsPerTrigger=6)
    query.plan()
    assert kafka.committed(name, name) == {0: 0, 1: 0}, "it has begun, and done nothing yet"
    query.run()
    query.plan()
    assert kafka.committed(name, name) == {0: 6, 1: 0}
    assert lag(broker, name, capsys) == {0: 4, 1: 0}
    query.run()
    assert not query.plan()
    assert kafka.committed(name, name) == {0: 10, 1: 0}


def test_the_group_says_nothing_about_where_a_query_begins(stream: Stream, kafka: Kafka, name: str) -> None:
    kafka.produce(kafka.make(name), [b"x"] * 10)
    for _ in range(2):
        query = stream(subscribe=name, startingOffsets="earliest", group=name)
        assert [len(batch) for batch in query.drain()] == [10]


def test_a_topic_that_is_gone_does_not_keep_the_others_from_being_committed(
    stream: Stream, kafka: Kafka, name: str
) -> None:
    for letter in "ab":
        kafka.produce(kafka.make(f"{name}-{letter}"), [b"x"] * 3)
    query = stream(
        subscribe=f"{name}-a,{name}-b",
        startingOffsets="earliest",
        group=name,
        failOnDataLoss="false",
        fetchOffset_numRetries=1,
    )
    query.step()
    kafka.delete(f"{name}-b")
    query.drain()
    assert kafka.committed(name, f"{name}-a") == {0: 3}


def test_a_group_with_members_is_refused(broker: Broker, stream: Stream, kafka: Kafka, name: str) -> None:
    kafka.make(name)
    member = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": name, "log_level": 0})
    member.subscribe([name])
    eventually(lambda: member.poll(0.1) is None and member.assignment(), within_s=DEADLINE_S, what="an assignment")
    query = stream(subscribe=name, startingOffsets="earliest", group=name)
    with pytest.raises(ConfigError, match=r"option group: .*has members"):
        query.plan()
    member.close()


def test_in_spark_the_last_micro_batch_is_committed_too(
    load_stream: Load, kafka: Kafka, name: str, tmp_path: Path
) -> None:
    kafka.produce(kafka.make(name), [b"x"] * 30)
    frame = load_stream(subscribe=name, startingOffsets="earliest", group=name, maxOffsetsPerTrigger=20)
    writer = frame.writeStream.format("noop").trigger(availableNow=True).option("checkpointLocation", str(tmp_path))
    assert writer.start().awaitTermination(60)
    assert kafka.committed(name, name) == {0: 30}


def test_a_listener_commits_what_spark_reports(
    load_stream: Load, spark: SparkSession, broker: Broker, kafka: Kafka, name: str, tmp_path: Path
) -> None:
    kafka.produce(kafka.make(name), [b"x"] * 30)
    listener = OffsetCommitter(broker.bootstrap, "{query}-lag", queries=[name])
    spark.streams.addListener(listener)
    try:
        for query_name, checkpoint in ((name, "a"), ("other", "b")):
            frame = load_stream(subscribe=name, startingOffsets="earliest")
            writer = frame.writeStream.format("noop").queryName(query_name).trigger(availableNow=True)
            assert writer.option("checkpointLocation", str(tmp_path / checkpoint)).start().awaitTermination(60)
        eventually(lambda: kafka.committed(f"{name}-lag", name) == {0: 30}, within_s=DEADLINE_S, what="the commit")
    finally:
        spark.streams.removeListener(listener)
    assert kafka.committed("other-lag", name) == {}


def test_a_listener_without_a_broker_only_complains(caplog: pytest.LogCaptureFixture) -> None:
    properties = {"default.api.timeout.ms": "50", "retry.backoff.ms": "10"}
    listener = OffsetCommitter("127.0.0.1:1", "group", properties=properties)
    with caplog.at_level(logging.WARNING, "cordwood.spark"):
        listener._commit("group", {("t", 0): 5})
    assert "cannot be committed" in caplog.text
