"""Records with bytes in, records with values out: the columns that typed values replace and add.

``value`` (and ``key``) become the typed columns. A record that cannot be decoded has null there and its reason in the
column ``_error``; with a dead-letter topic there is no such column, and the record goes to that topic instead.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from cordwood.client.raw import OffsetOutOfRange, RawSettings
from cordwood.errors import ConfigError
from cordwood.spark.arrow_schema import FIELDS
from cordwood.spark.schema import NAMES, Columns

from . import ddl
from .formats import Decoded, Format
from .settings import ValueSettings
from .text_values import Raw, Text
from .times import zone_of

if TYPE_CHECKING:
    from .dead_letters import DeadLetters

ERROR_COLUMN: Final = "_error"
_ORIGIN: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
"""What a dead letter needs from its record."""

Sample = Callable[[int], Iterable[bytes]]
"""Returns the first values of the topics, at most so many; the same ones each time as long as they exist."""


def make(
    options: Mapping[str, str],
    *,
    value_type: pa.DataType | None = None,
    topic: str | None = None,
    sample: Sample | None = None,
) -> "ValueDecoder | None":
    """The decoder that the options ask for; None if key and value stay bytes.

    Args:
        options: those of the source; names in any case.
        value_type: what ``value`` should be, if Spark already knows it.
        topic: the topic, if there is just one: a registry is asked for its schema.
        sample: where to infer JSON's types from if no schema is given.

    Raises:
        ConfigError: the options do not fit together, or a schema cannot be read.
    """
    settings = ValueSettings.of(options)
    zone_of(settings.time_zone)
    if not settings.can_fail:
        return None
    if settings.value_format == "avro":
        from .avro_values import settle

        return ValueDecoder(*settle(settings, topic, value_type))
    return ValueDecoder(settings, value_type or _value_type(settings, sample))


def _value_type(settings: ValueSettings, sample: Sample | None) -> pa.DataType:
    match settings.value_format:
        case "raw":
            return Raw.type
        case "string":
            return Text.type
        case "json":
            return _json_type(settings, sample)
        case _:
            from .protobuf_values import message_type

            return message_type(settings)


def _json_type(settings: ValueSettings, sample: Sample | None) -> pa.DataType:
    if settings.schema is not None:
        return ddl.parse(settings.schema, option="valueSchema")
    from .json_infer import infer

    if sample is None:
        raise ConfigError("valueFormat=json needs valueSchema here, such as 'id BIGINT, name STRING'")
    return infer(sample(settings.sample_records))


class ValueDecoder:
    """See the module's docstring. Made on the driver, used in tasks."""

    def __init__(self, settings: ValueSettings, value_type: pa.DataType) -> None:
        self.settings = settings
        self.value_type = value_type
        self._format: Format | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return ValueDecoder, (self.settings, self.value_type)

    @property
    def has_error_column(self) -> bool:
        return self.settings.dead_letter_topic is None

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The columns that differ from the source's, with their types as Spark writes them."""
        found = [("key", "string")] if self.settings.key_format == "string" else []
        if self.settings.value_format != "raw":
            found.append(("value", ddl.render(self.value_type)))
        return [*found, (ERROR_COLUMN, "string")] if self.has_error_column else found

    def schema(self, columns: Columns) -> pa.Schema:
        """The schema that ``rows`` yields for these columns; the reasons come last, if anything is decoded at all."""
        types = {"value": self.value_type, "key": pa.string() if self.settings.key_format == "string" else pa.binary()}
        fields = [pa.field(name, types.get(name, FIELDS[NAMES.index(name)].type)) for name in columns.names]
        if self.has_error_column and {"key", "value"} & set(columns.names):
            fields.append(pa.field(ERROR_COLUMN, pa.string()))
        return pa.schema(fields)

    def needed(self, columns: Columns) -> Columns:
        """The columns that must be read for these."""
        if self.has_error_column or not {"key", "value"} & set(columns.names):
            return columns
        return Columns((*columns.names, *(name for name in _ORIGIN if name not in columns.names)))

    def prepare(self, columns: Columns, settings: RawSettings) -> None:
        """Called on the driver, before the first task of a query that wants these columns: check that it can work.

        Raises:
            ConfigError: there is nowhere to leave bad records.
        """
        topic = self.settings.dead_letter_topic
        if topic is not None and {"key", "value"} & set(columns.names):
            from .dead_letter_topic import prepare

            prepare(settings, topic)

    def decode(self, data: pa.Array) -> tuple[pa.Array, pa.Array | None]:
        """Bytes to values; with the reasons of those that are null for one, or None if there are none."""
        if self._format is None:
            self._format = _format(self.settings, self.value_type)
        return self._format.decode(data)

    def rows(
        self, batches: Iterable[pa.RecordBatch], columns: Columns, settings: RawSettings
    ) -> Iterator[pa.RecordBatch]:
        """Records with the *needed* columns, as records with the wanted ones. Dead letters are stored at the end."""
        from .dead_letters import DeadLetters  # this loads the kernels, which the driver does not need

        schema = self.schema(columns)
        with DeadLetters(settings, self.settings.dead_letter_topic) as letters:
            try:
                for batch in batches:
                    yield self._typed(batch, schema, letters)
            except OffsetOutOfRange:  # the reader may continue behind what is lost
                letters.flush()
                raise

    def _typed(self, batch: pa.RecordBatch, schema: pa.Schema, letters: "DeadLetters") -> pa.RecordBatch:
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        reasons: pa.Array | None = None
        for name, decode in (("value", self.decode), ("key", self._keys)):
            if name in schema.names:
                arrays[name], errors = decode(arrays[name])
                reasons = errors if reasons is None else reasons if errors is None else pc.coalesce(reasons, errors)
        if reasons is not None and not self.has_error_column:
            bad = pc.is_valid(reasons)
            letters.send(batch.filter(bad), reasons.filter(bad))
            good = pc.is_null(reasons)
            arrays = {name: array.filter(good) for name, array in arrays.items() if name in schema.names}
        elif ERROR_COLUMN in schema.names:
            arrays[ERROR_COLUMN] = pa.nulls(batch.num_rows, pa.string()) if reasons is None else reasons
        return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)

    def _keys(self, data: pa.Array) -> Decoded:
        if self.settings.key_format == "raw":
            return Decoded(data, None)
        values, errors = Text().decode(data)
        if errors is not None:
            errors = pc.binary_join_element_wise("key: ", errors, "")  # null stays null
        return Decoded(values, errors)


def _format(settings: ValueSettings, value_type: pa.DataType) -> Format:
    match settings.value_format:
        case "raw":
            return Raw()
        case "string":
            return Text()
        case "json":
            from .json_values import Json

            strict = None if settings.schema is None else ddl.parse_strict(settings.schema, option="valueSchema")
            made: Format = Json(value_type, strict, zone_of(settings.time_zone))
        case "avro":
            from .avro_values import Avro

            return Avro(settings, value_type)
        case _:
            from .protobuf_values import Protobuf

            made = Protobuf(settings)
    if settings.registry_url is not None:
        from .framing import Framed

        return Framed(made, has_indexes=settings.value_format == "protobuf")
    return made
