"""Streams: every record once, whatever comes in between."""

import logging
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from cordwood.spark.loss import DataLossError
from cordwood.spark.option_names import Use
from cordwood.spark.options import SourceOptions
from cordwood.spark.stream import StreamReader
from cordwood.testing import Broker
from spark.conftest import Load, Stream
from spark.engine import Query
from spark.spark_topics import Kafka, Read, collected, offsets_text, without_headers
from support.waiting import eventually

PROCESS_TIMEOUT_S = 120.0


def numbered(first: int, count: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def values(*batches: list[Read]) -> list[bytes]:
    return [record.value or b"" for batch in batches for record in batch]


# Without Spark: what its engine asks, in its order


def test_a_stream_reads_every_record_once(stream: Stream, kafka: Kafka, name: str) -> None:
    kafka.make(name, 3)
    kafka.produce_random(name, 3, 500, seed=1)
    query = stream(subscribe=name, startingOffsets="earliest", includeHeaders="true", maxOffsetsPerTrigger=90)
    batches = query.drain()
    assert sorted((r for batch in batches for r in batch), key=lambda r: r[:3]) == kafka.read(name)
    assert all(len(batch) <= 90 for batch in batches)
    assert len(batches) >= 500 / 90


def test_a_stream_goes_on_with_what_is_new(stream: Stream, kafka: Kafka, name: str) -> None:
    kafka.produce(kafka.make(name), numbered(0, 10))
    query = stream(subscribe=name, startingOffsets="earliest")
    assert values(query.step()) == numbered(0, 10)
    assert query.step() == []
    kafka.produce(name, numbered(10, 5))
    assert values(query.step()) == numbered(10, 5)


def test_a_stream_begins_at_the_latest_offset(stream: Stream, kafka: Kafka, name: str) -> None:
    kafka.produce(kafka.make(name), numbered(0, 10))
    query = stream(subscribe=name)
    assert query.step() == []
    assert query.planned == [{name: {"0": 10}}]
    kafka.produce(name, numbered(10, 5))
    assert values(query.step()) == numbered(10, 5)


@pytest.mark.parametrize("starting", ["latest", '{{"{0}":{{"0":-1,"1":-2}}}}'], ids=["all", "some"])
def test_a_stream_that_is_killed_at_its_beginning_keeps_it(
    stream: Stream, kafka: Kafka, name: str, starting: str
) -> None:
    kafka.produce(kafka.make(name, 2), numbered(0, 10))
    query = stream(subscribe=name, startingOffsets=starting.format(name))
    query.plan()
    kafka.produce(name, numbered(10, 5))
    query.start()
    assert values(*query.drain()) == numbered(10, 5)


def test_partitions_that_do_not_begin_at_the_latest_offset_are_in_the_first_micro_batch(
    stream: Stream, kafka: Kafka, name: str
) -> None:
    kafka.make(name, 3)
    for partition in range(3):
        kafka.produce(name, numbered(10 * partition, 10), partition=partition)
    query = stream(subscribe=name, startingOffsets=offsets_text({0: 4, 1: -1, 2: -2}, name))
    assert values(query.step(ReadAllAvailable())) == [*numbered(4, 6), *numbered(20, 10)]
    assert query.planned == [{name: {"0": 10, "1": 10, "2": 10}}]
    kafka.produce(name, numbered(30, 2), partition=1)
    assert values(query.step()) == numbered(30, 2)


def test_partitions_with_young_records_are_in_the_first_micro_batch(stream: Stream, kafka: Kafka, name: str) -> None:
    kafka.make(name, 2)
    kafka.produce(name, numbered(0, 10), timestamp_ms=1000)
    kafka.produce(name, numbered(10, 5), partition=1, timestamp_ms=2000)
    query = stream(subscribe=name, startingTimestamp=1500, startingOffsetsByTimestampStrategy="latest")
    assert values(query.step(ReadAllAvailable())) == numbered(10, 5)
    assert query.planned == [{name: {"0": 10, "1": 5}}]


@pytest.mark.parametrize("seed", range(3))
def test_what_latest_meant_survives_whatever_comes_before_the_first_micro_batch_is_done(
    stream: Stream, kafka: Kafka, name: str, seed: int
) -> None:
    """Records come between all questions, and the query is killed: what came after it began is read."""
    chance = random.Random(seed)
    kafka.make(name, 2)
    kafka.produce(name, numbered(0, 10))
    kafka.produce(name, numbered(10, 10), partition=1)
    query = stream(subscribe=name, startingOffsets=offsets_text({0: -1, 1: 3}, name), maxOffsetsPerTrigger=4)
    query.begin()
    wanted, produced = numbered(13, 7), 20
    for step in range(3):
        count = chance.randrange(1, 4)
        kafka.produce(name, numbered(produced, count), partition=step % 2)
        wanted += numbered(produced, count)
        produced += count
        if not query.planned:
            query.plan()
        else:
            query.start()
    assert sorted(values(*query.drain())) == sorted(wanted)


def test_a_start_beyond_the_end_is_told_though_another_partition_begins_at_the_latest_offset(
    stream: Stream, kafka: Kafka, name: str
) -> None:
    kafka.produce(kafka.make(name, 2), numbered(0, 10))
    offsets = offsets_text({0: 99, 1: -1}, name)
    query = stream(subscribe=name, startingOffsets=offsets, fetchOffset_numRetries=1)
    with pytest.raises(DataLossError, match=f"{name}-0 ends at offset 10"):
        query.step()


def test_partitions_that_are_new_when_the_first_micro_batch_is_done_again_are_not_missed(
    stream: Stream, kafka: Kafka, name: str
) -> None:
    kafka.make(name)
    query = stream(subscribe=name)
    query.plan()
    kafka.grow(name, 2)
    kafka.produce(name, numbered(0, 3), partition=1)
    query.start()
    assert values(*query.drain()) == numbered(0, 3)


@pytest.mark.parametrize("seed", range(4))
def test_a_stream_that_is_killed_at_any_point_loses_nothing(stream: Stream, kafka: Kafka, name: str, seed: int) -> None:
    chance = random.Random(seed)
    kafka.make(name, 2)
    query = stream(subscribe=name, startingOffsets="earliest", maxOffsetsPerTrigger=7)
    produced, found = 0, []
    for _ in range(25):
        match chance.choice(["produce", "plan", "run", "kill", "done"]):
            case "produce":
                kafka.produce(name, numbered(produced, 10), partition=chance.randrange(2))
                produced += 10
            case "plan":
                if query.done == len(query.planned):
                    query.plan()
            case "run":
                if query.done < len(query.planned):
                    query.run()
                    query.done -= 1  # killed before it was written down: none of it counts
                    query.start()
            case "kill":
                query.start()
            case _:
                if query.done < len(query.planned):
                    found += query.run()
    found += [record for batch in query.drain() for record in batch]
    assert sorted(values(found)) == sorted(numbered(0, produced))


def test_new_partitions_and_topics_are_read_from_their_beginning(stream: Stream, kafka: Kafka, name: str) -> None:
    kafka.make(f"{name}-a")
    query = stream(subscribePattern=f"{name}-.", maxOffsetsPerTrigger=1000)
    assert query.step() == []
    kafka.grow(f"{name}-a", 2)
    kafka.produce(f"{name}-a", numbered(0, 3), partition=1)
    assert values(query.step()) == numbered(0, 3)
    kafka.produce(kafka.make(f"{name}-b"), numbered(3, 3))
    assert values(query.step()) == numbered(3, 3)
    assert list(query.planned[-1]) == [f"{name}-a", f"{name}-b"]


def test_a_new_partition_that_has_lost_its_beginning_is_told(stream: Stream, kafka: Kafka, name: str) -> None:
    kafka.make(name)
    query = stream(subscribe=name)
    query.step()
    kafka.grow(name, 2)
    kafka.produce(name, numbered(0, 9), partition=1)
    kafka.delete_records(name, 1, 4)
    with pytest.raises(DataLossError, match=f"offsets 0 to 3 of {name}-1"):
        query.step()
    query.start(failOnDataLoss="false")
    assert values(query.step()) == numbered(4, 5)


def test_retention_that_overtakes_a_query_stops_it_or_is_told(
    stream: Stream, kafka: Kafka, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.produce(kafka.make(name), numbered(0, 20))
    query = stream(subscribe=name, startingOffsets="earliest", maxOffsetsPerTrigger=10)
    assert values(query.step()) == numbered(0, 10)
    kafka.produce(name, numbered(20, 10))
    kafka.delete_records(name, 0, 25)
    with pytest.raises(DataLossError) as error:
        query.step()
    assert f"offsets 10 to 19 of {name}-0 (10 offsets) are gone" in str(error.value)
    assert 'option("failOnDataLoss", "false")' in str(error.value)
    query.start(failOnDataLoss="false")
    with caplog.at_level(logging.WARNING, "cordwood.spark"):
        assert values(*query.drain()) == numbered(25, 5)
    assert f"offsets 10 to 19 of {name}-0" in caplog.text
    assert f"offsets 20 to 24 of {name}-0" in caplog.text


def test_a_topic_that_is_deleted_stops_a_query_or_is_told(
    stream: Stream, kafka: Kafka, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    for letter in "ab":
        kafka.produce(kafka.make(f"{name}-{letter}"), numbered(0, 3))
    query = stream(
        subscribe=f"{name}-a,{name}-b",
        startingOffsets="earliest",
        fetchOffset_numRetries=2,
        fetchOffset_retryIntervalMs=1,
    )
    assert len(query.step()) == 6
    kafka.delete(f"{name}-b")
    kafka.produce(f"{name}-a", numbered(3, 3))
    with pytest.raises(DataLossError, match=f"{name}-b-0 do not exist any more"):
        query.step()
    query.start(failOnDataLoss="false")
    with caplog.at_level(logging.WARNING, "cordwood.spark"):
        assert values(query.step()) == numbered(3, 3)
    assert f"{name}-b-0 do not exist any more" in caplog.text
    kafka.produce(kafka.make(f"{name}-b"), numbered(9, 2))
    assert values(query.step()) == numbered(9, 2), "made anew: from its beginning"


def test_a_topic_that_was_made_anew_with_fewer_records_is_noticed(stream: Stream, kafka: Kafka, name: str) -> None:
    kafka.produce(kafka.make(name), numbered(0, 10))
    query = stream(
        subscribe=name,
        startingOffsets="earliest",
        fetchOffset_numRetries=1,
    )
    query.step()
    kafka.delete(name)
    kafka.produce(kafka.make(name), numbered(0, 4))
    with pytest.raises(DataLossError, match=f"{name}-0 ends at offset 4, but was read up to 10"):
        query.step()
    query.start(failOnDataLoss="false")
    assert query.step() == []
    kafka.produce(name, numbered(4, 2))
    assert values(query.step()) == numbered(4, 2)


def test_available_now_ends_where_the_topic_ended(stream: Stream, kafka: Kafka, name: str) -> None:
    kafka.produce(kafka.make(name), numbered(0, 20))
    query = stream(subscribe=name, startingOffsets="earliest", maxOffsetsPerTrigger=8)
    query.start(available_now=True, minOffsetsPerTrigger=6)
    assert len(query.step()) == 8
    kafka.produce(name, numbered(20, 5))
    assert values(*query.drain()) == numbered(8, 12), "little is left at the end, and waiting for more makes no sense"
    query.start(available_now=True)
    assert values(*query.drain()) == numbered(20, 5)


def test_a_micro_batch_waits_until_there_is_enough_or_it_has_waited_long(
    broker: Broker, kafka: Kafka, name: str
) -> None:
    kafka.produce(kafka.make(name), numbered(0, 2))
    now = [100.0]
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": name, "startingOffsets": "earliest"}
    limits = {"minOffsetsPerTrigger": "5", "maxTriggerDelay": "10s", "maxOffsetsPerTrigger": "6"}
    reader = StreamReader(SourceOptions.of({**given, **limits}, Use.STREAM), clock=lambda: now[0])
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(6)
    first = reader.latestOffset(reader.initialOffset(), limit)
    assert first == {name: {"0": 2}}, "the first one waits for nothing"
    kafka.produce(name, numbered(2, 4))
    assert reader.latestOffset(first, limit) == first
    assert reader.reportLatestOffset() == {name: {"0": 6}}
    assert reader.latestOffset(first, ReadAllAvailable()) == {name: {"0": 6}}
    now[0] += 10
    second = reader.latestOffset(first, limit)
    assert second == {name: {"0": 6}}
    kafka.produce(name, numbered(6, 9))
    assert reader.latestOffset(second, limit) == {name: {"0": 12}}, "enough of them, and no more than allowed"
    reader.stop()


def test_a_least_alone_is_a_limit_too(stream: Stream, kafka: Kafka, name: str) -> None:
    kafka.make(name)
    query = stream(subscribe=name, minOffsetsPerTrigger=5)
    assert query.reader.getDefaultReadLimit() == ReadMinRows(5)


def test_a_stream_begins_at_offsets_that_are_given(stream: Stream, kafka: Kafka, name: str) -> None:
    kafka.produce(kafka.make(name, 2), numbered(0, 10))
    query = stream(subscribe=name, startingOffsets=offsets_text({0: 7, 1: -2}, name))
    assert values(query.step()) == numbered(7, 3)


def test_tasks_are_the_same_each_time_they_are_asked_for(stream: Stream, kafka: Kafka, name: str) -> None:
    kafka.produce(kafka.make(name), numbered(0, 10))
    query = stream(subscribe=name, startingOffsets="earliest")
    query.plan()
    begin, end = query.begin(), query.planned[0]
    assert query.reader.partitions(begin, end) is query.reader.partitions(begin, end)
    assert query.reader.partitions(end, end) == []


def test_a_broker_that_is_away_is_waited_for(tmp_path: Path, name: str) -> None:
    broker = Broker(data=str(tmp_path)).start()
    port = broker.port
    kafka = Kafka(broker.bootstrap)
    kafka.produce(kafka.make(name), numbered(0, 5))
    query = Query(broker.bootstrap, subscribe=name, startingOffsets="earliest", kafka_retry_backoff_ms=10)
    query.plan()
    broker.stop()
    again = Broker(data=str(tmp_path), port=port)
    timer = threading.Timer(0.5, again.start)
    timer.start()
    try:
        assert values(query.run()) == numbered(0, 5)
        kafka.produce(name, numbered(5, 5))
        assert values(query.step()) == numbered(5, 5)
    finally:
        timer.join()
        query.stop()
        again.stop()


# In Spark


def test_available_now_in_spark_reads_all_and_ends(
    load_stream: Load, spark: SparkSession, kafka: Kafka, name: str, tmp_path: Path
) -> None:
    kafka.make(name, 3)
    kafka.produce_random(name, 3, 500, seed=3)
    frame = load_stream(subscribe=name, startingOffsets="earliest", maxOffsetsPerTrigger=200, includeHeaders="true")
    writer = frame.writeStream.format("memory").queryName("available").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    assert query.awaitTermination(60)
    assert collected(spark.table("available")) == kafka.read(name)
    inputs = [progress.numInputRows for progress in query.recentProgress]
    assert sum(inputs) == 500
    assert max(inputs) <= 200


def test_a_query_in_spark_goes_on_through_everything(spark: SparkSession, name: str, tmp_path: Path) -> None:
    """New partitions, a new topic, a broker that is away, deleted records: one query after the other."""
    broker = Broker(data=str(tmp_path / "data")).start()
    port = broker.port
    kafka = Kafka(broker.bootstrap)
    kafka.make(f"{name}-1")
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribePattern": f"^{name}-"}

    def start(**more: str) -> None:
        frame = spark.readStream.format("cordwood").options(**options, **more).load()
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        queries.append(writer.start(str(tmp_path / "out")))

    queries: list = []  # type: ignore[type-arg]
    start()
    queries[-1].processAllAvailable()
    kafka.produce(f"{name}-1", numbered(0, 5))
    queries[-1].processAllAvailable()
    kafka.grow(f"{name}-1", 2)
    kafka.produce(f"{name}-1", numbered(5, 5), partition=1)
    kafka.produce(kafka.make(f"{name}-2"), numbered(10, 5))
    queries[-1].processAllAvailable()
    broker.stop()
    broker = Broker(data=str(tmp_path / "data"), port=port).start()
    kafka.produce(f"{name}-2", numbered(15, 5))
    queries[-1].processAllAvailable()
    queries[-1].stop()
    kafka.produce(f"{name}-2", numbered(20, 5))
    kafka.delete_records(f"{name}-2", 0, 13)
    start()
    with pytest.raises(StreamingQueryException, match=f"offsets 10 to 12 of {name}-2-0"):
        queries[-1].awaitTermination(60)
    start(failOnDataLoss="false")
    queries[-1].processAllAvailable()
    queries[-1].stop()
    found = collected(spark.read.parquet(str(tmp_path / "out")))
    broker.stop()
    assert sorted(values(found)) == sorted([*numbered(0, 20), *numbered(23, 2)])


def test_a_query_in_spark_that_is_killed_loses_nothing(
    load_stream: Load, spark: SparkSession, broker: Broker, kafka: Kafka, name: str, tmp_path: Path
) -> None:
    kafka.make(name, 2)
    kafka.produce_random(name, 2, 2000, seed=4)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    script = Path(__file__).parent / "killed_query.py"
    tests = str(Path(__file__).parent.parent)
    process = subprocess.Popen(
        [sys.executable, str(script), broker.bootstrap, name, str(out), str(checkpoint)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([tests, str(Path(tests).parent)])},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        commits = checkpoint / "commits"
        eventually(
            lambda: process.poll() is not None or (commits / "2").exists(),
            within_s=PROCESS_TIMEOUT_S,
            what="a few micro-batches",
        )
        assert process.poll() is None
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = len(list(commits.glob("[0-9]*")))
    assert done < 20, "it was killed in the midst"
    stream = load_stream(subscribe=name, startingOffsets="latest")
    writer = stream.writeStream.format("json").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start(str(out))
    assert query.awaitTermination(60)
    assert collected(spark.read.schema(stream.schema).json(str(out))) == without_headers(kafka.read(name))
