"""What fastavro gives, as Arrow takes it: members of unions, maps, times and ids. Most records need none of it."""

from collections.abc import Callable, Mapping
from ctypes import c_float
from datetime import date, datetime, time
from decimal import Decimal
from typing import Final
from uuid import UUID

from .avro_types import Named, members, number_of
from .avro_unions import Member, is_marked, name_of

Shape = Callable[[object], object]

_PYTHON: Final = {
    "boolean": bool,
    "long": int,
    "double": float,
    "bytes": bytes,
    "fixed": bytes,
    "string": str,
    "enum": str,
    "array": list,
    "map": dict,
}
_PYTHON_LOGICAL: Final = {
    ("int", "date"): date,
    ("int", "time-millis"): time,
    ("long", "time-micros"): time,
    ("long", "timestamp-millis"): datetime,
    ("long", "timestamp-micros"): datetime,
    ("long", "local-timestamp-millis"): datetime,
    ("long", "local-timestamp-micros"): datetime,
    ("bytes", "decimal"): Decimal,
    ("fixed", "decimal"): Decimal,
    ("string", "uuid"): UUID,
}
"""What fastavro makes of them."""


def shaper(schema: object, named: Named) -> Shape:
    """What to do with each value of a schema."""
    return _shape(schema, named) or _same


def _same(value: object) -> object:
    return value


def _shape(schema: object, named: Named) -> Shape | None:
    """None: nothing."""
    if isinstance(schema, list):
        return _union(schema, named)
    if isinstance(schema, str):
        return _shape(named[schema], named) if schema in named else None
    assert isinstance(schema, Mapping), schema
    shape = _plain(schema, named)
    return _unwrapped(shape or _same) if is_marked(schema) else shape


def _unwrapped(shape: Shape) -> Shape:
    """Of a type that is a member elsewhere."""
    return lambda value: shape(value.value if isinstance(value, Member) else value)


def _plain(schema: Mapping[str, object], named: Named) -> Shape | None:
    match schema["type"]:
        case "record" | "error":
            return _record(schema, named)
        case "array":
            return _array(_shape(schema["items"], named))
        case "map":
            return _map(_shape(schema["values"], named) or _same)
        case kind:
            return _LOGICAL.get((str(kind), str(schema.get("logicalType"))))


def _record(schema: Mapping[str, object], named: Named) -> Shape | None:
    fields = schema["fields"]
    assert isinstance(fields, list)
    found = [(field["name"], _shape(field["type"], named)) for field in fields]
    changed = [(name, shape) for name, shape in found if shape is not None]
    if not changed:
        return None

    def shape_record(value: object) -> object:
        if isinstance(value, dict):
            for name, shape in changed:
                value[name] = shape(value[name])
        return value

    return shape_record


def _array(shape: Shape | None) -> Shape | None:
    if shape is None:
        return None
    return lambda value: [shape(item) for item in value] if isinstance(value, list) else value


def _map(shape: Shape) -> Shape:
    return lambda value: [(key, shape(item)) for key, item in value.items()] if isinstance(value, dict) else value


def _union(schema: list[object], named: Named) -> Shape | None:
    found = members(schema)
    if len(found) < 2:
        return _shape(found[0], named) if found else None
    if number_of(found) is not None:
        return None
    choices = [(f"member{number}", member, shaper(member, named)) for number, member in enumerate(found)]
    by_name = {name_of(member, named): (field, shape) for field, member, shape in choices}

    def shape_union(value: object) -> object:
        if isinstance(value, Member):
            field, shape = by_name[value.name]
            return {field: shape(value.value)}
        for field, member, shape in choices:
            if value is not None and _fits(value, member, named):
                return {field: shape(value)}
        return None

    return shape_union


def _fits(value: object, member: object, named: Named) -> bool:
    """May the value, which was not written as a member of a union, or is the only one of its kind, be of this type?"""
    if isinstance(member, str):
        member = named.get(member, {"type": member})
    assert isinstance(member, Mapping), member
    kind, logical = str(member["type"]), str(member.get("logicalType"))
    if (kind, logical) in _PYTHON_LOGICAL:
        return type(value) is _PYTHON_LOGICAL[kind, logical]
    match kind:
        case "record" | "error":
            fields = member["fields"]
            assert isinstance(fields, list)
            return isinstance(value, dict) and value.keys() == {field["name"] for field in fields}
        case "int":
            return type(value) is int and -(1 << 31) <= value < 1 << 31
        case "float":
            return type(value) is float and (value != value or c_float(value).value == value)
        case _:
            return type(value) is _PYTHON[kind]


def _time_ms(value: object) -> object:
    return _micros(value) // 1000 if isinstance(value, time) else value


def _time_us(value: object) -> object:
    return _micros(value) if isinstance(value, time) else value


def _micros(value: time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _text(value: object) -> object:
    return str(value) if isinstance(value, UUID) else value


_LOGICAL: Final[dict[tuple[str, str], Shape]] = {
    ("int", "time-millis"): _time_ms,
    ("long", "time-micros"): _time_us,
    ("string", "uuid"): _text,
    ("fixed", "uuid"): _text,
}
