"""Avro's plain values as values of a column: numbers are widened, and logical types are interpreted.

The reader's type says what a value is. How many digits or which unit it was written in is said by the writer's type, if
it has a logical type of that sort too. Times of day are numbers in Spark, and an id stays what it is written as.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final

from .formats import BadValue

Shape = Callable[[object], object]

_DAY_0: Final = date(1970, 1, 1)
_SECOND_0: Final = datetime(1970, 1, 1)


def same(value: object) -> object:
    return value


def conversion(writer: Mapping[str, object], reader: Mapping[str, object]) -> Shape | None:
    """None: the values are right as they are."""
    first, second = _promotion(str(writer["type"]), str(reader["type"])), _meaning(writer, reader)
    if first is None or second is None:
        return first or second
    return lambda value: second(first(value))


def _promotion(written: str, wanted: str) -> Shape | None:
    if wanted in ("float", "double") and written in ("int", "long"):
        return lambda value: float(value) if isinstance(value, int) else value
    if (written, wanted) == ("string", "bytes"):
        return lambda value: value.encode() if isinstance(value, str) else value
    return _text if (written, wanted) == ("bytes", "string") else None


def _text(value: object) -> object:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError as reason:
        raise BadValue(f"bytes that are to be a text are not UTF-8: {reason}") from None


def _meaning(writer: Mapping[str, object], reader: Mapping[str, object]) -> Shape | None:
    kind, logical = str(reader["type"]), str(reader.get("logicalType"))
    was = str(writer.get("logicalType"))
    match kind, logical:
        case "int", "date":
            return _date
        case "long", "timestamp-millis" | "timestamp-micros" | "local-timestamp-millis" | "local-timestamp-micros":
            unit = was if was.endswith(("timestamp-millis", "timestamp-micros")) else logical
            return _timestamp(1000 if unit.endswith("millis") else 1, has_zone=logical.startswith("timestamp"))
        case "long", "time-micros" if was == "time-millis":
            return lambda value: value * 1000 if isinstance(value, int) else value
        case "bytes" | "fixed", "decimal":
            scale = (writer if was == "decimal" else reader).get("scale", 0)
            assert isinstance(scale, int)
            return _decimal(scale)
    return None


def _date(value: object) -> object:
    assert isinstance(value, int), value
    try:
        return _DAY_0 + timedelta(days=value)
    except OverflowError:
        raise BadValue(f"the day {value} is not within the years 1 to 9999") from None


def _timestamp(micros: int, *, has_zone: bool) -> Shape:
    start = _SECOND_0.replace(tzinfo=UTC) if has_zone else _SECOND_0

    def shape_timestamp(value: object) -> object:
        assert isinstance(value, int), value
        try:
            return start + timedelta(microseconds=value * micros)
        except OverflowError:
            raise BadValue(f"the time {value} is not within the years 1 to 9999") from None

    return shape_timestamp


def _decimal(scale: int) -> Shape:
    def shape_decimal(value: object) -> object:
        assert isinstance(value, bytes), value
        number = int.from_bytes(value, signed=True)
        digits = tuple(map(int, str(abs(number))))
        return Decimal((int(number < 0), digits, -scale))

    return shape_decimal
