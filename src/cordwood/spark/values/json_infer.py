"""A schema from a sample of JSON records: the same sample gives the same schema, whatever the order of its fields.

Whole numbers are bigint, others double; where records disagree in any other way, the field is text, and each record's
JSON there is taken as it is. A field that is null in the whole sample is text too. Records that are not JSON, or null,
are left out. If more than half of the others are objects, the schema is that of the objects, and anything else is a bad
record when it is read: a few strays must not take the columns away from all others. What is nested deeper than any
schema is text too.
"""

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Final

import pyarrow as pa

from . import ddl
from .formats import BadValue
from .json_records import Number, Twins, loads
from .settings import NoTypesYet

_NOTHING = pa.null()
_DEPTH_MAX: Final = 50


def infer(records: Iterable[bytes]) -> pa.DataType:
    """
    Raises:
        NoTypesYet: there is no record to learn from.
    """
    objects = others = _NOTHING
    lead = 0
    for kind in _types(records):
        if pa.types.is_struct(kind):
            objects, lead = _merged(objects, kind), lead + 1
        else:
            others, lead = _merged(others, kind), lead - 1
    found = objects if lead > 0 else _merged(objects, others)
    if found == _NOTHING:
        raise NoTypesYet(
            "valueFormat=json: there is no JSON record yet to take the schema from; give option valueSchema, such as "
            "'id BIGINT, name STRING'"
        )
    return _settled(found)


def _types(records: Iterable[bytes]) -> Iterator[pa.DataType]:
    """The types of those that are JSON, and not null."""
    for record in records:
        try:
            kind = _type(loads(record))
        except BadValue:
            continue
        if kind != _NOTHING:
            yield kind


def _type(value: object, depth: int = 0) -> pa.DataType:
    match value:
        case None:
            return _NOTHING
        case bool():
            return pa.bool_()
        case int():
            return pa.int64() if -(1 << 63) <= value < 1 << 63 else pa.float64()
        case float() | Number():
            return pa.float64()
        case Twins():
            raise BadValue("a field is there twice")
        case dict() if depth < _DEPTH_MAX:
            return pa.struct([(name, _type(value[name], depth + 1)) for name in sorted(value)])
        case list() if depth < _DEPTH_MAX:
            return ddl.array_of(reduce(_merged, (_type(item, depth + 1) for item in value), _NOTHING))
        case _:
            return pa.string()


def _merged(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other or other == _NOTHING:
        return one
    if one == _NOTHING:
        return other
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            fields[field.name] = _merged(fields.get(field.name, _NOTHING), field.type)
        return pa.struct(sorted(fields.items()))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return ddl.array_of(_merged(one.value_type, other.value_type))
    return pa.float64() if {one, other} == {pa.int64(), pa.float64()} else pa.string()


def _settled(kind: pa.DataType) -> pa.DataType:
    """Spark has no type for a struct without fields, or with fields whose names differ only in case."""
    if pa.types.is_struct(kind):
        names = {field.name.lower() for field in kind}
        if not names or len(names) < kind.num_fields:
            return pa.string()
        return pa.struct([(field.name, _settled(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return ddl.array_of(_settled(kind.value_type))
    return pa.string() if kind == _NOTHING else kind
