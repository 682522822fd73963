"""Dead letters: a record goes to its topic as it was, and is never read from there by the query that sent it."""

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from cordwood.client.raw import RawClient, RawSettings, RequestRefused
from cordwood.errors import ConfigError, Error
from cordwood.spark.arrow_schema import HEADERS_TYPE
from cordwood.spark.outlet import Outlet
from cordwood.spark.schema import Columns
from cordwood.spark.sink_options import SinkOptions
from cordwood.spark.source import CordwoodSource
from cordwood.spark.values import ValueDecoder, make
from cordwood.testing import Broker
from spark import engine
from spark.spark_topics import Kafka, Read


def schema(dead_letters: str, **options: str) -> StructType:
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "valueFormat": "string", "deadLetterTopic": dead_letters}
    return CordwoodSource({**given, **options}).schema()


@pytest.mark.parametrize(
    ("dead_letters", "option", "value"),
    [
        ("orders", "subscribe", "users, orders"),
        (" orders ", "subscribe", "orders"),
        ("orders-dead", "subscribePattern", "orders.*"),
        ("my-orders", "subscribePattern", "orders"),
        ("orders", "assign", '{"orders":[1],"users":[0]}'),
    ],
)
def test_a_query_does_not_read_its_own_dead_letters(dead_letters: str, option: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"option deadLetterTopic is {dead_letters.strip()}, .* option {option}"):
        schema(dead_letters, **{option: value})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("subscribe", "orders,orders-dead2"),
        ("subscribePattern", "^orders$"),
        ("assign", '{"orders":[0]}'),
    ],
)
def test_other_topics_can_have_its_dead_letters(option: str, value: str) -> None:
    assert "_error" not in schema("orders-dead", **{option: value}).names


def test_a_topic_for_dead_letters_has_a_name() -> None:
    with pytest.raises(ConfigError, match="deadLetterTopic is empty"):
        schema(" ", subscribe="orders")


def decoder(dead_letters: str) -> ValueDecoder:
    made = make({"valueFormat": "json", "valueSchema": "a INT", "keyFormat": "string", "deadLetterTopic": dead_letters})
    assert made is not None
    return made


def test_headers_are_read_for_dead_letters_and_only_for_them() -> None:
    assert "headers" in decoder("dead").needed(Columns.of(["value"])).names
    assert "headers" not in decoder("dead").needed(Columns.of(["offset"])).names


def test_a_dead_letter_is_the_record_as_it_was_and_then_where_it_was(broker: Broker, kafka: Kafka, name: str) -> None:
    kafka.make(name)
    headers = [
        [("trace", b"1"), ("empty", None), ("trace", b""), ("gr\u00fcn", b"\xff")],
        None,
        [],
        [("good", b"1")],
    ]
    rows = pa.record_batch(
        {
            "value": pa.array([b"bad", None, b"", b'{"a":1}'], pa.binary()),
            "key": pa.array([b"k", b"\xff", None, b"k"], pa.binary()),
            "headers": pa.array(
                [None if row is None else [{"key": n, "value": v} for n, v in row] for row in headers], HEADERS_TYPE
            ),
            "topic": pa.array(["orders"] * 4),
            "partition": pa.array([3] * 4, pa.int32()),
            "offset": pa.array([10, 11, 12, 13]),
            "timestamp": pa.array([5_000_000, 6_000_000, -1000, 7_000_000], pa.timestamp("us", tz="UTC")),
        }
    )
    (found,) = decoder(name).rows([rows], Columns.of(["key", "value"]), RawSettings(broker.bootstrap))
    assert found.to_pydict() == {"key": ["k"], "value": [{"a": 1}]}
    letters = kafka.read(name)
    assert [(letter.key, letter.value) for letter in letters] == [(b"k", b"bad"), (b"\xff", None), (None, b"")]
    assert [letter.timestamp_ms for letter in letters[:2]] == [5000, 6000]
    own = [letter.headers or () for letter in letters]
    assert own[0][:4] == (("trace", b"1"), ("empty", None), ("trace", b""), ("gr\u00fcn", b"\xff"))
    names = ["cordwood.origin.topic", "cordwood.origin.partition", "cordwood.origin.offset", "cordwood.reason"]
    assert [[name for name, _ in found[-4:]] for found in own] == [names] * 3
    assert [len(found) for found in own] == [8, 4, 4]


# Its topic, when a query starts


def test_a_query_does_not_start_without_a_topic_for_its_dead_letters(name: str) -> None:
    options = {"subscribe": name, "valueFormat": "string", "deadLetterTopic": "nowhere"}
    with Broker(settings={"auto.create.topics.enable": False}) as broker:
        Kafka(broker.bootstrap).make(name)
        source = engine.source(broker.bootstrap, kafka_default_api_timeout_ms=500, **options)
        reader, stream = source.reader(source.schema()), source.streamReader(source.schema())
        for ask in (
            reader.partitions,
            stream.initialOffset,
            lambda: stream.latestOffset({}, stream.getDefaultReadLimit()),
        ):
            with pytest.raises(ConfigError, match="option deadLetterTopic is nowhere, which does not exist"):
                ask()
        offsets = engine.source(broker.bootstrap, columns="offset", **options)
        assert offsets.reader(offsets.schema()).partitions() == []


def test_a_compacted_topic_takes_no_dead_letters(broker: Broker, kafka: Kafka, name: str) -> None:
    kafka.make(name, cleanup_policy="delete,compact")
    source = engine.source(broker.bootstrap, subscribe="orders", valueFormat="string", deadLetterTopic=name)
    with pytest.raises(ConfigError, match=f"option deadLetterTopic is {name}, which is compacted"):
        source.reader(source.schema()).partitions()


def test_a_topic_that_is_too_small_for_where_a_record_was_takes_no_dead_letters(
    broker: Broker, kafka: Kafka, name: str
) -> None:
    kafka.make(name, max_message_bytes=4095)
    source = engine.source(broker.bootstrap, subscribe="orders", valueFormat="string", deadLetterTopic=name)
    with pytest.raises(ConfigError, match=f"option deadLetterTopic is {name}, whose max.message.bytes is 4095"):
        source.reader(source.schema()).partitions()


def test_the_topic_for_dead_letters_is_made_when_the_query_starts(broker: Broker, kafka: Kafka, name: str) -> None:
    kafka.make(name)
    source = engine.source(broker.bootstrap, subscribe=name, valueFormat="string", deadLetterTopic=f"{name}-dead")
    source.reader(source.schema()).partitions()
    assert kafka.read(f"{name}-dead") == []


# Large ones


def sent(broker: Broker, kafka: Kafka, topic: str, records: Sequence[tuple[bytes | None, bytes | None]]) -> list[Read]:
    """Keys and values of bad records, as they are in the topic of dead letters."""
    count = len(records)
    rows = pa.record_batch(
        {
            "key": pa.array([key for key, _ in records], pa.binary()),
            "value": pa.array([value for _, value in records], pa.binary()),
            "headers": pa.array([[{"key": "own", "value": b"1"}]] * count, HEADERS_TYPE),
            "topic": pa.array(["orders"] * count),
            "partition": pa.array([3] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([5_000_000] * count, pa.timestamp("us", tz="UTC")),
        }
    )
    made = decoder(topic)
    (found,) = made.rows([rows], Columns.of(["value"]), RawSettings(broker.bootstrap))
    assert found.num_rows == 0
    return kafka.read(topic)


def test_a_large_record_that_fits_when_compressed_is_a_whole_dead_letter(
    broker: Broker, kafka: Kafka, name: str
) -> None:
    kafka.make(name)
    (letter,) = sent(broker, kafka, name, [(b"k", b"bad" * 1_000_000)])
    assert (letter.key, letter.value) == (b"k", b"bad" * 1_000_000)


def test_a_record_that_is_too_large_is_a_dead_letter_without_its_value(broker: Broker, kafka: Kafka, name: str) -> None:
    kafka.make(name, max_message_bytes=20_000)
    noise = random.Random(5).randbytes(30_000)
    records = [(b"a", b"bad"), (b"b", noise), *[(b"c", b"bad")] * 50, (noise, b"bad"), (b"d", noise + b"!")]
    letters = sent(broker, kafka, name, records)
    expected = [(b"a", b"bad"), (b"b", None), *[(b"c", b"bad")] * 50, (None, None), (b"d", None)]
    assert [(letter.key, letter.value) for letter in letters] == expected
    headers = [{name: text or b"" for name, text in letter.headers or ()} for letter in letters]
    assert [found.get("cordwood.value.bytes") for found in headers if "own" not in found] == [b"30000", b"3", b"30001"]
    assert [found.get("cordwood.key.bytes") for found in headers if "own" not in found] == [None, b"30000", None]
    assert [int(found["cordwood.origin.offset"]) for found in headers] == list(range(54))
    assert all(found["cordwood.reason"].startswith(b"not ") for found in headers)


class Reserved(RawClient):
    """Of a user who may write to topics, and not look at their settings."""

    def topic_settings(self, topics: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
        raise RequestRefused("the settings cannot be read", Error.TOPIC_AUTHORIZATION_FAILED)


def test_a_limit_that_nobody_tells_is_that_of_most_topics(broker: Broker, kafka: Kafka, name: str) -> None:
    kafka.make(name)
    settings = RawSettings(broker.bootstrap)
    with Reserved(settings) as client:
        assert Outlet(SinkOptions(settings)).prepared(client, name)[2] is None
        assert Outlet(SinkOptions(settings, batch_bytes_max=1_048_588)).prepared(client, name)[2] == 1_048_588
