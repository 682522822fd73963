"""The frame that serializers with a schema registry put around values: a zero byte, the schema's id in four bytes, then
the value; for Protobuf, the path to the message within its file comes in between."""

import pyarrow as pa
import pyarrow.compute as pc

from .formats import BadValue, Decoded, Format, one_by_one

MAGIC = 0
HEADER_BYTES = 5


def split(record: bytes) -> tuple[int, bytes]:
    """The schema's id, and the rest.

    Raises:
        BadValue: there is no frame.
    """
    if len(record) < HEADER_BYTES or record[0] != MAGIC:
        begin = record[:HEADER_BYTES].hex(" ") or "nothing"
        raise BadValue(
            f"no schema's number before the value: it begins with {begin}, not with 00 and four bytes; was it written "
            "without a schema registry?"
        )
    return int.from_bytes(record[1:HEADER_BYTES], "big"), record[HEADER_BYTES:]


def after_indexes(data: bytes) -> bytes:
    """What follows Protobuf's message indexes: their count, and each index, as zigzag numbers."""
    count, at = _zigzag(data, 0)
    for _ in range(count):
        _, at = _zigzag(data, at)
    return data[at:]


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 28:
            raise BadValue("the message indexes before the value make no sense")
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            break
    if value >> 1 > len(data):
        raise BadValue("the message indexes before the value make no sense")
    return value >> 1 ^ -(value & 1), at


class Framed:
    """A format whose values have such a frame, which only has to be removed."""

    def __init__(self, inner: Format, *, has_indexes: bool) -> None:
        self._inner = inner
        self._has_indexes = has_indexes
        self.type = inner.type

    def decode(self, data: pa.Array) -> Decoded:
        bare, reasons = one_by_one(data, self._unframed, pa.binary())
        values, errors = self._inner.decode(bare)
        if reasons is not None and errors is not None:
            errors = pc.coalesce(reasons, errors)
        return Decoded(values, reasons if errors is None else errors)

    def _unframed(self, record: bytes) -> bytes:
        _, rest = split(record)
        return after_indexes(rest) if self._has_indexes else rest
