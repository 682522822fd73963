"""Which member of a union a value is. Avro's bytes say so, but fastavro returns only the value; and from two records
with the same fields, or an int and a long, nobody could tell which one it was.

So fastavro is given a schema in which every member of a union has a logical type of ours, and nothing else has one: it
calls us to make the values of logical types, and passes their schema. The schema's own logical types are applied
afterwards, by the schema that the columns follow.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final, NamedTuple

from fastavro.read import LOGICAL_READERS

from .avro_types import Named, members

AvroSchema = str | list[Any] | dict[Any, Any]
"""In fastavro's form."""

_MARK: Final = "cordwood-member"
_UNNAMED: Final = ("boolean", "int", "long", "float", "double", "bytes", "string", "array", "map")
NAMED_KINDS: Final = ("record", "error", "enum", "fixed")


class Member(NamedTuple):
    """A value, and the name of its type."""

    name: str
    value: object


class Marked(NamedTuple):
    """A schema whose values are returned as ``Member`` wherever they are one of several."""

    schema: AvroSchema
    names: frozenset[str]
    """The named types that are members somewhere: their values are marked everywhere."""


def marked(schema: AvroSchema, named: Named) -> Marked:
    """A copy of a parsed schema, for fastavro to read with."""
    schema, named = deepcopy((schema, named))
    seen: set[int] = set()
    parts = [part for whole in (schema, *named.values()) for part in _parts(whole, seen)]
    unions = [part for part in parts if isinstance(part, list) and len(members(part)) > 1]
    names = {name_of(member, named) for union in unions for member in union} - {*_UNNAMED, "null"}
    for part in parts:
        if isinstance(part, dict):
            part.pop("logicalType", None)
            if part["type"] in NAMED_KINDS and part["name"] in names:
                part["logicalType"] = _MARK
    for union in unions:
        for at, member in enumerate(union):
            kind = member["type"] if isinstance(member, dict) else member
            if kind in _UNNAMED:
                union[at] = {**(member if isinstance(member, dict) else {"type": kind}), "logicalType": _MARK}
    return Marked(schema, frozenset(names))


def _parts(schema: object, seen: set[int]) -> Iterator[dict[Any, Any] | list[Any]]:
    """All parts of a schema, itself first, each once."""
    if not isinstance(schema, dict | list) or id(schema) in seen:
        return
    seen.add(id(schema))
    yield schema
    inner: list[object] = schema if isinstance(schema, list) else [schema.get("items"), schema.get("values")]
    fields = schema.get("fields", ()) if isinstance(schema, dict) else ()
    for part in (*inner, *(field["type"] for field in fields), *_own_names(schema)):
        yield from _parts(part, seen)


def _own_names(schema: dict[Any, Any] | list[Any]) -> list[object]:
    """What fastavro keeps in a schema that it has parsed, and finds types by."""
    return list(schema.get("__named_schemas", {}).values()) if isinstance(schema, dict) else []


def name_of(schema: object, named: Named) -> str:
    """A member's name: its full name, or its kind."""
    if isinstance(schema, str) and schema in named:
        schema = named[schema]
    if not isinstance(schema, Mapping):
        return str(schema)
    return str(schema["name"] if schema["type"] in NAMED_KINDS else schema["type"])


def _made(value: object, schema: object, _reader: object) -> Member:
    return Member(name_of(schema, {}), value)


LOGICAL_READERS.update({f"{kind}-{_MARK}": _made for kind in (*_UNNAMED, *NAMED_KINDS)})
