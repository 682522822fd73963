"""Avro values: either bare, all of one schema, or each with the id of its schema in a registry.

The columns follow the given schema, or else the newest one in the registry when the query starts. Records that were
written with other schemas are converted to it by Avro's rules. Needs fastavro (``pip install 'cordwood[avro]'``).
"""

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from cordwood.errors import ConfigError

from .avro_logical import Shape
from .avro_shapes import shaper
from .avro_types import arrow_type
from .avro_unions import AvroSchema, marked
from .formats import BadValue, Decoded, one_by_one
from .framing import split
from .registry import Registry, Schema, UnknownSchema
from .settings import NoTypesYet, ValueSettings

try:
    import fastavro
    from fastavro.schema import SchemaParseException, UnknownType
except ImportError as error:
    raise ConfigError("valueFormat=avro needs fastavro; install it: pip install 'cordwood[avro]'") from error


_UNREADABLE = (
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    TypeError,
    ValueError,
)
"""What fastavro raises for bytes that do not match the schema."""


class Parsed(NamedTuple):
    """A schema that fastavro can use, and all the types that it names."""

    schema: AvroSchema
    named: Mapping[str, dict[Any, Any]]


def settle(settings: ValueSettings, topic: str | None, wanted: pa.DataType | None) -> tuple[ValueSettings, pa.DataType]:
    """What the columns are, and the settings with the schema that they follow.

    If *wanted* is already settled, and the registry's newest schema has changed since, records are read as they were
    written, and fields are found by their names.
    """
    given = _given_schema(settings)
    if given is not None:
        return settings, wanted or arrow_type(given.schema, given.named)
    registry, schema = _newest(settings, topic)
    reader = _of_registry(registry, schema)
    kind = arrow_type(reader.schema, reader.named)
    if kind != (wanted or kind) or schema.references:
        return settings, wanted or kind
    return replace(settings, schema=schema.text), kind


def parse_schema(text: str, named: dict[str, dict[Any, Any]] | None = None) -> Parsed:
    """
    Raises:
        ConfigError: it is not an Avro schema.
    """
    named = {} if named is None else named
    try:
        schema = fastavro.parse_schema(json.loads(text), named_schemas=named)
    except (ValueError, KeyError, TypeError, SchemaParseException, UnknownType) as reason:
        raise ConfigError(f"the Avro schema cannot be read: {type(reason).__name__}: {reason}") from None
    return Parsed(schema, named)


def _given_schema(settings: ValueSettings) -> Parsed | None:
    text = settings.schema
    if text is None:
        return None
    if not text.lstrip().startswith(("{", "[", '"')):
        try:
            text = Path(text).read_text()
        except OSError as reason:
            raise ConfigError(f"valueSchema is neither an Avro schema nor a file that can be read: {reason}") from None
    return parse_schema(text)


def _newest(settings: ValueSettings, topic: str | None) -> tuple[Registry, Schema]:
    subject = settings.registry_subject or (f"{topic}-value" if topic else None)
    if subject is None:
        raise ConfigError("valueFormat=avro: with several topics, set valueSchema or schema.registry.subject")
    registry = _registry(settings)
    try:
        return registry, registry.latest(subject)
    except UnknownSchema as reason:
        raise NoTypesYet(f"{reason}; set schema.registry.subject or valueSchema") from None


def _registry(settings: ValueSettings) -> Registry:
    assert settings.registry_url is not None
    return Registry(settings.registry_url, user=settings.registry_user)


def _of_registry(registry: Registry, schema: Schema) -> Parsed:
    if schema.kind != "AVRO":
        raise ConfigError(f"the registry's schema is of the kind {schema.kind}, not AVRO")
    named: dict[str, dict[Any, Any]] = {}
    _learn(registry, schema, named, set())
    return parse_schema(schema.text, named)


def _learn(registry: Registry, schema: Schema, named: dict[str, dict[Any, Any]], seen: set[object]) -> None:
    """Parse the schemas that a schema refers to, and those that they refer to, before it."""
    for reference in schema.references:
        if reference not in seen:
            seen.add(reference)
            needed = registry.version(reference)
            _learn(registry, needed, named, seen)
            parse_schema(needed.text, named)


class Avro:
    """Values of one schema, whatever schemas they were written with."""

    def __init__(self, settings: ValueSettings, kind: pa.DataType) -> None:
        self.type = kind
        self._registry = _registry(settings) if settings.registry_url else None
        self._reader = _given_schema(settings)
        self._writers: dict[int, tuple[AvroSchema, Shape]] = {}
        self._plain = None if self._reader is None else _road(self._reader, self._reader)

    def decode(self, data: pa.Array) -> Decoded:
        return one_by_one(data, self._value, self.type)

    def _value(self, record: bytes) -> object:
        if self._registry is None:
            assert self._plain is not None
            schema, shape = self._plain
            return shape(_read(record, schema))
        number, payload = split(record)
        schema, shape = self._writer(number)
        return shape(_read(payload, schema))

    def _writer(self, number: int) -> tuple[AvroSchema, Shape]:
        if number not in self._writers:
            assert self._registry is not None
            try:
                writer = _of_registry(self._registry, self._registry.by_id(number))
            except (UnknownSchema, ConfigError) as reason:
                raise BadValue(str(reason)) from None
            self._writers[number] = _road(writer, self._reader or writer)
        return self._writers[number]


def _road(writer: Parsed, reader: Parsed) -> tuple[AvroSchema, Shape]:
    """The schema that fastavro should read with, and what to do with the value then."""
    schema, marks = marked(*writer)
    return schema, shaper(*writer, marks, *reader)


def _read(payload: bytes, schema: AvroSchema) -> object:
    stream = io.BytesIO(payload)
    try:
        found: object = fastavro.schemaless_reader(stream, schema, None)
    except _UNREADABLE as reason:
        raise BadValue(f"not Avro of this schema: {type(reason).__name__}: {str(reason)[:200]}") from None
    if stream.read(1):
        raise BadValue(f"not Avro of this schema: {len(payload) - stream.tell() + 1} bytes are left after the value")
    return found
