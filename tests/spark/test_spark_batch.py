"""Batches: the same records as any other reader finds, from wherever to wherever they are wanted."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructType

from cordwood.client.raw import RawClient, RawSettings, UnknownTopic
from cordwood.errors import ConfigError
from cordwood.spark.loss import DataLossError
from cordwood.spark.reading import Task
from cordwood.testing import Broker
from spark.conftest import Load
from spark.engine import batch, read, source
from spark.spark_topics import Kafka, Read, collected, compacted, offsets_text, without_headers
from support.waiting import eventually

PARTITIONS = 3
DELETED_BEFORE = 40
"""The first partition's beginning was deleted."""


# Of the session, not the module: with several workers a module's tests may come in two portions, to the same broker.
@pytest.fixture(scope="session")
def topic(kafka: Kafka) -> str:
    """Records of every kind, in every codec, some of them deleted."""
    topic = kafka.make("batch-all-kinds", PARTITIONS)
    kafka.produce_random(topic, PARTITIONS, 1500, seed=7)
    kafka.delete_records(topic, 0, DELETED_BEFORE)
    return topic


@pytest.fixture(scope="session")
def stored(kafka: Kafka, topic: str) -> list[Read]:
    stored = kafka.read(topic)
    assert len(stored) == 1500 - DELETED_BEFORE
    return stored


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def task_count(frame: DataFrame) -> int:
    return frame.rdd.getNumPartitions()


def ends(records: Sequence[Read]) -> dict[int, int]:
    return {record.partition: record.offset + 1 for record in records}


# In Spark


def test_a_batch_is_what_another_reader_finds(load: Load, topic: str, stored: list[Read]) -> None:
    frame = load(subscribe=topic, includeHeaders="true", minPartitions=6)
    assert collected(frame) == stored
    assert task_count(frame) == 6


def test_only_the_columns_asked_for_are_there(load: Load, topic: str, stored: list[Read]) -> None:
    frame = load(subscribe=topic, columns="offset, value")
    assert frame.columns == ["offset", "value"]
    found = sorted((row.offset, row.value) for row in frame.collect() if row.value is not None)
    assert found == sorted((r.offset, r.value) for r in stored if r.value is not None)


def test_a_table_has_the_same_records_when_it_is_used_again_and_a_new_one_has_all(
    load: Load, kafka: Kafka, name: str
) -> None:
    """Spark asks a source in Python for its tasks once. If this fails, the README's rule about it can go."""
    kafka.produce(kafka.make(name), [b"a", b"b"])
    frame = load(subscribe=name)
    assert frame.count() == 2
    kafka.produce(name, [b"c"])
    assert frame.count() == 2
    assert load(subscribe=name).count() == 3


def test_a_topic_without_records_is_an_empty_table(load: Load, kafka: Kafka, name: str) -> None:
    assert load(subscribe=kafka.make(name)).collect() == []


@pytest.mark.usefixtures("pushdown")
@pytest.mark.parametrize(
    ("condition", "tasks"),
    [
        ("partition IN (0, 2) AND offset >= 50 AND offset < 60", 2),
        ("offset IN (45, 47) AND value IS NOT NULL", 3),
        ("timestamp >= timestamp_millis(1700000099700)", 3),
        ("topic <> 'batch-all-kinds'", 1),
    ],
)
def test_filters_are_handed_down_and_change_nothing(
    load: Load, topic: str, stored: list[Read], spark: SparkSession, condition: str, tasks: int
) -> None:
    frame = load(subscribe=topic, maxRecordsPerPartition=10**6, pushFilters="true").where(condition)
    found = collected(frame)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    assert found == collected(load(subscribe=topic).where(condition))
    assert len(found) < len(stored)
    assert task_count(frame) == tasks, "one that has nothing to read is made up by Spark"


@pytest.mark.usefixtures("pushdown")
def test_one_table_may_be_filtered_in_two_ways(load: Load, topic: str, stored: list[Read]) -> None:
    """Spark would give both what comes of the last filter, if filters were taken without being asked to."""
    frame = load(subscribe=topic)
    both = frame.where("partition = 0").union(frame.where("partition = 2"))
    assert both.count() == sum(record.partition in (0, 2) for record in stored)
    assert frame.count() == len(stored)


def test_a_wrong_option_is_refused_when_it_is_loaded(load: Load, topic: str) -> None:
    with pytest.raises(AnalysisException, match=r"there is no option startingoffset; did you mean startingOffsets\?"):
        load(subscribe=topic, startingOffset="earliest")


# Without it


@pytest.mark.parametrize("options", [{}, {"direct": "never"}, {"minPartitions": 11}, {"maxRecordsPerPartition": 90}])
def test_however_it_is_split_it_is_the_same(
    broker: Broker, topic: str, stored: list[Read], options: dict[str, object]
) -> None:
    assert batch(broker.bootstrap, subscribe=topic, includeHeaders="true", **options) == stored


def test_committed_records_are_all_there_is_without_transactions(
    broker: Broker, topic: str, stored: list[Read]
) -> None:
    found = batch(broker.bootstrap, subscribe=topic, kafka_isolation_level="read_committed")
    assert found == without_headers(stored)


def test_files_are_read_where_they_can_be_seen(broker: Broker, kafka: Kafka, name: str) -> None:
    kafka.produce(kafka.make(name), (b"%d" % number for number in range(40_000)), codec="zstd")
    made = source(broker.bootstrap, subscribe=name)
    (task,) = made.reader(made.schema()).partitions()
    assert isinstance(task, Task)
    assert task.hints[name, 0].log_dir == broker.data
    found = batch(broker.bootstrap, subscribe=name)
    assert [record.value for record in found] == [b"%d" % number for number in range(40_000)]
    assert found == batch(broker.bootstrap, subscribe=name, direct="never")


def test_offsets_that_compaction_took_are_passed_over(kafka: Kafka, broker: Broker, name: str) -> None:
    kafka.make(name, cleanup_policy="compact", min_cleanable_dirty_ratio=0.01, internal_segment_bytes=2000)
    producer = kafka.producer("zstd")
    for number in range(400):
        producer.produce(name, b"%d" % number * 20, key=b"key-%d" % (number % 7 if number % 5 else number))
        if number % 9 == 0:
            producer.flush()
    producer.flush()
    eventually(lambda: compacted(Path(broker.data), name), within_s=60, what="compaction")
    found = batch(broker.bootstrap, subscribe=name, minPartitions=4)
    assert found == without_headers(kafka.read(name))
    assert len(found) < found[-1].offset, "there are gaps"


def test_a_batch_begins_and_ends_at_given_offsets(broker: Broker, topic: str, stored: list[Read]) -> None:
    start, end = {0: -2, 1: 100, 2: 0}, {0: 300, 1: -1, 2: 250}
    found = batch(
        broker.bootstrap,
        subscribe=topic,
        startingOffsets=offsets_text(start, topic),
        endingOffsets=offsets_text(end, topic),
    )
    last = ends(stored) | {0: 300, 2: 250}
    wanted = [r for r in stored if start[r.partition] <= r.offset < last[r.partition]]
    assert found == without_headers(wanted)


def test_a_batch_begins_and_ends_at_given_times(broker: Broker, topic: str, stored: list[Read]) -> None:
    start_ms, end_ms = 1_700_000_000_000 + 99_000, 1_700_000_000_000 + 99_800
    found = batch(broker.bootstrap, subscribe=topic, startingTimestamp=start_ms, endingTimestamp=end_ms)
    first = {r.partition: r.offset for r in reversed(stored) if r.timestamp_ms >= start_ms}
    last = ends(stored) | {r.partition: r.offset for r in reversed(stored) if r.timestamp_ms >= end_ms}
    assert len(first) == PARTITIONS
    assert found == without_headers([r for r in stored if first[r.partition] <= r.offset < last[r.partition]])


def test_each_partition_may_have_its_own_time(broker: Broker, topic: str, stored: list[Read]) -> None:
    times = {0: 1_700_000_000_000, 1: 1_700_000_099_000, 2: 1_700_000_099_500}
    found = batch(broker.bootstrap, subscribe=topic, startingOffsetsByTimestamp=offsets_text(times, topic))
    first = {r.partition: r.offset for r in reversed(stored) if r.timestamp_ms >= times[r.partition]}
    assert found == without_headers([r for r in stored if first[r.partition] <= r.offset])


def test_a_time_after_all_records_is_refused_or_the_end(broker: Broker, topic: str) -> None:
    options = {"subscribe": topic, "startingTimestamp": 1_900_000_000_000}
    with pytest.raises(ConfigError, match="startingOffsetsByTimestampStrategy"):
        batch(broker.bootstrap, **options)
    assert batch(broker.bootstrap, **options, startingOffsetsByTimestampStrategy="latest") == []


def test_assigned_partitions_and_patterns_are_read(broker: Broker, kafka: Kafka, name: str) -> None:
    for number in (1, 2):
        kafka.produce(kafka.make(f"{name}-{number}", 2), [b"%d" % number], partition=1)
    by_pattern = batch(broker.bootstrap, subscribePattern=f"{name}-.$")
    assert [r.topic for r in by_pattern] == [f"{name}-1", f"{name}-2"]
    assert batch(broker.bootstrap, assign=f'{{"{name}-1":[1]}}') == without_headers(kafka.read(f"{name}-1"))
    assert batch(broker.bootstrap, assign=f'{{"{name}-1":[0]}}') == []


def test_records_that_were_deleted_stop_a_batch_or_are_left_out(broker: Broker, topic: str, stored: list[Read]) -> None:
    options = {"subscribe": topic, "startingOffsets": offsets_text({0: DELETED_BEFORE - 5, 1: 0, 2: 0}, topic)}
    with pytest.raises(DataLossError) as error:
        batch(broker.bootstrap, **options)
    first, last = DELETED_BEFORE - 5, DELETED_BEFORE - 1
    assert f"offsets {first} to {last} of {topic}-0 (5 offsets) are gone" in str(error.value)
    assert "failOnDataLoss" in str(error.value)
    assert batch(broker.bootstrap, **options, failOnDataLoss="false") == without_headers(stored)


def test_records_that_are_deleted_before_a_task_reads_them(broker: Broker, kafka: Kafka, name: str) -> None:
    """Between planning and reading, that is, where only the task can see it."""
    kafka.produce(kafka.make(name), [b"%d" % number for number in range(100)])
    careful, lenient = (
        source(broker.bootstrap, subscribe=name, failOnDataLoss=fail, maxRecordsPerPartition=30)
        for fail in (True, False)
    )
    schema = careful.schema()
    planned = [(reader, list(reader.partitions())) for reader in (careful.reader(schema), lenient.reader(schema))]
    kafka.delete_records(name, 0, 42)
    (strict, tasks), (tolerant, same_tasks) = planned
    with pytest.raises(DataLossError, match=rf"offsets 0 to 24 of {name}-0 \(25 offsets\) are gone"):
        read(strict, tasks, schema)
    assert [r.offset for r in read(tolerant, same_tasks, schema)] == list(range(42, 100))


def test_an_end_beyond_the_end_stops_a_batch(broker: Broker, topic: str, stored: list[Read]) -> None:
    end = ends(stored)[1]
    options = {"subscribe": topic, "endingOffsets": offsets_text(ends(stored) | {1: 10**6}, topic)}
    with pytest.raises(DataLossError, match=f"of {topic}-1 are not there: the partition ends at offset {end}") as error:
        batch(broker.bootstrap, **options)
    assert not re.search("checkpoint|retention", str(error.value))
    assert 'set option("failOnDataLoss", "false")' in str(error.value)
    assert batch(broker.bootstrap, **options, failOnDataLoss="false") == without_headers(stored)


@pytest.mark.parametrize("fail", [True, False])
def test_a_start_beyond_the_end_is_refused(broker: Broker, topic: str, stored: list[Read], *, fail: bool) -> None:
    end = ends(stored)[0]
    with pytest.raises(ConfigError) as error:
        batch(
            broker.bootstrap,
            subscribe=topic,
            startingOffsets=offsets_text({0: end + 1, 1: 0, 2: 0}, topic),
            failOnDataLoss=fail,
        )
    wanted = f"option startingOffsets: {topic}-0 would begin at offset {end + 1}, after its end, which is {end}"
    assert wanted in str(error.value)


def test_a_start_at_the_end_is_an_empty_batch(broker: Broker, topic: str, stored: list[Read]) -> None:
    assert batch(broker.bootstrap, subscribe=topic, startingOffsets=offsets_text(ends(stored), topic)) == []


def test_offsets_are_given_for_all_partitions_and_no_others(broker: Broker, topic: str) -> None:
    with pytest.raises(ConfigError, match=f"{topic}-2 is not in it"):
        batch(broker.bootstrap, subscribe=topic, startingOffsets=offsets_text({0: -2, 1: 0}, topic))
    with pytest.raises(ConfigError) as error:
        batch(broker.bootstrap, subscribe=topic, startingOffsetsByTimestamp=offsets_text({0: 0, 1: 0}, topic))
    assert f"{topic}-2 is not in it; give it a time in ms" in str(error.value)
    with pytest.raises(ConfigError, match=f"{topic}-9, which is not read"):
        batch(broker.bootstrap, subscribe=topic, startingOffsets=offsets_text({0: -2, 1: 0, 2: 0, 9: 0}, topic))


def test_a_batch_whose_time_is_after_its_end_is_refused(broker: Broker, topic: str) -> None:
    with pytest.raises(ConfigError, match=f"{topic}-. would begin at"):
        batch(
            broker.bootstrap,
            subscribe=topic,
            startingTimestamp=1_700_000_099_000,
            endingOffsets=offsets_text({0: 41, 1: 1, 2: 1}, topic),
        )


def test_a_group_follows_what_tasks_have_read(broker: Broker, kafka: Kafka, topic: str, stored: list[Read]) -> None:
    batch(broker.bootstrap, subscribe=topic, group="batch-follower", minPartitions=7)
    assert kafka.committed("batch-follower", topic) == ends(stored)


def test_a_topic_that_does_not_exist_is_named_with_the_nearest(broker: Broker, topic: str) -> None:
    with pytest.raises(UnknownTopic, match=f"there is no topic {topic}s; did you mean {topic}"):
        batch(broker.bootstrap, subscribe=f"{topic}s", fetchOffset_retryIntervalMs=1)


def test_no_topic_is_made_by_being_asked_for(broker: Broker) -> None:
    with pytest.raises(UnknownTopic):
        batch(broker.bootstrap, subscribe="batch-never-made", fetchOffset_retryIntervalMs=1)
    with RawClient(RawSettings(broker.bootstrap)) as client:
        assert "batch-never-made" not in client.topics()


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (StructType().add("key", LongType()), "field key is bigint; the source's is binary"),
        (StructType().add("keys", LongType()), "a field keys, which the source has not"),
        (StructType().add("offset", LongType()), "in this order"),
    ],
)
def test_a_schema_that_does_not_fit_names_the_field(broker: Broker, topic: str, schema: StructType, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        source(broker.bootstrap, subscribe=topic).reader(schema)
