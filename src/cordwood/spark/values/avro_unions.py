"""Which member of a union a value is. Avro's bytes say it; fastavro gives the value alone, and of two records with the
same fields, or of an int and a long, nobody could tell which one it was.

So what is a member somewhere is given a logical type of ours when a schema is parsed, and fastavro, which has us make
the values of logical types, tells their schema. Of a union of two kinds of numbers nothing is to be told: Spark reads
it as the wider one.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from fastavro.read import LOGICAL_READERS

from .avro_types import Named, members, number_of

_MARK: Final = "cordwood-member"
_NUMBERS: Final = ("int", "long", "float", "double")
_NAMED: Final = ("record", "error", "enum", "fixed")


class Member(NamedTuple):
    """A value, and the name of its type."""

    name: str
    value: object


def mark(schema: object, named: Mapping[str, dict[Any, Any]]) -> None:
    """Change a parsed schema, so that its values come as ``Member`` wherever they may be one of several."""
    if isinstance(schema, list):
        _mark_union(schema, named)
    elif isinstance(schema, dict):
        for field in schema.get("fields", ()):
            mark(field["type"], named)
        for inner in ("items", "values", "type"):
            mark(schema.get(inner), named)


def _mark_union(schema: list[Any], named: Mapping[str, dict[Any, Any]]) -> None:
    found = members(schema)
    number = number_of(found)
    for at, member in enumerate(schema):
        kind = member["type"] if isinstance(member, dict) else member
        if number is not None and member in found:
            schema[at] = kind  # Spark does not look at logical types here
        elif len(found) > 1 and kind in _NUMBERS and not _logical(member):
            schema[at] = {"type": kind, "logicalType": _MARK}
        elif len(found) > 1:
            _mark_named(named.get(name_of(member, named)))
        mark(member, named)


def mark_all(named: Mapping[str, dict[Any, Any]]) -> None:
    """The same for every type with a name: it may be a member in the schema that it is read into."""
    for schema in named.values():
        _mark_named(schema)


def _mark_named(schema: dict[Any, Any] | None) -> None:
    if schema is not None:
        schema.setdefault("logicalType", _MARK)


def has_marks(named: Iterable[object]) -> bool:
    return any(map(is_marked, named))


def is_marked(schema: object) -> bool:
    return _logical(schema) == _MARK


def _logical(schema: object) -> object:
    return schema.get("logicalType") if isinstance(schema, Mapping) else None


def name_of(schema: object, named: Named) -> str:
    """What a member is called: its full name, or its kind."""
    if isinstance(schema, str) and schema in named:
        schema = named[schema]
    return str(schema.get("name", schema["type"]) if isinstance(schema, Mapping) else schema)


def _made(value: object, writer: object, reader: object) -> object:
    """A value that fastavro has read; *reader* is what it was read into, where that is another schema."""
    found = writer if reader is None else reader
    kind = found["type"] if isinstance(found, Mapping) else found
    if kind in ("float", "double"):
        assert isinstance(value, (int, float))
        value = float(value)
    return Member(name_of(found, {}), value) if is_marked(found) else value


LOGICAL_READERS.update({f"{kind}-{_MARK}": _made for kind in (*_NUMBERS, *_NAMED)})
