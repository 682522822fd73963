"""Topics as views and tables: what they show, and when."""

import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import pytest
from pyspark.sql import DataFrame, SparkSession

from cordwood.client.raw import Unavailable
from cordwood.errors import ConfigError
from cordwood.spark import attach, table
from cordwood.spark.views import BOOTSTRAP_KEY, DATABASE, latest_query, quoted
from cordwood.testing import Broker
from spark.spark_topics import Kafka

Load = Callable[..., DataFrame]


def put(
    kafka: Kafka, topic: str, *records: tuple[str | None, str | None], partition: int = 0, time_ms: int = 0
) -> None:
    producer = kafka.producer("none")
    for number, (key, value) in enumerate(records):
        producer.produce(topic, value, key=key, partition=partition, timestamp=time_ms + number)
    assert producer.flush(30) == 0


def shown(frame: DataFrame, *columns: str) -> list[tuple[object, ...]]:
    rows = frame.selectExpr(*(columns or ("CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value"))).collect()
    return sorted(tuple(row) for row in rows)


def test_views_show_what_is_in_the_topics_each_time(
    spark: SparkSession, broker: Broker, kafka: Kafka, name: str
) -> None:
    odd, compacted = f"{name}.odd-Name", f"{name}-compacted"
    kafka.make(odd, 2)
    kafka.make(compacted, cleanup_policy="compact")
    put(kafka, odd, ("a", "1"), ("b", "2"))
    put(kafka, compacted, ("a", "1"), ("b", "2"), ("a", "3"), ("b", None))
    views = attach(spark, broker.bootstrap, prefix="v_", topics=f"{name}.*")
    assert sorted(views) == sorted(["v_" + odd, "v_" + compacted])
    query = f"SELECT * FROM {quoted('v_' + odd)}"
    assert shown(spark.sql(query)) == [("a", "1"), ("b", "2")]
    assert shown(spark.table(quoted("v_" + compacted))) == [("a", "3")]
    put(kafka, odd, ("c", "4"), partition=1)
    put(kafka, compacted, ("b", "5"))
    assert shown(spark.sql(query)) == [("a", "1"), ("b", "2"), ("c", "4")]
    assert shown(spark.table(quoted("v_" + compacted))) == [("a", "3"), ("b", "5")]


def test_what_may_be_secret_is_in_no_views_text(spark: SparkSession, broker: Broker, kafka: Kafka, name: str) -> None:
    kafka.make(name)
    put(kafka, name, ("a", "1"))
    secrets = {"kafka.sasl.password": "hush-hush", "schema.registry.basic.auth.user.info": "me:hush-hush"}
    (view,) = attach(spark, broker.bootstrap, topics=name, options={**secrets, "kafka.client.id": "me"})
    assert shown(spark.table(quoted(view))) == [("a", "1")]
    catalog = spark._jsparkSession.sessionState().catalog()
    text = catalog.getRawTempView(view).get().tableMeta().viewText().get()
    plan = spark.sql(f"EXPLAIN EXTENDED SELECT * FROM {quoted(view)}").collect()
    assert "hush" not in text + str(plan)
    (path,) = re.findall(r"'optionsFile' = '([^']*)'", text)
    assert Path(path).stat().st_mode & 0o077 == 0
    assert Path(path).parent.stat().st_mode & 0o077 == 0


def test_a_database_that_has_outlived_its_directory_is_used_all_the_same(
    spark: SparkSession, broker: Broker, kafka: Kafka, name: str
) -> None:
    """Hive's catalog keeps it, whatever becomes of a temporary directory."""
    kafka.make(name)
    put(kafka, name, ("a", "1"))
    attach(spark, broker.bootstrap, topics=name)
    shutil.rmtree(url2pathname(urlparse(spark.catalog.getDatabase(DATABASE).locationUri).path))
    (view,) = attach(spark, broker.bootstrap, topics=name, options={"kafka.sasl.password": "hush-hush"})
    assert shown(spark.table(quoted(view))) == [("a", "1")]


def test_a_view_has_typed_values(spark: SparkSession, broker: Broker, kafka: Kafka, name: str) -> None:
    kafka.make(name)
    put(kafka, name, ("a", '{"id":1,"x":{"y":2.5}}'), ("b", "bad"), ("c", '{"id":"no"}'), ("d", None))
    (view,) = attach(spark, broker.bootstrap, topics=name, options={"valueFormat": "json", "keyFormat": "string"})
    found = shown(spark.table(quoted(view)), "key", "value.id", "value.x.y", "_error IS NOT NULL")
    assert found == [
        ("a", "1", 2.5, False),
        ("b", None, None, True),
        ("c", "no", None, False),
        ("d", None, None, False),
    ]


def test_a_topic_without_types_yet_is_shown_as_bytes(
    spark: SparkSession, broker: Broker, kafka: Kafka, name: str
) -> None:
    full, empty, dead, compacted = (f"{name}-{kind}" for kind in ("full", "empty", "dead", "compacted"))
    for topic in (full, empty, dead):
        kafka.make(topic)
    kafka.make(compacted, cleanup_policy="compact")
    put(kafka, full, ("a", '{"id":1}'))
    put(kafka, dead, ("a", "bad"))
    options = {"valueFormat": "json", "keyFormat": "string", "deadLetterTopic": dead}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        views = attach(spark, broker.bootstrap, topics=name + ".*", options=options)
    assert sorted(views) == sorted([full, empty, dead, compacted])
    assert [str(entry.message).partition(" is shown as bytes")[0] for entry in told] == [
        f"topic {compacted}",
        f"topic {empty}",
    ]
    assert shown(spark.table(quoted(full)), "key", "value.id") == [("a", 1)]
    assert shown(spark.table(quoted(dead))) == [("a", "bad")]
    assert shown(spark.table(quoted(empty))) == []
    put(kafka, empty, ("a", '{"id":2}'))
    put(kafka, compacted, ("a", "1"), ("a", "2"))
    assert shown(spark.table(quoted(empty))) == [("a", '{"id":2}')]
    assert shown(spark.table(quoted(compacted))) == [("a", "2")]
    assert attach(spark, broker.bootstrap, topics=empty, options=options) == [empty]
    assert shown(spark.table(quoted(empty)), "key", "value.id") == [("a", 2)]


def test_a_table_as_it_was(spark: SparkSession, broker: Broker, kafka: Kafka, name: str) -> None:
    kafka.make(name, 2)
    put(kafka, name, ("a", "1"), ("b", "2"), ("a", "3"), time_ms=1_000_000)
    put(kafka, name, ("c", "4"), partition=1, time_ms=2_000_000)

    def rows(**given: object) -> list[tuple[object, ...]]:
        return shown(table(spark, name, bootstrap=broker.bootstrap, **given))  # type: ignore[arg-type]

    assert rows() == [("a", "1"), ("a", "3"), ("b", "2"), ("c", "4")]
    assert rows(as_of={0: 2, 1: 1}) == [("a", "1"), ("b", "2"), ("c", "4")]
    assert rows(as_of={0: 1}) == [("a", "1")]
    assert (
        rows(as_of=1_500_000) == rows(as_of=datetime.fromtimestamp(1500, UTC)) == [("a", "1"), ("a", "3"), ("b", "2")]
    )
    assert rows(as_of="1970-01-01T00:25:00Z") == rows(as_of="1970-01-01 00:25") == rows(as_of=1_500_000)
    assert rows(as_of={0: 2, 1: 0}, latest=True) == [("a", "1"), ("b", "2")]
    assert rows(latest=True) == [("a", "3"), ("b", "2"), ("c", "4")]


def test_the_latest_of_a_key_in_several_partitions_is_the_youngest(spark: SparkSession) -> None:
    rows = [
        ("a", 0, 5, 10, "old"),
        ("a", 0, 6, 9, "older, and later in its partition"),
        ("a", 1, 0, 30, "new"),
        ("b", 0, 1, 1, None),
        (None, 0, 2, 1, "nobody's"),
    ]
    columns = "key STRING, partition INT, offset LONG, timestamp LONG, value STRING"
    found = spark.sql(latest_query("{rows}"), rows=spark.createDataFrame(rows, columns))
    assert shown(found, "value") == [("new",)]
    assert found.columns == ["key", "partition", "offset", "timestamp", "value"]


def test_wrong_calls_say_what_to_do(spark: SparkSession, broker: Broker, name: str) -> None:
    spark.conf.unset(BOOTSTRAP_KEY)
    with pytest.raises(ConfigError, match=r"attach first"):
        table(spark, name)
    with pytest.raises(ConfigError, match="no partition"):
        table(spark, name, bootstrap=broker.bootstrap, latest=False, as_of={})
    with pytest.raises(ConfigError, match=r"as_of is 1700000000\.5"):
        table(spark, name, bootstrap=broker.bootstrap, as_of=1_700_000_000.5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="not a regular expression"):
        attach(spark, broker.bootstrap, topics="(")
    for option in ("subscribe", "subscribepattern", "Assign"):
        with pytest.raises(ConfigError, match=f"option {option} cannot be given here.*topics="):
            attach(spark, broker.bootstrap, options={option: "x"})
        with pytest.raises(ConfigError, match=f"option {option} cannot be given here"):
            table(spark, name, bootstrap=broker.bootstrap, options={option: "x"})
    with pytest.raises(ConfigError, match="option endingOffsets cannot be given here"):
        table(spark, name, bootstrap=broker.bootstrap, as_of=5, options={"endingOffsets": "latest"})


def test_an_attach_that_fails_leaves_the_address_as_it_was(spark: SparkSession, broker: Broker, name: str) -> None:
    spark.conf.set(BOOTSTRAP_KEY, broker.bootstrap)
    with pytest.raises(Unavailable):
        attach(spark, "127.0.0.1:1", options={"kafka.default.api.timeout.ms": "100"})
    assert spark.conf.get(BOOTSTRAP_KEY) == broker.bootstrap
    attach(spark, broker.bootstrap.replace("127.0.0.1", "localhost"), topics="none-" + name)
    assert "localhost" in str(spark.conf.get(BOOTSTRAP_KEY))


def test_topics_that_differ_in_case_alone_have_one_view(
    spark: SparkSession, broker: Broker, kafka: Kafka, name: str
) -> None:
    kafka.make(name)
    kafka.make(name.upper())
    with pytest.warns(UserWarning, match=f"no view for topic {name}"):
        assert attach(spark, broker.bootstrap, topics=f"(?i){name}") == [name.upper()]


# The source with typed values


def test_bad_records_of_a_stream_go_to_their_topic(
    spark: SparkSession, broker: Broker, kafka: Kafka, name: str, load_stream: Load
) -> None:
    kafka.make(name)
    kafka.make(name + "-dead")
    put(kafka, name, ("a", '{"id":1}'), ("b", "bad"), ("c", '{"id":3}'))
    frame = load_stream(
        subscribe=name,
        startingOffsets="earliest",
        valueFormat="json",
        valueSchema="id BIGINT",
        deadLetterTopic=name + "-dead",
    )
    assert "_error" not in frame.columns
    query = frame.selectExpr("value.id").writeStream.format("memory").queryName("typed").trigger(availableNow=True)
    query.start().awaitTermination()
    assert shown(spark.table("typed"), "id") == [(1,), (3,)]
    (letter,) = kafka.read(name + "-dead")
    assert (letter.key, letter.value) == (b"b", b"bad")


# Without Spark


def test_without_pyspark_there_is_a_sentence() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import cordwood.spark\n"
        "try: cordwood.spark.attach\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'cordwood[spark]'" in done.stdout
