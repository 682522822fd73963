"""What every format of values provides to its decoder."""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from cordwood.errors import CordwoodError

_REASON_CHARACTERS_MAX: Final = 500


class Decoded(NamedTuple):
    """Values, and for each the reason why it is null although its record was not. None if nothing went wrong."""

    values: pa.Array
    errors: pa.Array | None


class Format(Protocol):
    """Bytes to values of one type. Null stays null, and is not an error."""

    @property
    def type(self) -> pa.DataType: ...

    def decode(self, data: pa.Array) -> Decoded: ...


class BadValue(Exception):
    """One record's bytes are not valid; the text says why, and names the field."""


def one_by_one(data: pa.Array, decode: Callable[[bytes], object], kind: pa.DataType) -> Decoded:
    """Values that Python makes, record by record. What is wrong with one of them does not affect the others.

    Raises:
        CordwoodError: it is not a record's fault, such as a registry that does not answer.
    """
    values: list[object] = []
    errors: list[str | None] = []
    for record in data.to_pylist():
        value, reason = (None, None) if record is None else _tried(decode, record)
        values.append(value)
        errors.append(reason)
    try:
        made = pa.array(values, kind)
    except Exception:  # Arrow does not say which one it is
        made = _fitting(values, errors, kind)
    return Decoded(made, pa.array(errors, pa.string()) if any(errors) else None)


def _tried(decode: Callable[[bytes], object], record: bytes) -> tuple[object, str | None]:
    try:
        return decode(record), None
    except BadValue as reason:
        return None, _written(str(reason))
    except CordwoodError:
        raise
    except Exception as error:  # raised by libraries, for bytes that nobody thought of: they must not stop the query
        return None, _written(f"cannot be decoded: {type(error).__name__}: {error}")


def _fitting(values: list[object], errors: list[str | None], kind: pa.DataType) -> pa.Array:
    """The values that fit into the column; the others become null, and get their reasons."""
    for number, value in enumerate(values):
        try:
            pa.array([value], kind)
        except Exception as error:
            values[number] = None
            errors[number] = _written(f"the value does not fit the columns' schema: {error}")
    return pa.array(values, kind)


def _written(reason: str) -> str:
    """A reason that is not too long, and is valid UTF-8 whatever it quotes."""
    shown = reason if len(reason) <= _REASON_CHARACTERS_MAX else reason[:_REASON_CHARACTERS_MAX] + "…"
    return shown.encode(errors="replace").decode()
