"""What fastavro returns, by the schema of the writer, converted to what the columns have, by the schema of the reader.
Avro's rules: fields are matched by name, and those that were not written have their defaults; a member of a union
becomes the member of the same type, and only if there is none, one that accepts its values too; numbers are widened.

What to do is determined once for each pair of schemas. Most records of one schema need nothing.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from .avro_logical import Shape, conversion, same
from .avro_types import Named, members, number_of
from .avro_unions import NAMED_KINDS, Member, name_of
from .formats import BadValue

_Type = Mapping[str, object]

_WIDER: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_SAME, _RENAMED, _PROMOTED, _LAST = range(4)
"""How well a type accepts the values of another one, best first."""
_JSON: Final[Mapping[str, tuple[type, ...]]] = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
    "error": (dict,),
}
"""How a default is written; all others are texts."""


def shaper(writer: object, written: Named, marks: frozenset[str], reader: object, named: Named) -> Shape:
    """What to do with each value; *marks* are the names of the writer's types whose values come as ``Member``. The
    result raises ``BadValue`` for a value that the reader's schema has no place for."""
    return _Schemas(written, marks, named).shape(writer, reader) or same


class _Schemas(NamedTuple):
    """The named types of both schemas. A shape that is None is for values that are right as they are."""

    written: Named
    marks: frozenset[str]
    named: Named

    def shape(self, writer: object, reader: object) -> Shape | None:
        if isinstance(writer, list):
            return self._of_union(writer, reader)
        found = _resolved(writer, self.written)
        shape = self._of_type(found, reader)
        return _unwrapped(shape or same) if name_of(found, {}) in self.marks else shape

    def _of_union(self, writer: list[object], reader: object) -> Shape | None:
        found = members(writer)
        null = self._of_type({"type": "null"}, reader) if len(found) < len(writer) else None
        if len(found) < 2:
            return _optional(null, self.shape(found[0], reader) if found else None)
        shapes = {
            name_of(member, self.written): self._of_type(_resolved(member, self.written), reader) or same
            for member in found
        }

        def shape_union(value: object) -> object:
            if isinstance(value, Member):
                return shapes[value.name](value.value)
            assert value is None, "every member but null has a mark"
            return null(value) if null is not None else value

        return shape_union

    def _of_type(self, writer: _Type, reader: object) -> Shape | None:
        """For a type that is not a union."""
        if isinstance(reader, list):
            return self._into_union(writer, reader)
        wanted = _resolved(reader, self.named)
        if _rank(writer, wanted) is None:
            return _refused(f"{_shown(writer)} cannot be read as {_shown(wanted)}")
        match wanted["type"]:
            case "record" | "error":
                return self._record(writer, wanted)
            case "array":
                return _array(self.shape(writer["items"], wanted["items"]))
            case "map":
                return _map(self.shape(writer["values"], wanted["values"]) or same)
            case "enum":
                return _enum(writer, wanted)
            case _:
                return conversion(writer, wanted)

    def _into_union(self, writer: _Type, reader: list[object]) -> Shape | None:
        found = members(reader)
        if writer["type"] == "null" and len(found) < len(reader):
            return None
        number = number_of(found)
        if number is not None:
            return self._of_type(writer, number)  # Spark ignores logical types here
        ranks = [_rank(writer, _resolved(member, self.named)) for member in found]
        ranked = [(rank, at) for at, rank in enumerate(ranks) if rank is not None]
        if not ranked:
            return _refused(f"{_shown(writer)} is of no member of the union")
        at = min(ranked)[1]
        shape = self._of_type(writer, found[at])
        return shape if len(found) == 1 else _member(at, shape or same)

    def _record(self, writer: _Type, reader: _Type) -> Shape | None:
        written = {field["name"]: field["type"] for field in _fields(writer)}
        shapes: list[tuple[str, str, Shape]] = []
        defaults: dict[str, object] = {}
        is_same = True
        for field in _fields(reader):
            name = field["name"]
            source = next((old for old in (name, *field.get("aliases", ())) if old in written), None)
            if source is None and "default" not in field:
                return _refused(f"the field {name} was not written, and has no default")
            if source is None:
                defaults[name] = self._default(field["type"], field["default"])
                continue
            shape = self.shape(written[source], field["type"])
            is_same = is_same and source == name and shape is None
            shapes.append((name, source, shape or same))
        if is_same and not defaults:
            return None

        def shape_record(value: object) -> object:
            assert isinstance(value, dict), value
            return {**defaults, **{name: shape(value[source]) for name, source, shape in shapes}}

        return shape_record

    def _default(self, schema: object, value: object) -> object:
        """A default written in a schema, as a value of that schema."""
        if isinstance(schema, list):
            return self._default_member(schema, value)
        found = _resolved(schema, self.named)
        match found["type"]:
            case "record" | "error":
                assert isinstance(value, dict), value
                return {
                    field["name"]: self._default(field["type"], value.get(field["name"], field.get("default")))
                    for field in _fields(found)
                }
            case "array":
                assert isinstance(value, list), value
                return [self._default(found["items"], item) for item in value]
            case "map":
                assert isinstance(value, dict), value
                return [(key, self._default(found["values"], item)) for key, item in value.items()]
            case "bytes" | "fixed" if isinstance(value, str):
                value = value.encode("latin-1")
            case "float" | "double" if isinstance(value, int):
                value = float(value)
        return (conversion(found, found) or same)(value)

    def _default_member(self, union: list[object], value: object) -> object:
        found = members(union)
        if value is None:
            return None
        if number_of(found) is not None:
            return value
        for at, member in enumerate(found):
            if type(value) in _JSON.get(str(_resolved(member, self.named)["type"]), (str,)):
                made = self._default(member, value)
                return made if len(found) == 1 else {f"member{at}": made}
        raise BadValue(f"the default {value!r} is of no member of the union")


def _resolved(schema: object, named: Named) -> _Type:
    """A type that is not a union, wherever it is defined."""
    found = named.get(schema, {"type": schema}) if isinstance(schema, str) else schema
    assert isinstance(found, Mapping), found
    return found


def _rank(writer: _Type, reader: _Type) -> int | None:
    """How well the reader's type accepts the writer's values; None: not at all."""
    kind, wanted = (("record" if found["type"] == "error" else str(found["type"])) for found in (writer, reader))
    if kind != wanted:
        # A number becomes a float only as a last resort, as in Avro for Java: it may not have enough digits.
        return (_LAST if wanted == "float" else _PROMOTED) if wanted in _WIDER.get(kind, ()) else None
    if kind not in NAMED_KINDS or writer["name"] == reader["name"]:
        return _SAME if writer.get("size") == reader.get("size") else None
    own, other = (str(found["name"]).rpartition(".")[2] for found in (writer, reader))
    aliases = reader.get("aliases", ())
    assert isinstance(aliases, list | tuple)
    is_known = own == other or own in aliases or writer["name"] in aliases
    return _RENAMED if is_known and writer.get("size") == reader.get("size") else None


def _fields(schema: _Type) -> list[dict[str, Any]]:
    fields = schema["fields"]
    assert isinstance(fields, list)
    return fields


def _shown(schema: _Type) -> str:
    return name_of(schema, {})


def _refused(reason: str) -> Shape:
    def refuse(value: object) -> object:
        raise BadValue(f"not of the columns' schema: {reason}")

    return refuse


def _unwrapped(shape: Shape) -> Shape:
    """For a type that is a member of a union elsewhere."""
    return lambda value: shape(value.value if isinstance(value, Member) else value)


def _optional(null: Shape | None, shape: Shape | None) -> Shape | None:
    if null is None and shape is None:
        return None
    of_null, of_value = null or same, shape or same
    return lambda value: of_null(value) if value is None else of_value(value)


def _member(number: int, shape: Shape) -> Shape:
    field = f"member{number}"
    return lambda value: {field: shape(value)}


def _array(shape: Shape | None) -> Shape | None:
    if shape is None:
        return None
    return lambda value: [shape(item) for item in value] if isinstance(value, list) else value


def _map(shape: Shape) -> Shape:
    return lambda value: [(key, shape(item)) for key, item in value.items()] if isinstance(value, dict) else value


def _enum(writer: _Type, reader: _Type) -> Shape | None:
    known, default = reader["symbols"], reader.get("default")
    written = writer["symbols"]
    assert isinstance(known, list)
    assert isinstance(written, list)
    if set(written) <= set(known):
        return None

    def shape_symbol(value: object) -> object:
        if value in known:
            return value
        if default is None:
            raise BadValue(f"not of the columns' schema: {value} is no symbol of {reader['name']}")
        return default

    return shape_symbol
