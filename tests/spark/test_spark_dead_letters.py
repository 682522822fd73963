"""Dead letters: a record goes to its topic as it was, and is never read from there by the query that sent it."""

import pytest
from pyspark.sql.types import StructType

from cordwood.errors import ConfigError
from cordwood.spark.source import CordwoodSource


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
