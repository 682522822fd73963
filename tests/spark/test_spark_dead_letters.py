"""Dead letters: a record goes to its topic as it was, and is never read from there by the query that sent it."""

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from cordwood.client.raw import RawSettings
from cordwood.errors import ConfigError
from cordwood.spark.arrow_schema import HEADERS_TYPE
from cordwood.spark.schema import Columns
from cordwood.spark.source import CordwoodSource
from cordwood.spark.values import ValueDecoder, make
from cordwood.testing import Broker
from spark.spark_topics import Kafka


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
