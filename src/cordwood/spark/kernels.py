"""Compiled loops that turn record batches into columns.

The bytes come from a peer or from a file that somebody else writes, and compiled code does not check where it reads. So
every length is compared with what is left before it is used, and invalid data gives an error code (below zero, one of
``ERRORS``), never a read out of bounds.

A batch is a row of a table of 64-bit integers; ``Col`` says what its columns are. ``PAYLOAD`` and ``PAYLOAD_END`` say
where its records lie in the bytes given to ``locate``, which are not those of the batch if it was compressed.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from .machine import Bytes, Ints, Kernel, SmallInts, Table, Words

HEADER_BYTES: Final = 61
LENGTH_END: Final = 12
CRC_FROM: Final = 21
RECORD_BYTES_MIN: Final = 7
OFFSET_MAX: Final = 2**62
TIMESTAMP_MS_MAX: Final = (2**63 - 1) // 1000
LOG_APPEND_TIME: Final = 0x08
CODEC_MAX: Final = 4

# Columns of the table of batches.
POSITION: Final = 0
END: Final = 1
BASE_OFFSET: Final = 2
LAST_DELTA: Final = 3
ATTRIBUTES: Final = 4
BASE_TIMESTAMP: Final = 5
MAX_TIMESTAMP: Final = 6
PRODUCER_ID: Final = 7
COUNT: Final = 8
CRC: Final = 9
PAYLOAD: Final = 10
PAYLOAD_END: Final = 11
COLUMNS: Final = 12

CUT_OFF: Final = -1
NOT_A_BATCH: Final = -2
BAD_COUNT: Final = -3
BAD_RECORD: Final = -4
BAD_OFFSET: Final = -5
BAD_HEADERS: Final = -6
LEFT_OVER: Final = -7

ERRORS: Final = {
    CUT_OFF: "a batch is cut off",
    NOT_A_BATCH: "there is no record batch of format 2",
    BAD_COUNT: "a batch claims more records than it has offsets or bytes for",
    BAD_RECORD: "a record is shorter or longer than its parts",
    BAD_OFFSET: "a record is not where it belongs in its batch",
    BAD_HEADERS: "the headers of a record make no sense",
    LEFT_OVER: "bytes are left after the last record of a batch",
}


def _crc_tables() -> NDArray[np.uint32]:
    """Castagnoli's polynomial, for eight bytes at a time."""
    tables = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        tables[0, byte] = crc
    for number in range(1, 8):
        before = tables[number - 1]
        tables[number] = before >> np.uint32(8) ^ tables[0][before & np.uint32(0xFF)]
    return tables


CRC_TABLES: Final = _crc_tables()


def _big_endian(src: Bytes, at: int, size: int) -> int:
    value = np.uint64(0)
    for i in range(size):
        value = value << np.uint64(8) | np.uint64(src[at + i])
    return np.int64(value)


def _int32(src: Bytes, at: int) -> int:
    value: int = _big_endian(src, at, 4)
    return value - (1 << 32) if value >> 31 else value


def _varint(src: Bytes, at: int, end: int) -> tuple[int, int]:
    """A zigzag varint and where it ends; that is -1 if it does not end before *end*, or has too many bytes."""
    if at >= end:
        return np.int64(0), np.int64(-1)
    byte = np.uint64(src[at])
    at += 1
    value = byte & np.uint64(0x7F)
    shift = np.uint64(7)
    while byte > np.uint64(0x7F):
        if at >= end or shift > np.uint64(63):
            return np.int64(0), np.int64(-1)
        byte = np.uint64(src[at])
        at += 1
        value |= (byte & np.uint64(0x7F)) << shift
        shift += np.uint64(7)
    return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), np.int64(at)


@Kernel
def count_batches(src: Bytes) -> int:
    """How many batches there are, going by their lengths; not more than fit."""
    at, found = 0, 0
    while src.size - at >= HEADER_BYTES:
        length = _int32(src, at + 8)
        if length < HEADER_BYTES - LENGTH_END:
            break
        at += LENGTH_END + length
        found += 1
    return found


@Kernel
def scan(src: Bytes, table: Table) -> int:
    """Fill the table with the batches of *src*, which are whole; returns how many, or an error."""
    at, found = 0, 0
    while at < src.size:
        if src.size - at < HEADER_BYTES:
            return CUT_OFF
        length = _int32(src, at + 8)
        if src[at + 16] != 2 or length < HEADER_BYTES - LENGTH_END:
            return NOT_A_BATCH
        end = at + LENGTH_END + length
        if end > src.size:
            return CUT_OFF
        row = table[found]
        row[POSITION] = at
        row[END] = end
        row[BASE_OFFSET] = _big_endian(src, at, 8)
        row[LAST_DELTA] = _int32(src, at + 23)
        row[ATTRIBUTES] = _big_endian(src, at + 21, 2)
        row[BASE_TIMESTAMP] = _big_endian(src, at + 27, 8)
        row[MAX_TIMESTAMP] = _big_endian(src, at + 35, 8)
        row[PRODUCER_ID] = _big_endian(src, at + 43, 8)
        row[COUNT] = _int32(src, at + 57)
        row[CRC] = _big_endian(src, at + 17, 4)
        row[PAYLOAD] = at + HEADER_BYTES
        row[PAYLOAD_END] = end
        if row[BASE_OFFSET] < 0 or row[BASE_OFFSET] > OFFSET_MAX or row[LAST_DELTA] < 0:
            return NOT_A_BATCH
        if row[ATTRIBUTES] & 7 > CODEC_MAX:
            return NOT_A_BATCH
        if row[COUNT] < 0 or row[COUNT] > row[LAST_DELTA] + 1:
            return BAD_COUNT
        at = end
        found += 1
    return found


@Kernel
def bad_checksum(src: Bytes, table: Table, size_max: int, tables: Words) -> int:
    """The number of the first batch of at most *size_max* bytes whose CRC is wrong; -1 if none is.

    A library does this faster for large batches, but a call costs more than a small batch does here.
    """
    for number in range(table.shape[0]):
        at, end = table[number, POSITION] + CRC_FROM, table[number, END]
        if end - at > size_max:
            continue
        crc = np.uint32(0xFFFFFFFF)
        while end - at >= 8:
            low = crc ^ (
                np.uint32(src[at])
                | np.uint32(src[at + 1]) << np.uint32(8)
                | np.uint32(src[at + 2]) << np.uint32(16)
                | np.uint32(src[at + 3]) << np.uint32(24)
            )
            crc = (
                tables[7, low & np.uint32(0xFF)]
                ^ tables[6, low >> np.uint32(8) & np.uint32(0xFF)]
                ^ tables[5, low >> np.uint32(16) & np.uint32(0xFF)]
                ^ tables[4, low >> np.uint32(24)]
                ^ tables[3, src[at + 4]]
                ^ tables[2, src[at + 5]]
                ^ tables[1, src[at + 6]]
                ^ tables[0, src[at + 7]]
            )
            at += 8
        while at < end:
            crc = tables[0, (crc ^ np.uint32(src[at])) & np.uint32(0xFF)] ^ crc >> np.uint32(8)
            at += 1
        if np.int64(crc ^ np.uint32(0xFFFFFFFF)) != table[number, CRC]:
            return number
    return -1


def _after_headers(src: Bytes, at: int, end: int, sizes: Ints) -> int:
    """Where the headers of a record end; their number, and the bytes of names and values, are added to *sizes*."""
    count, at = _varint(src, at, end)
    if at < 0 or count < 0 or count > (end - at) // 2:
        return BAD_HEADERS
    for _ in range(count):
        name, at = _varint(src, at, end)
        if at < 0 or name < 0 or name > end - at:
            return BAD_HEADERS
        value, at = _varint(src, at + name, end)
        if at < 0 or value > end - at:
            return BAD_HEADERS
        sizes[2] += name
        if value > 0:
            sizes[3] += value
            at += value
    sizes[4] += count
    return at


@Kernel
def locate(
    src: Bytes,
    table: Table,
    start: int,
    end: int,
    offsets: Ints,
    timestamps_us: Ints,
    keys: Ints,
    key_lengths: SmallInts,
    values: Ints,
    value_lengths: SmallInts,
    headers: Ints,
    sizes: Ints,
) -> int:
    """Find every record from offset *start* up to *end*; returns how many there are, or an error.

    The arrays have room for as many records as the batches claim to have. ``scan`` has checked these counts against the
    offsets, and this checks them against the bytes. Lengths are -1 for null. *headers* gets where a record's headers
    begin. *sizes* gets the bytes of all keys, of all values, of all header names, of all header values, and the number
    of headers.
    """
    found = 0
    sizes[:] = 0
    for number in range(table.shape[0]):
        row = table[number]
        at, stop = row[PAYLOAD], row[PAYLOAD_END]
        if row[COUNT] * RECORD_BYTES_MIN > stop - at:
            return BAD_COUNT
        base, last = row[BASE_OFFSET], row[LAST_DELTA]
        by_append = row[ATTRIBUTES] & LOG_APPEND_TIME != 0
        next_delta = np.int64(0)
        for _ in range(row[COUNT]):
            length, at = _varint(src, at, stop)
            if at < 0 or length < 0 or length > stop - at:
                return BAD_RECORD
            record_end = at + length
            delta_ms, at = _varint(src, at + 1, record_end)
            if at < 0:
                return BAD_RECORD
            delta, at = _varint(src, at, record_end)
            if at < 0:
                return BAD_RECORD
            if delta < next_delta or delta > last:
                return BAD_OFFSET
            next_delta = delta + 1
            key_length, at = _varint(src, at, record_end)
            if at < 0 or key_length > record_end - at:
                return BAD_RECORD
            key = at
            if key_length > 0:
                at += key_length
            value_length, at = _varint(src, at, record_end)
            if at < 0 or value_length > record_end - at:
                return BAD_RECORD
            value = at
            if value_length > 0:
                at += value_length
            offset = base + delta
            if offset < start or offset >= end:
                at = record_end
                continue
            headers[found] = at
            if record_end - at != 1 or src[at] != 0:
                at = _after_headers(src, at, record_end, sizes)
                if at < 0:
                    return BAD_HEADERS
                if at != record_end:
                    return BAD_RECORD
            at = record_end
            time_ms = row[MAX_TIMESTAMP] if by_append else row[BASE_TIMESTAMP] + delta_ms
            timestamps_us[found] = min(max(time_ms, -TIMESTAMP_MS_MAX), TIMESTAMP_MS_MAX) * 1000
            offsets[found] = offset
            keys[found] = key
            key_lengths[found] = max(key_length, -1)
            values[found] = value
            value_lengths[found] = max(value_length, -1)
            sizes[0] += max(key_length, 0)
            sizes[1] += max(value_length, 0)
            found += 1
        if at != stop:
            return LEFT_OVER
    return found


def copy_bytes(out: Bytes, to: int, src: Bytes, at: int, length: int) -> None:
    """*length* bytes of *src*, from *at* on, to *out*, from *to* on. Compiled, this is ``memcpy``."""
    out[to : to + length] = src[at : at + length]


@Kernel
def gather(src: Bytes, at: Ints, lengths: SmallInts, count: int, out: Bytes, ends: SmallInts, valid: Bytes) -> int:
    """Lay *count* byte strings one after the other, as Arrow wants them; returns how many of them are null.

    *valid* has a bit for each, all zero at first.
    """
    to, nulls = 0, 0
    ends[0] = 0
    for i in range(count):
        length = lengths[i]
        if length < 0:
            nulls += 1
        else:
            valid[i >> 3] |= np.uint8(1 << (i & 7))
            copy_bytes(out, to, src, at[i], length)
            to += length
        ends[i + 1] = to
    return nulls


@Kernel
def gather_headers(
    src: Bytes,
    at: Ints,
    stop: int,
    count: int,
    ends: SmallInts,
    valid: Bytes,
    names: Bytes,
    name_ends: SmallInts,
    values: Bytes,
    value_ends: SmallInts,
    values_valid: Bytes,
) -> int:
    """Lay out the headers of *count* records that ``locate`` has checked; returns 1 if all names are ASCII, 0 if not.

    A record without headers has null instead of an empty list, as in Spark's Kafka source.
    """
    number, to_name, to_value, high = 0, 0, 0, np.uint8(0)
    ends[0] = name_ends[0] = value_ends[0] = 0
    for i in range(count):
        headers, p = _varint(src, at[i], stop)
        if headers > 0:
            valid[i >> 3] |= np.uint8(1 << (i & 7))
        for _ in range(headers):
            length, p = _varint(src, p, stop)
            for j in range(length):
                high |= src[p + j]
            copy_bytes(names, to_name, src, p, length)
            to_name += length
            name_ends[number + 1] = to_name
            length, p = _varint(src, p + length, stop)
            if length >= 0:
                values_valid[number >> 3] |= np.uint8(1 << (number & 7))
                copy_bytes(values, to_value, src, p, length)
                to_value += length
                p += length
            value_ends[number + 1] = to_value
            number += 1
        ends[i + 1] = number
    return 1 if high < 128 else 0
