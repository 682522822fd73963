"""Beside Spark's own Kafka connector: the same records, and it works with this broker too.

Needs its jars, which Maven brings once.
"""

from pathlib import Path

import pytest
from benchmarks import spark_connector as connector
from pyspark.sql import DataFrame, SparkSession

from cordwood.spark.listener import OffsetCommitter
from cordwood.testing import Broker
from spark.conftest import Load
from spark.spark_topics import DEADLINE_S, Kafka, collected, compacted, offsets_text
from support.missing import missing
from support.waiting import eventually

pytestmark = [pytest.mark.java]

PARTITIONS = 3
LARGE = 25_000
TOPIC = "connector-all-kinds"


@pytest.fixture(autouse=True)
def _jars(spark: SparkSession) -> None:
    if "spark-sql-kafka" not in spark.sparkContext.getConf().get("spark.driver.extraClassPath", ""):
        missing("Maven did not bring Spark's Kafka connector (Debian: apt install maven; macOS: brew install maven)")
    assert connector.jars()


@pytest.fixture(scope="module")
def topic(kafka: Kafka) -> str:
    topic = kafka.make(TOPIC, PARTITIONS)
    kafka.produce_random(topic, PARTITIONS, 1000, seed=11)
    kafka.delete_records(topic, 1, 25)
    return topic


def run(frame: DataFrame, checkpoint: Path, out: Path) -> list[int]:
    """What there is now, into files; how many records each micro-batch had."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start(str(out))
    assert query.awaitTermination(90)
    return [progress.numInputRows for progress in query.recentProgress]


def test_a_batch_is_that_of_spark_s_connector(load: Load, topic: str) -> None:
    kinds = ("cordwood", "kafka")
    ours, theirs = (load(kind, subscribe=topic, includeHeaders="true", minPartitions=7) for kind in kinds)
    assert ours.schema == theirs.schema
    assert ours.rdd.getNumPartitions() == theirs.rdd.getNumPartitions()
    found = collected(ours)
    assert found == collected(theirs)
    assert len(found) == 975


@pytest.mark.parametrize(
    "options",
    [
        {"startingTimestamp": 1_700_000_099_000, "endingTimestamp": 1_700_000_099_800},
        {
            "startingOffsets": offsets_text({0: -2, 1: 100, 2: 7}, TOPIC),
            "endingOffsets": offsets_text({0: 200, 1: -1, 2: 300}, TOPIC),
            "kafka_isolation_level": "read_committed",
        },
    ],
    ids=["times", "offsets"],
)
def test_limits_are_those_of_spark_s_connector(load: Load, topic: str, options: dict[str, object]) -> None:
    ours, theirs = (collected(load(kind, subscribe=topic, **options)) for kind in ("cordwood", "kafka"))
    assert ours == theirs
    assert 0 < len(ours) < 975


def test_a_stream_is_that_of_spark_s_connector(
    load_stream: Load, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    inputs, found = [], []
    for kind in ("cordwood", "kafka"):
        frame = load_stream(
            kind, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=300, includeHeaders="true"
        )
        inputs.append(run(frame, tmp_path / f"{kind}-checkpoint", tmp_path / kind))
        found.append(collected(spark.read.parquet(str(tmp_path / kind))))
    assert found[0] == found[1]
    ours, theirs = inputs
    assert sum(ours) == sum(theirs)
    assert len(ours) <= len(theirs), "what its rounding leaves over needs no micro-batch of its own"
    assert all(0 <= mine - other <= 3 for mine, other in zip(ours[:-1], theirs, strict=False)), "an offset a partition"
    assert max(ours) <= 300


@pytest.fixture(scope="module")
def odd_topics(broker: Broker, kafka: Kafka) -> str:
    """Gaps between the offsets; the broker's times; one that is worth reading from files."""
    gaps = kafka.make("connector-gaps", min_cleanable_dirty_ratio=0.01, internal_segment_bytes=2000)
    producer = kafka.producer("zstd")
    for number in range(400):
        producer.produce(gaps, b"%d" % number * 20, key=b"key-%d" % (number % 7 if number % 5 else number))
        if number % 9 == 0:
            producer.flush()
    assert producer.flush(DEADLINE_S) == 0
    kafka.set(gaps, "cleanup.policy", "compact")  # only now: all of it at once, and nothing while it is read
    times = kafka.make("connector-times", 2, message_timestamp_type="LogAppendTime")
    kafka.produce_random(times, 2, 100, seed=12)
    large = kafka.make("connector-large")
    kafka.produce(large, [b"%d" % number for number in range(LARGE)], codec="lz4", timestamp_ms=1_700_000_000_000)
    eventually(lambda: compacted(Path(broker.data), gaps), within_s=60, what="compaction")
    return f"{gaps},{times},{large}"


def test_odd_topics_are_those_of_spark_s_connector(
    load: Load, load_stream: Load, spark: SparkSession, odd_topics: str, tmp_path: Path
) -> None:
    ours, theirs = (collected(load(kind, subscribe=odd_topics)) for kind in ("cordwood", "kafka"))
    assert ours == theirs
    gaps = [record.offset for record in ours if record.topic == "connector-gaps"]
    assert len(gaps) < gaps[-1]
    assert {record.timestamp_type for record in ours if record.topic == "connector-times"} == {1}
    assert sum(record.topic == "connector-large" for record in ours) == LARGE
    run(load_stream(subscribe=odd_topics, startingOffsets="earliest"), tmp_path / "checkpoint", tmp_path / "out")
    assert collected(spark.read.parquet(str(tmp_path / "out"))) == theirs


def test_a_checkpoint_of_spark_s_connector_is_continued(
    load_stream: Load, spark: SparkSession, kafka: Kafka, name: str, tmp_path: Path
) -> None:
    """A job changes one word, and goes on where it was; and back again."""
    kafka.make(name, 2)
    for number, kind in enumerate(("kafka", "cordwood", "kafka")):
        kafka.produce_random(name, 2, 50, seed=number)
        run(load_stream(kind, subscribe=name, startingOffsets="earliest"), tmp_path / "checkpoint", tmp_path / "out")
    found = collected(spark.read.parquet(str(tmp_path / "out")))
    assert found == [record._replace(headers=None) for record in kafka.read(name)]


def test_spark_s_connector_writes_to_this_broker(
    spark: SparkSession, broker: Broker, kafka: Kafka, load: Load, name: str
) -> None:
    kafka.make(name, 2)
    rows = spark.range(200).selectExpr("cast(id AS string) AS key", "repeat(cast(id AS string), 3) AS value")
    writer = rows.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    writer.option("topic", name).save()
    found = collected(load(subscribe=name))
    assert found == kafka.read(name)
    assert sorted(int(record.key or b"") for record in found) == list(range(200))


def test_spark_s_connector_writes_a_stream_whose_lag_a_listener_shows(
    load_stream: Load, spark: SparkSession, broker: Broker, kafka: Kafka, topic: str, name: str, tmp_path: Path
) -> None:
    """A job on Spark's own connector, from topic to topic: the listener knows no more than what it reports."""
    kafka.make(name, 2)
    listener = OffsetCommitter(broker.bootstrap, "{query}-lag", queries=[name])
    spark.streams.addListener(listener)
    try:
        frame = load_stream("kafka", subscribe=topic, startingOffsets="earliest", includeHeaders="true")
        writer = frame.select("key", "value", "headers").writeStream.format("kafka").queryName(name)
        writer = writer.option("kafka.bootstrap.servers", broker.bootstrap).option("topic", name)
        writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        assert writer.start().awaitTermination(90)
        ends = {record.partition: record.offset + 1 for record in kafka.read(topic)}
        eventually(lambda: kafka.committed(f"{name}-lag", topic) == ends, within_s=DEADLINE_S, what="the commit")
    finally:
        spark.streams.removeListener(listener)

    def contents(of: str) -> list[str]:
        return sorted(repr((record.key, record.value, record.headers)) for record in kafka.read(of))

    assert contents(name) == contents(topic)
