"""One JSON record at a time: what its values are, and which field is not what the schema says.

This defines what is accepted; the fast path accepts less of it, and gives the same result when it does.
"""

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import partial
from typing import Final

import pyarrow as pa

from .formats import BadValue
from .text_values import text_of

Convert = Callable[[object, str], object]
"""A parsed JSON value, and the path to it in the record, to what Arrow takes."""

_INTEGERS: Final = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}
_SHOWN_CHARACTERS: Final = 60
_SURROGATES = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)
"""What a backslash begins in JSON; the group matches half a surrogate pair without its other half."""
_QUESTION_MARK: Final = r"\u003f"
"""As long as what it replaces, so that positions in a text stay the same."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is written: one that is not whole, since a float may differ from it, or one with so many digits
    that Python does not parse it."""

    text: str


@dataclass(frozen=True, slots=True)
class Twins:
    """In place of a field's value: the field occurs more than once."""


TWINS: Final = Twins()


def loads(record: bytes) -> object:
    """
    Raises:
        BadValue: it is not JSON.
    """
    text = _whole_characters(text_of(record))
    try:
        return _loads(text)
    except json.JSONDecodeError as reason:
        shown = text[reason.pos : reason.pos + 20]
        raise BadValue(f"not JSON: {reason.msg}, at character {reason.pos}, {shown!r}") from None
    except RecursionError:
        raise BadValue("not JSON that can be read: it is nested too deep") from None


def _loads(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_marked, parse_float=Number)
    except json.JSONDecodeError:
        raise
    except ValueError:  # Python's limit for the digits of a number
        return json.loads(text, object_pairs_hook=_marked, parse_float=Number, parse_int=_whole_number)


def _whole_number(text: str) -> object:
    try:
        return int(text)
    except ValueError:
        return Number(text)


def _whole_characters(text: str) -> str:
    """JSON without lone surrogates, which UTF-8 cannot express: each is replaced by a question mark, as in Spark."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _SURROGATES.sub(lambda found: _QUESTION_MARK if found[1] else found[0], text)


def dumps(value: object) -> str:
    """What ``loads`` returned, as JSON again."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except TypeError:  # it contains objects of our own
        return _dumps(value)


def _dumps(value: object) -> str:
    match value:
        case Number():
            return value.text
        case Twins():
            raise BadValue("a field is there twice")
        case dict():
            return "{" + ",".join(f"{_dumps(name)}:{_dumps(item)}" for name, item in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_dumps, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _marked(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object's fields. Fields that occur twice are not an error as long as they are not wanted."""
    made = dict(pairs)
    if len(made) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        made |= {name: TWINS for name, count in counts.items() if count > 1}
    return made


def converter(kind: pa.DataType, zone: tzinfo = UTC) -> Convert:
    """A function that makes values of a type from parsed JSON. A field that is not nullable must be there; a time that
    is written without a zone is in *zone*."""
    if pa.types.is_struct(kind):
        return partial(_struct, [(field.name, _of_field(field, zone)) for field in kind])
    if pa.types.is_map(kind):
        return partial(_map, converter(kind.item_type, zone), kind)
    if pa.types.is_list(kind):
        return partial(_list, converter(kind.value_type, zone))
    if kind in _INTEGERS:
        return partial(_integer, _INTEGERS[kind])
    if pa.types.is_floating(kind):
        return _number
    if pa.types.is_decimal(kind):
        return _decimals(kind)
    if pa.types.is_timestamp(kind):
        return partial(_timestamp, None if kind.tz is None else zone)
    return _PLAIN[kind]


def _of_field(field: pa.Field, zone: tzinfo) -> Convert:
    convert = converter(field.type, zone)
    return convert if field.nullable else partial(_required, convert)


def _required(convert: Convert, value: object, path: str) -> object:
    if value is None:
        raise BadValue(f"the field {path} is null, and the schema says NOT NULL")
    return convert(value, path)


def _mismatch(value: object, wanted: str, path: str) -> BadValue:
    where = f"the field {path}" if path else "the value"
    if value is TWINS:
        return BadValue(f"{where} is there twice")
    shown = dumps(value)
    if len(shown) > _SHOWN_CHARACTERS:
        shown = shown[:_SHOWN_CHARACTERS] + "…"
    return BadValue(f"{where} should be {wanted}, and is {shown}")


def _struct(fields: list[tuple[str, Convert]], value: object, path: str) -> object:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _mismatch(value, "an object", path)
    get = value.get
    before = path + "." if path else ""
    return {name: convert(get(name), before + name) for name, convert in fields}


def _map(convert: Convert, kind: pa.DataType, value: object, path: str) -> object:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _mismatch(value, "an object", path)
    if not pa.types.is_string(kind.key_type):
        raise _mismatch(value, "an array, since only text can be a key in JSON", path)
    return [(key, convert(item, f"{path}.{key}")) for key, item in value.items()]


def _list(convert: Convert, value: object, path: str) -> object:
    if value is None:
        return None
    if not isinstance(value, list):
        raise _mismatch(value, "an array", path)
    return [convert(item, f"{path}[{number}]") for number, item in enumerate(value)]


def _integer(bits: int, value: object, path: str) -> object:
    if value is None:
        return None
    if type(value) is not int or not -(1 << bits) <= value < 1 << bits:
        raise _mismatch(value, f"a whole number of {bits + 1} bits", path)
    return value


def _number(value: object, path: str) -> object:
    if value is None:
        return None
    if isinstance(value, Number):
        return float(value.text)
    if type(value) not in (int, float):
        raise _mismatch(value, "a number", path)
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return float(str(value))  # infinite, as if it were written as text


def _decimals(kind: pa.DataType) -> Convert:
    """Python checks whether a number fits: Arrow crashes on some exponents."""
    exact = Context(prec=kind.precision, traps=[InvalidOperation, Inexact])
    return partial(_decimal, Decimal(1).scaleb(-kind.scale), exact)


def _decimal(unit: Decimal, exact: Context, value: object, path: str) -> object:
    if value is None:
        return None
    scale = -unit.adjusted()
    wanted = f"a number of at most {exact.prec} digits, {scale} of them after the point"
    if type(value) not in (int, str, Number):
        raise _mismatch(value, wanted, path)
    text = value.text if isinstance(value, Number) else str(value)
    try:
        found = Decimal(text).quantize(unit, context=exact)
    except (InvalidOperation, Inexact):
        raise _mismatch(value, wanted, path) from None
    if not found.is_finite():
        raise _mismatch(value, wanted, path)
    return found


def _boolean(value: object, path: str) -> object:
    if value is not None and type(value) is not bool:
        raise _mismatch(value, "true or false", path)
    return value


def _string(value: object, path: str) -> object:
    """Text; anything else as its JSON, as in Spark, with numbers as they are written."""
    if value is None or isinstance(value, str):
        return value
    if value is TWINS:
        raise _mismatch(value, "text", path)
    return dumps(value)


def _binary(value: object, path: str) -> object:
    if value is None:
        return None
    try:
        return base64.b64decode(value, validate=True)  # type: ignore[arg-type]
    except (binascii.Error, ValueError, TypeError):
        raise _mismatch(value, "text in base64", path) from None


def _date(value: object, path: str) -> object:
    if value is None:
        return None
    try:
        return date.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise _mismatch(value, "a date, such as 2026-01-31", path) from None


def _timestamp(zone: tzinfo | None, value: object, path: str) -> object:
    """Without a zone, it is a local time."""
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(value)  # type: ignore[arg-type]
        found = (found if found.tzinfo else found.replace(tzinfo=zone or UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):  # OverflowError: out of range only once it is in UTC
        raise _mismatch(value, "a time, such as 2026-01-31T12:00:00Z", path) from None
    return found.replace(tzinfo=None) if zone is None else found


_PLAIN: Final[dict[pa.DataType, Convert]] = {
    pa.bool_(): _boolean,
    pa.string(): _string,
    pa.binary(): _binary,
    pa.date32(): _date,
}
