"""The header of a record batch (61 bytes), and what can be done with a batch without looking at its records.

A batch is a base offset, a length, a leader epoch, the magic byte, a CRC, and then everything that the CRC covers. Base
offset and leader epoch lie outside the CRC on purpose: a leader stamps both in place without computing a checksum.

Two kinds of error are kept apart. ``CorruptData``: these bytes are no batch, or not the batch that was written.
``Refused``: they are a batch, but one that a producer may not send.
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from struct import Struct
from typing import Final

from cordwood.errors import CorruptData, Error, Refused
from cordwood.ids import NO_SEQUENCE
from cordwood.ports import Buffer
from cordwood.record.crc import crc32c
from cordwood.wire.native import native

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = HEADER.size
LENGTH_END: Final = 12
"""Where the batch's length field ends; the field counts only the bytes after it."""
LEADER_EPOCH_AT: Final = LENGTH_END
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
"""The first byte that the CRC covers."""
MAX_TIMESTAMP_AT: Final = 35

MAGIC: Final = 2
RECORD_SIZE_MIN: Final = 7
"""Length, attributes, timestamp delta, offset delta, key length, value length, header count: at least a byte each."""
SEQUENCE_MAX: Final = 2**31 - 1

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40
PRODUCER_ATTRIBUTES: Final = CODEC_MASK | LOG_APPEND_TIME | TRANSACTIONAL | CONTROL
"""The attribute bits that a client's batch may have set (a rule of its own refuses control batches)."""

_unpack_header: Final = HEADER.unpack_from
_unpack_place: Final = Struct(">qi4xb6xi").unpack_from
_put_offset: Final = Struct(">q").pack_into
_put_epoch: Final = Struct(">i").pack_into
_put_crc: Final = Struct(">I").pack_into
_put_attributes: Final = Struct(">h").pack_into
_get_length: Final = Struct(">i").unpack_from


class Codec(IntEnum):
    """How the records of a batch are compressed."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


CODEC_MAX: Final = Codec.ZSTD.value


HEADER_FIELDS: Final = (
    "base_offset",
    "length",
    "leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)


class BatchHeader:
    """The fixed part of a batch, with the fields in the order of the bytes. It never changes.

    Written by hand, not a named tuple: compiled, its fields are plain numbers at fixed places, not objects.
    """

    __slots__ = HEADER_FIELDS

    def __init__(
        self,
        base_offset: int,
        length: int,
        leader_epoch: int,
        magic: int,
        crc: int,
        attributes: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        record_count: int,
    ) -> None:
        self.base_offset: Final = base_offset
        self.length: Final = length
        self.leader_epoch: Final = leader_epoch
        self.magic: Final = magic
        self.crc: Final = crc
        self.attributes: Final = attributes
        self.last_offset_delta: Final = last_offset_delta
        self.base_timestamp: Final = base_timestamp
        self.max_timestamp: Final = max_timestamp
        self.producer_id: Final = producer_id
        self.producer_epoch: Final = producer_epoch
        self.base_sequence: Final = base_sequence
        self.record_count: Final = record_count

    def numbers(self) -> tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]:
        """All fields, in order."""
        return (
            self.base_offset,
            self.length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        )

    def replaced(self, **fields: int) -> "BatchHeader":
        """A copy with other numbers in some of the fields."""
        return BatchHeader(**(dict(zip(HEADER_FIELDS, self.numbers(), strict=True)) | fields))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BatchHeader) and self.numbers() == other.numbers()

    def __repr__(self) -> str:
        fields = [f"{name}={number}" for name, number in zip(HEADER_FIELDS, self.numbers(), strict=True)]
        return f"BatchHeader({', '.join(fields)})"

    @property
    def size(self) -> int:
        """The size of the whole batch in bytes."""
        return self.length + LENGTH_END

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_to_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self) -> Codec:
        """The codec; ``CorruptData`` if the number is no codec's."""
        number = self.attributes & CODEC_MASK
        if number > CODEC_MAX:
            raise CorruptData(f"unknown compression codec {number}")
        return Codec(number)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def has_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)


Looked = tuple[int, int, int, int, int, int, int, int, int]
"""What the C code returns for a batch: the header fields that do not follow from its size or the rules for batches."""

_usual_batch: Final[Callable[[memoryview], Looked | None] | None] = getattr(native, "usual_batch", None)
"""``produced_batch`` in C; it returns None for a batch that it leaves to Python (``native/batch.c``)."""


_place_at: Final[Callable[[Buffer], tuple[int, int, int] | None] | None] = getattr(native, "place_at", None)
"""``place_at`` in C; it returns None for bytes that are not the header of a batch."""


def add_to_sequence(sequence: int, increment: int) -> int:
    """Sequence numbers wrap around: after 2³¹-1 comes 0."""
    return (sequence + increment) & SEQUENCE_MAX


def header_at(data: Buffer, position: int = 0) -> BatchHeader:
    """The header of the batch that begins at *position*; the batch itself may extend past the end of *data*."""
    if len(data) - position < HEADER_SIZE:
        raise CorruptData(f"{len(data) - position} bytes are too few for the header of a batch")
    header = _header_at(data, position)
    _check_form(header.magic, header.length)
    return header


def _header_at(data: Buffer, position: int) -> BatchHeader:
    (base_offset, length, leader_epoch, magic, crc, attributes, last_offset_delta, base_timestamp, max_timestamp,
     producer_id, producer_epoch, base_sequence, record_count) = _unpack_header(data, position)  # fmt: skip
    return BatchHeader(
        base_offset, length, leader_epoch, magic, crc, attributes, last_offset_delta, base_timestamp, max_timestamp,
        producer_id, producer_epoch, base_sequence, record_count,
    )  # fmt: skip


class BatchPlace:
    """What a search needs to know of a stored batch: its offsets and its size."""

    __slots__ = ("base_offset", "last_offset", "size")

    def __init__(self, base_offset: int, last_offset: int, size: int) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.size = size


def place_at(data: Buffer) -> BatchPlace:
    """The place of the batch that *data* begins with. Like ``header_at``, but with only the numbers for a search."""
    if _place_at is not None:
        place = _place_at(data)
        if place is not None:
            base_offset, last_offset, size = place
            return BatchPlace(base_offset, last_offset, size)
    if len(data) < HEADER_SIZE:
        raise CorruptData(f"{len(data)} bytes are too few for the header of a batch")
    base_offset, length, magic, last_offset_delta = _unpack_place(data)
    _check_form(magic, length)
    return BatchPlace(base_offset, base_offset + last_offset_delta, length + LENGTH_END)


def _check_form(magic: int, length: int) -> None:
    if magic != MAGIC:
        raise CorruptData(f"record format {magic}, expected {MAGIC}")
    if length < HEADER_SIZE - LENGTH_END:
        raise CorruptData(f"batch length {length} is less than its header")


def check_counts(header: BatchHeader) -> None:
    """Check the record count: a stored batch may have lost records to compaction, but never gained any."""
    if header.base_offset < 0 or header.last_offset_delta < 0:
        raise CorruptData(f"offsets {header.base_offset} + {header.last_offset_delta} are negative")
    if not 0 <= header.record_count <= header.last_offset_delta + 1:
        raise CorruptData(f"{header.record_count} records cannot have {header.last_offset_delta + 1} offsets")


def checksum(batch: Buffer) -> int:
    """The CRC that the whole *batch* should carry."""
    return crc32c(memoryview(batch)[ATTRIBUTES_AT:])


def check_crc(batch: Buffer, header: BatchHeader) -> None:
    if checksum(batch) != header.crc:
        raise CorruptData("the checksum of a batch does not match its bytes")


def batches(data: memoryview) -> Iterator[tuple[memoryview, BatchHeader]]:
    """Split received or stored bytes into whole, intact batches, each with its header.

    A batch that is cut off by the end of *data*, as often happens at the end of a fetched range, ends the iteration.
    Anything else that is wrong raises ``CorruptData``.
    """
    position = 0
    end = len(data)
    while end - position >= HEADER_SIZE:
        header = header_at(data, position)
        if header.size > end - position:
            return
        batch = data[position : position + header.size]
        check_counts(header)
        check_crc(batch, header)
        yield batch, header
        position += header.size


def produced_batch(data: memoryview) -> BatchHeader:
    """Check what a client wants to append to one partition: exactly one batch, valid as far as its header shows.

    Raises ``Refused`` with the error code that Kafka would return.
    """
    looked = _usual_batch(data) if _usual_batch is not None else None
    return usual_header(looked, len(data)) if looked is not None else _looked_at(data)


def usual_header(looked: Looked, size: int) -> BatchHeader:
    """The header of a batch of *size* bytes that the C code has accepted."""
    leader_epoch, crc, attributes, base_timestamp, max_timestamp, producer_id, epoch, sequence, count = looked
    return BatchHeader(
        base_offset=0,
        length=size - LENGTH_END,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=crc,
        attributes=attributes,
        last_offset_delta=count - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=count,
    )


def _looked_at(data: memoryview) -> BatchHeader:
    size = len(data)
    if size < HEADER_SIZE:
        raise _not_a_batch(data)
    header = _header_at(data, 0)
    attributes, producer_id, count = header.attributes, header.producer_id, header.record_count
    if header.magic != MAGIC or header.size != size:
        raise _not_a_batch(data)
    if crc32c(data[ATTRIBUTES_AT:]) != header.crc:
        raise Refused(Error.CORRUPT_MESSAGE, "The checksum of the record batch does not match its bytes.")
    if header.base_offset or count <= 0 or header.last_offset_delta != count - 1:
        raise _invalid_offsets(header)
    if attributes & ~PRODUCER_ATTRIBUTES or attributes & CODEC_MASK > CODEC_MAX:
        raise _invalid_attributes(attributes)
    if attributes & CONTROL:
        raise Refused(Error.INVALID_RECORD, "Clients may not write control records.")
    if attributes & TRANSACTIONAL and producer_id < 0:
        raise Refused(Error.INVALID_RECORD, "A transactional batch needs a producer id.")
    if not attributes & CODEC_MASK:
        if count * RECORD_SIZE_MIN > size - HEADER_SIZE:
            raise Refused(Error.INVALID_RECORD, f"{count} records do not fit into {size - HEADER_SIZE} bytes.")
        _check_first_record(data, size, count)
    if producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        text = f"Producer {producer_id} sent sequence {header.base_sequence} of epoch {header.producer_epoch}."
        raise Refused(Error.INVALID_RECORD, text)
    return header


def _check_first_record(batch: memoryview, size: int, count: int) -> None:
    """Check that the first record leaves room for as many others as the header counts, or none if it is the only one.

    It is the only record that can be found without walking over others. Only for batches that are not compressed.
    """
    length = batch[HEADER_SIZE]
    position = HEADER_SIZE + 1
    if length >= 0x80:
        length += (batch[position] - 1) << 7
        position += 1
        if length >= 0x4000:
            length, position = _long_varint(batch)
    rest = size - position - (length >> 1)
    # The lowest bit of a length is its sign.
    if length & 1 or rest < (count - 1) * RECORD_SIZE_MIN or (rest and count == 1):
        raise Refused(Error.INVALID_RECORD, f"The first record of the batch does not go with {count} of them.")


def _long_varint(batch: memoryview) -> tuple[int, int]:
    """The varint that the records begin with, and where it ends. One longer than five bytes counts as negative."""
    number = 0
    for index in range(5):
        byte = batch[HEADER_SIZE + index]
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return number, HEADER_SIZE + index + 1
    return 1, HEADER_SIZE


def _stamp(batch: Buffer, base_offset: int, leader_epoch: int) -> None:
    _put_offset(batch, 0, base_offset)
    _put_epoch(batch, LEADER_EPOCH_AT, leader_epoch)


stamp: Final[Callable[[Buffer, int, int], None]] = getattr(native, "stamp", _stamp)
"""``stamp(batch, base_offset, leader_epoch)`` gives a batch its place in the log. The CRC stays valid."""


def stamp_timestamp(batch: memoryview, attributes: int, max_timestamp: int) -> None:
    """Write the attributes and the largest timestamp in place, and update the CRC."""
    _put_attributes(batch, ATTRIBUTES_AT, attributes)
    _put_offset(batch, MAX_TIMESTAMP_AT, max_timestamp)
    _put_crc(batch, CRC_AT, checksum(batch))


def _not_a_batch(data: memoryview) -> Refused:
    """Why *data* is not exactly one batch of format version 2."""
    size = len(data)
    if size <= MAGIC_AT:
        return Refused(Error.INVALID_RECORD, "There is no whole record batch.")
    (length,) = _get_length(data, 8)
    magic = data[MAGIC_AT]
    if magic in (0, 1):
        return Refused(Error.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"Record format {magic} is too old, send format {MAGIC}.")
    if magic != MAGIC:
        return Refused(Error.CORRUPT_MESSAGE, f"There is no record format {magic}.")
    if length < HEADER_SIZE - LENGTH_END:
        return Refused(Error.CORRUPT_MESSAGE, f"A record batch cannot be {length} bytes long.")
    if length + LENGTH_END > size:
        return Refused(Error.INVALID_RECORD, "There is no whole record batch.")
    return Refused(Error.INVALID_RECORD, "There must be exactly one record batch for a partition.")


def _invalid_offsets(header: BatchHeader) -> Refused:
    if header.base_offset:
        return Refused(Error.INVALID_RECORD, f"The base offset must be 0, not {header.base_offset}.")
    if header.record_count <= 0:
        return Refused(Error.INVALID_RECORD, f"A batch cannot have {header.record_count} records.")
    text = f"{header.record_count} records do not go with a last offset delta of {header.last_offset_delta}."
    return Refused(Error.INVALID_RECORD, text)


def _invalid_attributes(attributes: int) -> Refused:
    if attributes & CODEC_MASK > CODEC_MAX:
        text = f"There is no compression codec {attributes & CODEC_MASK}."
        return Refused(Error.UNSUPPORTED_COMPRESSION_TYPE, text)
    return Refused(Error.INVALID_RECORD, f"Unknown attributes 0x{attributes & 0xFFFF:04x}.")
