"""The sink: where rows go, what is refused and why, and that nothing is lost nor stored twice."""

import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from cordwood.client.raw import RawSettings, RequestRefused
from cordwood.errors import ConfigError
from cordwood.spark import outlet as outlets
from cordwood.spark.arrow_schema import HEADERS_TYPE
from cordwood.spark.encode import Rows
from cordwood.spark.option_names import Use, check_names
from cordwood.spark.outlet import Outlet
from cordwood.spark.sink import StreamSink
from cordwood.spark.sink_options import SinkOptions
from cordwood.spark.sink_rows import SinkColumns, UnwritableRow, by_topic, gathered
from cordwood.spark.source import CordwoodSource
from cordwood.testing import Broker
from spark.spark_topics import CODECS, Kafka, Read
from support.process import BrokerProcess

SINK = {"kafka.bootstrap.servers": "127.0.0.1:9092", "topic": "t"}


def options(broker: Broker, **given: str) -> SinkOptions:
    named = {name.replace("_", "."): value for name, value in given.items()}
    return SinkOptions.of({"kafka.bootstrap.servers": broker.bootstrap, **named})


def rows(*values: bytes | None, keys: list[bytes | None] | None = None, partition: int | None = None) -> Rows:
    count = len(values)
    return Rows(
        pa.array(values, pa.binary()),
        None if keys is None else pa.array(keys, pa.binary()),
        None,
        None if partition is None else pa.array([partition] * count, pa.int32()),
    )


def values(records: list[Read]) -> list[bytes | None]:
    return [record.value for record in records]


# Options


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"kafka.acks": "2"}, "option kafka.acks is '2'; write all or -1 or 1 or 0"),
        ({"kafka.compression.type": "brotli"}, "none or gzip or snappy or lz4 or zstd"),
        ({"kafka.max.request.size": "big"}, "write a whole number"),
        ({"kafka.acks": "1", "kafka.enable.idempotence": "true"}, "needs kafka.acks=all"),
        ({"topic": " "}, "option topic is empty"),
        ({"kafka.compression.gzip.level": "99"}, "option kafka.compression.gzip.level is '99'; write -1 or 1 to 9"),
        ({"kafka.compression.gzip.level": "0"}, "write -1 or 1 to 9"),
        ({"kafka.compression.type": "lz4", "kafka.compression.lz4.level": "18"}, "write 1 to 17"),
        ({"kafka.compression.zstd.level": "high"}, "write -131072 to 22"),
        ({"kafka.security.protocol": "TLS"}, "option kafka.security.protocol"),
        ({"kafka.bootstrap.servers": "127.0.0.1"}, "option kafka.bootstrap.servers: 127.0.0.1 is not an address"),
    ],
)
def test_wrong_options_say_what_is_right(given: Mapping[str, str], reason: str) -> None:
    with pytest.raises(ConfigError) as error:
        SinkOptions.of({"kafka.bootstrap.servers": "127.0.0.1:9092", **given})
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("topik", "did you mean topic?"),
        ("subscribe", "option subscribe is for reading"),
        ("kafka.compresion.type", "did you mean kafka.compression.type?"),
        ("kafka.value.serializer", "text or bytes"),
        ("kafka.partitioner.class", "give a column partition"),
        ("kafka.transactional.id", "at least once"),
        ("kafka.max.poll.records", "there is no option kafka.max.poll.records"),
    ],
)
def test_a_name_that_is_none_gets_the_nearest(name: str, reason: str) -> None:
    with pytest.raises(ConfigError) as error:
        check_names([name], Use.WRITE)
    assert reason in str(error.value)


def test_the_producers_names_are_taken() -> None:
    check_names(
        ["topic", "KAFKA.Linger.ms", "kafka.batch.size", "kafka.acks", "kafka.ssl.truststore.location"], Use.WRITE
    )
    found = SinkOptions.of(
        {
            "kafka.bootstrap.servers": "127.0.0.1:9092",
            "Kafka.Delivery.Timeout.ms": "5000",
            "kafka.compression.type": "zstd",
            "kafka.compression.zstd.level": "7",
            "kafka.acks": "1",
        }
    )
    assert (found.settings.timeout_ms, found.codec.name, found.level, found.acks) == (5000, "ZSTD", 7, 1)
    assert (
        SinkOptions.of({**SINK, "kafka.compression.type": "gzip", "kafka.compression.gzip.level": "-1"}).level is None
    )
    assert not found.idempotent, "a new leader may not know of rows that one broker has confirmed"


# Columns


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (StructType().add("key", "string"), "there is no column value; the columns are key"),
        (StructType().add("value", "integer"), "the column value is int; it must be text or bytes"),
        (StructType().add("value", "string").add("key", "long"), "the column key is bigint"),
        (StructType().add("value", "string").add("partition", "long"), "CAST(partition AS INT)"),
        (StructType().add("value", "string").add("headers", "string"), "ARRAY<STRUCT<key: STRING, value: BINARY>>"),
    ],
)
def test_wrong_columns_say_what_to_do(schema: StructType, reason: str) -> None:
    with pytest.raises(ConfigError) as error:
        SinkColumns.of(schema, topic="t")
    assert reason in str(error.value)


def test_a_topic_comes_from_the_option_or_the_column() -> None:
    schema = StructType().add("value", "string").add("other", "date")
    with pytest.raises(ConfigError, match="option topic"):
        SinkColumns.of(schema, topic=None)
    assert SinkColumns.of(schema, topic="t").names == ("value",)
    schema = schema.add("topic", "string")
    assert SinkColumns.of(schema, topic=None).names == ("value", "topic")
    assert SinkColumns.of(schema, topic="t").names == ("value",)


def test_rows_are_gathered_and_parted_by_topic() -> None:
    columns = SinkColumns(("value", "topic"))
    batch = pa.record_batch({"other": [1, 2, 3], "value": ["a", "b", "c"], "topic": ["y", "x", "y"]})
    (whole,) = gathered([batch, batch], columns)
    found = {topic: part.value.to_pylist() for topic, part in by_topic(whole, None)}
    assert found == {"x": ["b", "b"], "y": ["a", "c", "a", "c"]}
    with pytest.raises(UnwritableRow, match="topic is null"):
        list(by_topic(pa.record_batch({"value": ["a"], "topic": pa.array([None], pa.string())}), None))


def test_a_topic_can_not_be_overwritten() -> None:
    with pytest.raises(ConfigError, match=r'mode\("append"\)'):
        CordwoodSource(SINK).writer(StructType().add("value", "string"), overwrite=True)


def test_a_stream_in_complete_mode_appends() -> None:
    """Spark says overwrite for it."""
    writer = CordwoodSource(SINK).streamWriter(StructType().add("value", "string"), overwrite=True)
    assert isinstance(writer, StreamSink)


# Rows to topics


@pytest.mark.parametrize("codec", CODECS)
def test_rows_arrive_in_order_with_all_that_they_have(broker: Broker, kafka: Kafka, name: str, codec: str) -> None:
    kafka.make(name, 2)
    headers = pa.array([[{"key": "h", "value": b"\0"}, {"key": "h", "value": None}], None], HEADERS_TYPE)
    given = Rows(pa.array(["é", None]), pa.array([b"k", None], pa.binary()), headers, pa.array([1, 1], pa.int32()))
    with Outlet(options(broker, kafka_compression_type=codec)) as outlet:
        outlet.write(name, given, 1234)
        outlet.write(name, rows(*[b"%d" % n for n in range(1000)], partition=0))
        outlet.check()
    first, second = [record for record in kafka.read(name) if record.partition == 1]
    assert first[3:] == (b"k", "é".encode(), 1234, 0, (("h", b"\0"), ("h", None)))
    assert (second.key, second.value, second.headers) == (None, None, None)
    assert values([r for r in kafka.read(name) if r.partition == 0]) == [b"%d" % n for n in range(1000)]
    assert outlet.rows == 1002


def test_keys_go_where_the_java_client_sends_them(broker: Broker, kafka: Kafka, name: str) -> None:
    kafka.make(name, 7)
    kafka.make(name + "-judge", 7)
    keys: list[bytes | None] = [b"%d" % n * (n % 5 + 1) for n in range(300)]
    judge = Producer({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random", "log_level": 0})
    for key in keys:
        judge.produce(name + "-judge", b"", key=key)
    assert judge.flush(30) == 0
    with Outlet(options(broker)) as outlet:
        outlet.write(name, rows(*[b""] * 300, keys=keys))
    found = {record.key: record.partition for record in kafka.read(name)}
    assert found == {record.key: record.partition for record in kafka.read(name + "-judge")}


def test_rows_without_keys_fill_all_partitions(broker: Broker, kafka: Kafka, name: str) -> None:
    kafka.make(name, 3)
    with Outlet(options(broker), first_partition=1) as outlet:
        outlet.write(name, rows(b"first"))
        outlet.write(name, rows(*[b"x" * 1000] * 6000))
    found = kafka.read(name)
    assert next(record.partition for record in found if record.value == b"first") == 1
    assert set(Counter(record.partition for record in found)) == {0, 1, 2}


def test_more_topics_than_connections(broker: Broker, kafka: Kafka, name: str) -> None:
    topics = [kafka.make(f"{name}-{number}") for number in range(outlets.TOPICS_OPEN_MAX + 2)]
    with Outlet(options(broker)) as outlet:
        for number in range(3):
            for topic in topics:
                outlet.write(topic, rows(b"%d" % number))
                outlet.check()
    assert values(kafka.read(topics[0])) == values(kafka.read(topics[-1])) == [b"0", b"1", b"2"]


def test_a_row_that_is_too_large_is_named(broker: Broker, kafka: Kafka, name: str) -> None:
    kafka.make(name, max_message_bytes=10_000)
    given = rows(b"small", b"x" * 20_000, keys=[b"a", b"b"])
    with pytest.raises(UnwritableRow) as error, Outlet(options(broker)) as outlet:
        outlet.write(name, given)
    assert "a row of 20001 bytes, with the key b'b'" in str(error.value)
    assert "takes at most 10000. Raise the topic's max.message.bytes" in str(error.value)
    small = options(broker, kafka_max_request_size="500")
    with pytest.raises(UnwritableRow, match=r"kafka\.max\.request\.size allows, which is 500"), Outlet(small) as outlet:
        outlet.write(name, given)
    assert kafka.read(name) == []
    with Outlet(options(broker, kafka_compression_type="zstd")) as outlet:
        outlet.write(name, given)
        outlet.write(name, rows(*[b"y" * 900] * 100))
    assert len(kafka.read(name)) == 102


def test_a_row_that_the_broker_refuses_says_what_to_do(broker: Broker, kafka: Kafka, name: str) -> None:
    kafka.make(name, cleanup_policy="compact")
    with pytest.raises(UnwritableRow, match="takes no row without a key"), Outlet(options(broker)) as outlet:
        outlet.write(name, rows(b"x"))
    with pytest.raises(ConfigError, match="partition has a 3"), Outlet(options(broker)) as outlet:
        outlet.write(name, rows(b"x", partition=3))
    with pytest.raises(RequestRefused, match="name"), Outlet(options(broker)) as outlet:
        outlet.write("no/name", rows(b"x"))


def test_a_broker_that_dies_and_comes_back_has_each_row_once(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, settings={"num.partitions": 2}) as process:
        port = int(process.bootstrap.rpartition(":")[2])
        settings = RawSettings(process.bootstrap, timeout_ms=60_000, retry_backoff_ms=50)
        with Outlet(SinkOptions(settings)) as outlet:
            outlet.write("t", rows(*[b"%d" % n for n in range(5000)]))
            process.kill()
            again = BrokerProcess(tmp_path, settings={"num.partitions": 2}, port=port)
            starting = threading.Thread(target=again.start)
            starting.start()
            try:
                outlet.write("t", rows(*[b"%d" % n for n in range(5000, 10_000)]))
                outlet.flush()
                found = Counter(values(Kafka(process.bootstrap).read("t")))
            finally:
                starting.join()
                again.end()
    assert found == Counter(b"%d" % n for n in range(10_000))


# With Spark


def test_a_table_is_written(spark: SparkSession, broker: Broker, kafka: Kafka, name: str) -> None:
    kafka.make(name, 2)
    kafka.make(name + "-2", 2)
    frame = spark.range(0, 30_000, numPartitions=3).selectExpr(
        "CAST(id AS STRING) AS key",
        "CASE WHEN id % 10 = 0 THEN NULL ELSE CAST(concat('v', id) AS BINARY) END AS value",
        "array(struct('h' AS key, CAST('x' AS BINARY) AS value)) AS headers",
        f"IF(id < 20000, '{name}', '{name}-2') AS topic",
        "IF(id % 2 = 0, CAST(1 AS INT), NULL) AS partition",
        "id AS unused",
    )
    writer = frame.write.format("cordwood").option("kafka.bootstrap.servers", broker.bootstrap)
    writer.option("kafka.compression.type", "lz4").mode("append").save()
    found = {int(record.key or b""): record for record in kafka.read(name, name + "-2")}
    assert len(found) == 30_000 == sum(1 for _ in kafka.read(name, name + "-2"))
    for number, record in found.items():
        assert record.value == (None if number % 10 == 0 else b"v%d" % number)
        assert record.topic == (name if number < 20_000 else name + "-2")
        assert record.headers == (("h", b"x"),)
    assert all(found[number].partition == 1 for number in range(0, 30_000, 2))


def test_a_stream_is_written_and_goes_on_from_its_checkpoint(
    spark: SparkSession, broker: Broker, kafka: Kafka, name: str, tmp_path: Path
) -> None:
    kafka.make(name, 2)
    kafka.make(name + "-out", 2)

    def run() -> None:
        stream = spark.readStream.format("cordwood").option("kafka.bootstrap.servers", broker.bootstrap)
        source = stream.option("subscribe", name).option("startingOffsets", "earliest").load()
        query = (
            source.selectExpr("key", "concat('>', CAST(value AS STRING)) AS value")
            .writeStream.format("cordwood")
            .option("kafka.bootstrap.servers", broker.bootstrap)
            .option("topic", name + "-out")
            .option("includeHeaders", "true")  # as jobs have it that wrote with Spark's own connector
            .option("checkpointLocation", str(tmp_path))
            .queryName("named by the user")
            .trigger(availableNow=True)
            .start()
        )
        assert query.name == "named by the user"
        query.awaitTermination()

    for part in ((b"a", b"b"), (b"c",)):
        kafka.produce(name, part)
        run()
    assert sorted(filter(None, values(kafka.read(name + "-out")))) == [b">a", b">b", b">c"]


def test_errors_of_the_sink_reach_the_user(spark: SparkSession, broker: Broker, name: str) -> None:
    frame = spark.range(1).selectExpr("repeat('x', 2000000) AS value")
    writer = frame.write.format("cordwood").option("kafka.bootstrap.servers", broker.bootstrap)
    with pytest.raises(Exception, match="a topic cannot be overwritten"):
        writer.option("topic", name).mode("overwrite").save()
    with pytest.raises(Exception, match="a row of 2000000 bytes, with no key"):
        writer.option("topic", name).mode("append").save()
