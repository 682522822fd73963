"""What every format of values is to its decoder."""

from typing import NamedTuple, Protocol

import pyarrow as pa


class Decoded(NamedTuple):
    """Values, and for each the reason why it is null although its record was not. No reasons: nothing went wrong."""

    values: pa.Array
    errors: pa.Array | None


class Format(Protocol):
    """Bytes to values of one type. Null stays null, and is no error."""

    @property
    def type(self) -> pa.DataType: ...

    def decode(self, data: pa.Array) -> Decoded: ...


class BadValue(Exception):
    """One record's bytes are not what they should be; the text says why, and names the field."""


def collected(values: list[object], errors: list[str | None], kind: pa.DataType) -> Decoded:
    """Values that were decoded one by one."""
    return Decoded(pa.array(values, kind), pa.array(errors, pa.string()) if any(errors) else None)
