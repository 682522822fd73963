"""Typed values in the source: its schema with them, and the sample from which JSON's types are inferred."""

import re
from collections.abc import Iterable, Mapping
from itertools import islice

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import StructField, StructType

from cordwood.client.raw import EARLIEST, LATEST, RawClient
from cordwood.errors import ConfigError

from . import values
from .options import SourceOptions
from .ranges import Range
from .schema import Columns
from .subscription import INTERNAL, Assign, Subscribe, SubscribePattern, Subscription
from .values import ValueDecoder, ValueSettings


def decoder_of(
    given: Mapping[str, str], options: SourceOptions, schema: StructType | None = None
) -> ValueDecoder | None:
    """The decoder that a query needs. *schema* is the one that Spark has settled on, if it has.

    Raises:
        ConfigError: the options do not fit together, or a schema cannot be read.
    """
    _check_dead_letters(ValueSettings.of(given).dead_letter_topic, options.subscription)
    settled = None
    if schema is not None and "value" in schema.names:
        settled = to_arrow_type(schema["value"].dataType, timezone="UTC")
    topics = options.subscription.topics or ()
    return values.make(
        given,
        value_type=settled,
        topic=topics[0] if len(topics) == 1 else None,
        sample=lambda count: first_values(options, count),
    )


def _check_dead_letters(topic: str | None, subscription: Subscription) -> None:
    """A query that reads the dead letters it sends would send each of them again and again."""
    match subscription:
        case Assign(partitions):
            option, is_read = "assign", topic in {name for name, _ in partitions}
        case Subscribe(topics):
            option, is_read = "subscribe", topic in topics
        case SubscribePattern(pattern):
            option = "subscribePattern"
            is_read = topic is not None and topic not in INTERNAL and re.search(pattern, topic) is not None
    if is_read:
        raise ConfigError(
            f"option deadLetterTopic is {topic}, which the query reads too, by option {option}: every bad record would "
            "come back for ever. Choose a topic that it does not read"
        )


def spark_schema(decoder: ValueDecoder, columns: Columns) -> StructType:
    """The columns of a source with typed values."""
    schema = decoder.schema(columns)
    return StructType([StructField(field.name, from_arrow_type(field.type)) for field in schema])


def first_values(options: SourceOptions, count: int) -> Iterable[bytes]:
    """The first values of each partition, about as many of each: always the same ones, until they are deleted."""
    with RawClient(options.settings) as client:
        partitions = sorted(options.subscription.select(client.topics(options.subscription.topics)))
        first = client.offsets(dict.fromkeys(partitions, EARLIEST))
        last = client.offsets(dict.fromkeys(partitions, LATEST))
        share = -(-count // max(len(partitions), 1))
        for partition in partitions:
            wanted = Range(*partition, first[partition].offset, last[partition].offset)
            yield from islice(_values(client, wanted, options.isolation), share)


def _values(client: RawClient, wanted: Range, isolation: int) -> Iterable[bytes]:
    # Kernels take a moment to load, and most queries do not need them on the driver.
    from .decode import decode
    from .road import roads

    chunks = roads(client, wanted, isolation=isolation, direct=None)
    for batch in decode(chunks, wanted, Columns(("value",))):
        yield from _present(batch.column(0))


def _present(column: pa.Array) -> Iterable[bytes]:
    for number in range(0, len(column), 100):
        yield from column.slice(number, 100).drop_null().to_pylist()
