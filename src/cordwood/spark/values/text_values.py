"""Values that are text, and values that stay bytes."""

import pyarrow as pa

from .formats import BadValue, Decoded, one_by_one


class Raw:
    """Bytes stay bytes."""

    type = pa.binary()

    def decode(self, data: pa.Array) -> Decoded:
        return Decoded(data, None)


class Text:
    """UTF-8."""

    type = pa.string()

    def decode(self, data: pa.Array) -> Decoded:
        try:
            return Decoded(data.cast(pa.string()), None)
        except pa.ArrowInvalid:
            return one_by_one(data, text_of, self.type)


def text_of(record: bytes) -> str:
    try:
        return record.decode()
    except UnicodeDecodeError as reason:
        raise BadValue(f"not UTF-8: byte {reason.start} is 0x{record[reason.start]:02x}") from None
