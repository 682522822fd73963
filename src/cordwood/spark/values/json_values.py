"""JSON values: many records in one call of Arrow's reader, and those that it does not accept one by one.

Each record is put into an object of its own, ``{"v":…}``, with a newline after it. A record that has a comma or a
closing bracket outside of its value is found beforehand, so none can add another field to the object or reach into the
next one; and if there are as many rows as records, then each record is one row.
"""

import re
from datetime import UTC, tzinfo
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from cordwood.spark import kernels_json

from .formats import Decoded, one_by_one
from .json_records import converter, loads
from .times import has_times, has_zones, in_range

_BEFORE: Final = b'{"v":'
_AFTER: Final = b"}\n"
_SMALL: Final = 16
"""This many records are faster one by one than in one more call."""
_WINDOW: Final = 2048
_WORTH: Final = 2
"""Arrow reads a record about eight times as fast as Python does; if one is bad, each is read at least twice."""
_ROW = re.compile(r"in row (\d+)$")
_STAND_IN: Final = {pa.date32(): pa.string()}
"""What Arrow's reader does not read as it should, and what it is read as before it is cast."""


class Json:
    """Values of one type. The tests check the fast path by comparison with the slow one.

    *strict* is the same type, with fields that each record must have marked as not nullable. *zone* is that of times
    that are written without one. Arrow knows only UTC, and does not say which ones are written without a zone.
    """

    def __init__(self, kind: pa.DataType, strict: pa.DataType | None = None, zone: tzinfo = UTC) -> None:
        self.type = kind
        self._strict = strict if strict is not None and _has_required(strict) else None
        self._convert = converter(kind if strict is None else strict, zone)
        self._has_times = has_times(kind)
        self._read_as = _read_as(kind) if zone is UTC or not has_zones(kind) else None

    def decode(self, data: pa.Array) -> Decoded:
        present = data.drop_null() if data.null_count else data
        if not len(present):
            return Decoded(pa.nulls(len(data), self.type), None)
        parts = [self._each(present)] if self._read_as is None else self._parts(present)
        values = pa.concat_arrays([part.values for part in parts])
        errors = None
        if any(part.errors is not None for part in parts):
            errors = pa.concat_arrays([_errors(part) for part in parts])
        return Decoded(_spread(values, data), None if errors is None else _spread(errors, data))

    def _parts(self, records: pa.Array) -> list[Decoded]:
        """All at once; if Arrow does not accept that, window by window, so that a bad record costs others little."""
        if len(records) > _WINDOW:
            try:
                return [Decoded(self._fast(records), None)]
            except pa.ArrowInvalid:
                pass
        parts: list[Decoded] = []
        for first in range(0, len(records), _WINDOW):
            parts += self._window(records.slice(first, _WINDOW))
        return parts

    def _window(self, records: pa.Array) -> list[Decoded]:
        """Cut at the records that Arrow does not accept, as long as that is less work than one by one."""
        parts: list[Decoded] = []
        waiting = [records]
        left = _WORTH * len(records)
        while waiting:
            part = waiting.pop()
            if len(part) <= _SMALL or left <= 0:
                parts.append(self._each(part))
                continue
            try:
                parts.append(Decoded(self._fast(part), None))
            except pa.ArrowInvalid as reason:
                pieces, cost = _cut(part, str(reason))
                left -= cost
                waiting += reversed(pieces)
        return parts

    def _fast(self, records: pa.Array) -> pa.Array:
        """
        Raises:
            ArrowInvalid: at least one of the records is not valid.
        """
        records.cast(pa.string())  # Arrow's reader does not check that text is UTF-8
        bad = _not_one_value(records)
        if bad >= 0:
            raise pa.ArrowInvalid(f"a value, and more, in row {bad}")
        lines = joined(records)
        table = pj.read_json(
            pa.BufferReader(lines),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([pa.field("v", self._read_as)]), unexpected_field_behavior="ignore"
            ),
        )
        if table.num_rows != len(records):
            raise pa.ArrowInvalid("a record is not one value")
        found = table.column(0).combine_chunks()
        found = found if found.type == self.type else found.cast(self.type)
        if self._has_times and not in_range(found):
            raise pa.ArrowInvalid("a time that is not within the years 1 to 9999")
        if self._strict is not None and _is_incomplete(found, self._strict):
            raise pa.ArrowInvalid("a field is null, and the schema says NOT NULL")
        return found

    def _each(self, records: pa.Array) -> Decoded:
        return one_by_one(records, lambda record: self._convert(loads(record), ""), self.type)


def _not_one_value(records: pa.Array) -> int:
    _, ends, data = records.buffers()
    used = np.frombuffer(ends, np.int32)[records.offset : records.offset + len(records) + 1]
    return kernels_json.not_one_value(np.frombuffer(data or b"", np.uint8), used, len(records))


def joined(records: pa.Array) -> bytes:
    """All records as lines of JSON."""
    offsets = pa.array([0, len(records)], pa.int32())
    body = pc.binary_join(pa.ListArray.from_arrays(offsets, records), _AFTER + _BEFORE)
    return b"".join((_BEFORE, body[0].as_buffer(), _AFTER))


def _cut(records: pa.Array, reason: str) -> tuple[list[pa.Array], int]:
    """In three parts around the row that Arrow named, or in half if it named none; and how many records were read for
    it."""
    found = _ROW.search(reason)
    if found is not None and int(found[1]) < len(records):
        bad = int(found[1])
        pieces = [records[:bad], records[bad : bad + 1], records[bad + 1 :]]
        return [piece for piece in pieces if len(piece)], bad + 1
    middle = len(records) // 2
    return [records[:middle], records[middle:]], len(records)


def _has_required(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(not field.nullable or _has_required(field.type) for field in kind)
    return bool(pa.types.is_list(kind) and _has_required(kind.value_type))


def _is_incomplete(values: pa.Array, kind: pa.DataType) -> bool:
    """Is a field null that must not be, in an object that is not null itself?"""
    if pa.types.is_list(kind):
        return _is_incomplete(values.flatten(), kind.value_type)
    if not pa.types.is_struct(kind):
        return False
    present = values.drop_null() if values.null_count else values
    columns = [(field, present.field(number)) for number, field in enumerate(kind)]
    return any(
        (column.null_count and not field.nullable) or _is_incomplete(column, field.type) for field, column in columns
    )


def _errors(part: Decoded) -> pa.Array:
    return pa.nulls(len(part.values), pa.string()) if part.errors is None else part.errors


def _spread(found: pa.Array, data: pa.Array) -> pa.Array:
    """Put the values back into their places between the nulls."""
    if not data.null_count:
        return found
    valid = pc.is_valid(data)
    places = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    return found.take(pc.if_else(valid, places, pa.scalar(None, pa.int64())))


def _read_as(kind: pa.DataType) -> pa.DataType | None:
    """The type that Arrow's reader is asked for; None if it cannot be used."""
    if pa.types.is_map(kind) or pa.types.is_binary(kind) or pa.types.is_decimal(kind):
        return None
    if pa.types.is_struct(kind):
        fields = [(field.name, _read_as(field.type)) for field in kind]
        return None if any(found is None for _, found in fields) else pa.struct(fields)
    if pa.types.is_list(kind):
        element = _read_as(kind.value_type)
        return None if element is None else pa.list_(pa.field("element", element))
    return _STAND_IN.get(kind, kind)
