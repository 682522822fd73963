"""Avro's types as Arrow's, by the rules of Spark's own Avro reader: a union of several types is a struct of members,
one of which is set; but a union of int and long is a long, and one of float and double a double."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from cordwood.errors import ConfigError

from . import ddl

_PRIMITIVES: Final = {
    "null": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("us", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}

Named = Mapping[str, object]
"""Schemas by their full names."""


def arrow_type(schema: object, named: Named, path: tuple[str, ...] = ()) -> pa.DataType:
    """The type of a parsed schema.

    Raises:
        ConfigError: there is no such type in Spark; the text names the field.
    """
    if isinstance(schema, list):
        return _union(schema, named, path)
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return _PRIMITIVES[schema]
        if schema not in named:
            raise ConfigError(f"avro: the type {schema!r} of {_place(path)} is not defined")
        return arrow_type(named[schema], named, path)
    assert isinstance(schema, Mapping), schema
    return _complex(schema, named, path)


def members(schema: list[object]) -> list[object]:
    """A union's types except null."""
    return [member for member in schema if not is_null(member)]


def is_null(schema: object) -> bool:
    return schema == "null" or (isinstance(schema, Mapping) and schema.get("type") == "null")


def number_of(found: list[object]) -> str | None:
    """The number type that these members of a union amount to, if Spark takes them for one."""
    if len(found) != 2:
        return None
    kinds = {str(member["type"] if isinstance(member, Mapping) else member) for member in found}
    return "long" if kinds == {"int", "long"} else "double" if kinds == {"float", "double"} else None


def _union(schema: list[object], named: Named, path: tuple[str, ...]) -> pa.DataType:
    found = members(schema)
    if len(found) == 1:
        return arrow_type(found[0], named, path)
    if not found:
        return pa.string()
    number = number_of(found)
    if number is not None:
        return _PRIMITIVES[number]
    return pa.struct([(f"member{at}", arrow_type(member, named, path)) for at, member in enumerate(found)])


def _complex(schema: Mapping[str, object], named: Named, path: tuple[str, ...]) -> pa.DataType:
    kind, logical = schema["type"], schema.get("logicalType")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return _decimal(schema)
    if isinstance(kind, str) and (kind, logical) in _LOGICAL:
        return _LOGICAL[kind, str(logical)]
    match kind:
        case "record" | "error":
            return _record(schema, named, path)
        case "enum":
            return pa.string()
        case "fixed":
            return pa.binary()
        case "array":
            return ddl.array_of(arrow_type(schema["items"], named, (*path, "[]")))
        case "map":
            return ddl.map_of(pa.string(), arrow_type(schema["values"], named, (*path, "{}")))
        case _:
            return arrow_type(kind, named, path)


def _record(schema: Mapping[str, object], named: Named, path: tuple[str, ...]) -> pa.DataType:
    name = str(schema["name"])
    if path.count("<" + name) > 0:
        raise ConfigError(f"avro: the record {name} contains itself, at {_place(path)}; Spark has no such types")
    fields = schema["fields"]
    assert isinstance(fields, list)
    inner = (*path, "<" + name)
    found = [(field["name"], arrow_type(field["type"], named, (*inner, field["name"]))) for field in fields]
    return pa.struct(found)


def _decimal(schema: Mapping[str, object]) -> pa.DataType:
    precision, scale = schema["precision"], schema.get("scale", 0)
    if not isinstance(precision, int) or precision > 38:
        raise ConfigError(f"avro: a decimal of {precision} digits; Spark has at most 38")
    return pa.decimal128(precision, scale)


def _place(path: tuple[str, ...]) -> str:
    return ".".join(part for part in path if not part.startswith("<")) or "the value"
