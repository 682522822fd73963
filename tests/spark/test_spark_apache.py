"""Apache Kafka is read and written as this broker is: over Fetch and from its files, with transactions that were
aborted; in every codec."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, StringType, StructType

from cordwood.spark.arrow_schema import HEADERS_TYPE
from cordwood.spark.reading import Task
from spark.engine import Query, batch, source
from spark.spark_topics import CODECS, DEADLINE_S, Kafka, without_headers
from support.kafka import KafkaProcess

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    process = KafkaProcess(tmp_path_factory.mktemp("kafka"), {"log.retention.ms": -1})
    process.start()
    yield Kafka(process.bootstrap)
    process.kill()


@pytest.fixture(scope="module")
def transactions(apache: Kafka) -> str:
    """Transactions that were committed and aborted, with records of nobody's transaction in between."""
    topic = apache.make("transactions", 2)
    producers = [
        Producer({"bootstrap.servers": apache.bootstrap, "transactional.id": name, "log_level": 0}) for name in "ab"
    ]
    for producer in producers:
        producer.init_transactions(DEADLINE_S)
    for turn in range(6):
        for number, producer in enumerate(producers):
            producer.begin_transaction()
            for record in range(20):
                producer.produce(topic, b"%d-%d-%d" % (turn, number, record), partition=record % 2)
            producer.flush(DEADLINE_S)
        apache.produce(topic, [b"alone-%d" % turn], partition=turn % 2)
        for number, producer in enumerate(producers):
            end = producer.abort_transaction if (turn + number) % 3 == 0 else producer.commit_transaction
            end(DEADLINE_S)
    return topic


def test_records_of_every_kind_are_read(apache: Kafka, name: str) -> None:
    apache.make(name, 2)
    apache.produce_random(name, 2, 500, seed=5)
    apache.delete_records(name, 0, 10)
    stored = apache.read(name)
    assert batch(apache.bootstrap, subscribe=name, includeHeaders="true") == stored
    query = Query(apache.bootstrap, subscribe=name, startingOffsets="earliest", group=name, maxOffsetsPerTrigger=100)
    found = sorted((record for part in query.drain() for record in part), key=lambda record: record[:3])
    query.stop()
    assert found == without_headers(stored)
    assert apache.committed(name, name) == {record.partition: record.offset + 1 for record in stored}


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_aborted_records_are_read_only_if_wanted(apache: Kafka, transactions: str, isolation: str) -> None:
    wanted = without_headers(apache.read(transactions, isolation=isolation))
    assert len(wanted) == 6 + 240 - 80 * (isolation == "read_committed")
    for options in ({}, {"maxRecordsPerPartition": 7}):
        assert batch(apache.bootstrap, subscribe=transactions, kafka_isolation_level=isolation, **options) == wanted


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_its_files_are_read_where_they_can_be_seen(apache: Kafka, name: str, isolation: str) -> None:
    apache.produce(apache.make(name), (b"%d" % number for number in range(50_000)), codec="lz4")
    options = {"subscribe": name, "kafka.isolation.level": isolation}
    made = source(apache.bootstrap, **options)
    (task,) = made.reader(made.schema()).partitions()
    assert isinstance(task, Task)
    assert Path(task.hints[name, 0].log_dir).is_dir()
    found = batch(apache.bootstrap, **options)
    assert [record.value for record in found] == [b"%d" % number for number in range(50_000)]
    assert found == batch(apache.bootstrap, **options, direct="never")


@pytest.mark.parametrize("codec", CODECS)
def test_rows_of_every_kind_are_written(apache: Kafka, name: str, codec: str) -> None:
    """More than one batch for each partition, with numbers that keep them from being stored twice."""
    apache.make(name, 2)
    count = 5_000
    keys = [None if number % 10 == 0 else b"key-%d" % number for number in range(count)]
    values = [None if number % 7 == 0 else b"%d" % number * 20 for number in range(count)]
    headers = [[{"key": "h", "value": b"%d" % number}] if number % 3 else None for number in range(count)]
    partitions = [number % 2 for number in range(count)]
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "headers": pa.array(headers, HEADERS_TYPE),
        "partition": pa.array(partitions, pa.int32()),
    }
    header = StructType().add("key", StringType()).add("value", BinaryType())
    schema = StructType().add("key", BinaryType()).add("value", BinaryType())
    schema = schema.add("headers", ArrayType(header)).add("partition", IntegerType())
    made = source(apache.bootstrap, topic=name, kafka_compression_type=codec)
    writer = pickle.loads(pickle.dumps(made.writer(schema, overwrite=False)))
    writer.write(iter([pa.record_batch(columns)]))
    found = apache.read(name)
    for partition in range(2):
        wanted = range(partition, count, 2)
        here = [record for record in found if record.partition == partition]
        assert [(record.key, record.value) for record in here] == [(keys[n], values[n]) for n in wanted]
        assert [record.headers for record in here] == [(("h", b"%d" % n),) if n % 3 else None for n in wanted]


def test_a_topic_is_made_by_being_written_to(apache: Kafka, name: str) -> None:
    made = source(apache.bootstrap, topic=name)
    writer = made.writer(StructType().add("value", BinaryType()), overwrite=False)
    writer.write(iter([pa.record_batch({"value": pa.array([b"a", b"b"], pa.binary())})]))
    assert sorted(record.value or b"" for record in apache.read(name)) == [b"a", b"b"]
