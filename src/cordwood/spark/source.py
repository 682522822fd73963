"""``format("cordwood")``: what Spark finds, asks for a schema, and gets readers from."""

from collections.abc import Mapping
from typing import Final

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

from cordwood.errors import ConfigError

from .option_names import Use
from .options import SourceOptions
from .schema import Columns

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
        return spark_schema(SourceOptions.of(self.options, Use.READ).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        from .batch import batch_reader

        options = SourceOptions.of(self.options, Use.BATCH)
        check_schema(schema, options.columns)
        return batch_reader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from .stream import StreamReader

        options = SourceOptions.of(self.options, Use.STREAM)
        check_schema(schema, options.columns)
        return StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from .sink import batch_sink

        return batch_sink(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from .sink import stream_sink

        return stream_sink(self.options, schema, overwrite=overwrite)


def spark_schema(columns: Columns) -> StructType:
    return StructType([StructField(name, TYPES[name]) for name in columns.names])


def check_schema(given: StructType, columns: Columns) -> None:
    """
    Raises:
        ConfigError: the user gave a schema, and it is not the source's.
    """
    expected = spark_schema(columns)
    for field in given.fields:
        if field.name not in columns.names:
            raise ConfigError(
                f"the schema has a field {field.name}, which the source has not; it has {', '.join(columns.names)}. "
                "Leave the schema away, and choose columns with option columns"
            )
        if field.dataType != TYPES[field.name]:
            raise ConfigError(
                f"the schema's field {field.name} is {field.dataType.simpleString()}; the source's is "
                f"{TYPES[field.name].simpleString()}"
            )
    if given.names != expected.names:
        raise ConfigError(
            f"the schema has the fields {', '.join(given.names)}; the source has {', '.join(columns.names)}, in this "
            "order. Leave the schema away, and choose columns with option columns"
        )
