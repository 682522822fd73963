"""What fastavro gives, as Arrow takes it: members of unions, maps, times and ids. Most records need none of it."""

from collections.abc import Callable, Mapping
from datetime import time
from typing import Final
from uuid import UUID

from .avro_types import Named, members

Shape = Callable[[object], object]

_PYTHON: Final = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float, int),
    "double": (float, int),
    "bytes": (bytes,),
    "fixed": (bytes,),
    "string": (str,),
    "enum": (str,),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
    "error": (dict,),
}


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
    choices = [(f"member{number}", member, shaper(member, named)) for number, member in enumerate(found)]

    def shape_union(value: object) -> object:
        for name, member, shape in choices:
            if value is not None and _fits(value, member, named):
                return {name: shape(value)}
        return None

    return shape_union


def _fits(value: object, member: object, named: Named) -> bool:
    """May the value be of this type? Avro says which one it was, fastavro does not; the first that fits is taken."""
    if isinstance(member, str) and member in named:
        member = named[member]
    if isinstance(member, str):
        return isinstance(value, _PYTHON[member]) and not (isinstance(value, bool) and member != "boolean")
    assert isinstance(member, Mapping), member
    if "logicalType" in member and not isinstance(value, (dict, list)):
        return type(value) not in (bool, int, float, str, bytes) or member["logicalType"] not in _KNOWN_LOGICAL
    kind = str(member["type"])
    if kind in ("record", "error"):
        fields = member["fields"]
        assert isinstance(fields, list)
        return isinstance(value, dict) and value.keys() == {field["name"] for field in fields}
    return isinstance(value, _PYTHON[kind])


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
_KNOWN_LOGICAL: Final = (
    "date",
    "decimal",
    "timestamp-millis",
    "timestamp-micros",
    "time-millis",
    "time-micros",
    "uuid",
)
