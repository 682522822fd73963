"""``format("cordwood")``: what Spark finds, asks for a schema, and gets readers from.

Spark imports this in processes that each do one thing and end: one looks for sources, one asks for the schema, one
plans. So what not all of them need is imported where it is used.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from cordwood.errors import ConfigError, CordwoodError

if TYPE_CHECKING:
    from .option_names import Use
    from .options import SourceOptions

HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
TYPES: Final[Mapping[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(HEADER),
}


class CordwoodSource(DataSource):
    """Topics of a Kafka cluster as a table, with the columns and the options of Spark's Kafka source."""

    @classmethod
    def name(cls) -> str:
        return "cordwood"

    def schema(self) -> StructType:
        from .option_names import Use

        return spark_schema(self._options(Use.READ))

    def reader(self, schema: StructType) -> DataSourceReader:
        from .batch import batch_reader
        from .option_names import Use

        options = self._options(Use.BATCH, schema)
        check_schema(schema, options)
        return batch_reader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from .option_names import Use
        from .stream import RefusedStream, StreamReader

        try:
            options = self._options(Use.STREAM, schema)
            check_schema(schema, options)
        except CordwoodError as reason:
            return RefusedStream(reason)
        return StreamReader(options)

    def _options(self, use: "Use", schema: StructType | None = None) -> "SourceOptions":
        from .option_file import resolved
        from .options import SourceOptions
        from .values.settings import ValueSettings

        given = resolved(self.options)
        options = SourceOptions.of(given, use)
        if not ValueSettings.of(given).can_fail:
            return options
        from . import typed

        return replace(options, values=typed.decoder_of(given, options, schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from .option_file import resolved
        from .sink import batch_sink

        return batch_sink(resolved(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from .option_file import resolved
        from .sink import stream_sink

        # Overwriting is what Spark calls outputMode("complete"). As with Spark's Kafka sink, each micro-batch then
        # appends the whole result, and readers of the topic take the last value of each key.
        return stream_sink(resolved(self.options), schema)


def spark_schema(options: "SourceOptions") -> StructType:
    if options.values is not None:
        from . import typed

        return typed.spark_schema(options.values, options.columns)
    return StructType([StructField(name, TYPES[name]) for name in options.columns.names])


def check_schema(given: StructType, options: "SourceOptions") -> None:
    """
    Raises:
        ConfigError: the user gave a schema that is not the source's.
    """
    expected = spark_schema(options)
    names = ", ".join(expected.names)
    for field in given.fields:
        if field.name not in expected.names:
            raise ConfigError(
                f"the schema has a field {field.name}, which the source has not; it has {names}. "
                "Leave the schema away, and choose columns with option columns"
            )
        wanted = expected[field.name].dataType
        if field.dataType != wanted:
            raise ConfigError(
                f"the schema's field {field.name} is {field.dataType.simpleString()}; the source's is "
                f"{wanted.simpleString()}"
            )
    if given.names != expected.names:
        raise ConfigError(
            f"the schema has the fields {', '.join(given.names)}; the source has {names}, in this order. "
            "Leave the schema away, and choose columns with option columns"
        )
