"""Compiled loops that turn columns into record batches, and that find a key's partition as Java's client does.

A column of byte strings is given in Arrow's form: the bytes, where each string ends (one entry more than there are
rows), and a bit for each that is not null (an empty array if none is null), beginning with bit *first*. The arrays come
from our own process; their lengths have already been compared.
"""

from typing import Final

import numpy as np

from .kernels import HEADER_BYTES, LENGTH_END, copy_bytes
from .machine import Bytes, Ints, Kernel, SmallInts, Table

# Columns of the table of written batches.
PARTITION: Final = 0
START: Final = 1
STOP: Final = 2
RECORDS: Final = 3
COLUMNS: Final = 4

NO_ROOM: Final = -1
RECORD_OVERHEAD_MAX: Final = 41
"""Length, attributes, timestamp and offset deltas, three lengths or counts: a record's size besides its contents."""
HEADER_OVERHEAD_MAX: Final = 10

# State of ``choose``: the partition that currently gets records without a key, and how many bytes it has got in a row.
STICKY_PARTITION: Final = 0
STICKY_BYTES: Final = 1


def _is_valid(valid: Bytes, first: int, i: int) -> bool:
    return valid.size == 0 or valid[(first + i) >> 3] >> np.uint8((first + i) & 7) & np.uint8(1) == 1


@Kernel
def murmur2(data: Bytes, at: int, length: int) -> int:
    """Kafka's hash of a key: 32 bits, not negative."""
    mask, m = np.uint64(0xFFFFFFFF), np.uint64(0x5BD1E995)
    h = np.uint64(0x9747B28C) ^ np.uint64(length)
    words = length // 4
    for word in range(words):
        p = at + 4 * word
        w = np.uint64(data[p])
        w |= np.uint64(data[p + 1]) << np.uint64(8)
        w |= np.uint64(data[p + 2]) << np.uint64(16)
        w |= np.uint64(data[p + 3]) << np.uint64(24)
        w = w * m & mask
        w ^= w >> np.uint64(24)
        w = w * m & mask
        h = (h * m & mask) ^ w
    rest, p = length & 3, at + 4 * words
    if rest == 3:
        h ^= np.uint64(data[p + 2]) << np.uint64(16)
    if rest >= 2:
        h ^= np.uint64(data[p + 1]) << np.uint64(8)
    if rest >= 1:
        h ^= np.uint64(data[p])
        h = h * m & mask
    h ^= h >> np.uint64(13)
    h = h * m & mask
    h ^= h >> np.uint64(15)
    return np.int64(h & np.uint64(0x7FFFFFFF))


@Kernel
def choose(
    count: int,
    partition_count: int,
    given: SmallInts,
    keys: Bytes,
    key_ends: SmallInts,
    key_valid: Bytes,
    key_first: int,
    value_ends: SmallInts,
    sticky_bytes: int,
    state: Ints,
    out: SmallInts,
) -> int:
    """Each row's partition: the given one (if not negative), else that of its key, else the one that is being filled.

    Records without a key fill one partition's batch before they go on to the next, as with Java's client: large batches
    cost less, and in the end all partitions get their share.
    """
    for i in range(count):
        if given.size and given[i] >= 0:
            out[i] = given[i]
        elif _is_valid(key_valid, key_first, i):
            out[i] = murmur2(keys, key_ends[i], key_ends[i + 1] - key_ends[i]) % partition_count
        else:
            if state[STICKY_BYTES] >= sticky_bytes:
                state[STICKY_PARTITION] = (state[STICKY_PARTITION] + 1) % partition_count
                state[STICKY_BYTES] = 0
            out[i] = state[STICKY_PARTITION]
            state[STICKY_BYTES] += value_ends[i + 1] - value_ends[i] + 8
    return count


@Kernel
def order(partitions: SmallInts, partition_count: int, at: Ints, out: Ints) -> int:
    """The rows sorted by partition; those of one partition keep their order.

    *at* is working memory: zeros, one more than there are partitions.
    """
    for i in range(partitions.size):
        at[partitions[i] + 1] += 1
    for partition in range(partition_count):
        at[partition + 1] += at[partition]
    for i in range(partitions.size):
        partition = partitions[i]
        out[at[partition]] = i
        at[partition] += 1
    return partitions.size


def _varint_size(number: int) -> int:
    value = np.uint64(number << 1 ^ number >> 63)
    size = 1
    while value > np.uint64(0x7F):
        value >>= np.uint64(7)
        size += 1
    return size


def _put_varint(out: Bytes, at: int, number: int) -> int:
    value = np.uint64(number << 1 ^ number >> 63)
    while value > np.uint64(0x7F):
        out[at] = np.uint8(value & np.uint64(0x7F) | np.uint64(0x80))
        value >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(value)
    return at + 1


def _put(out: Bytes, at: int, number: int, size: int) -> None:
    value = np.uint64(number)
    for i in range(size):
        out[at + size - 1 - i] = np.uint8(value & np.uint64(0xFF))
        value >>= np.uint64(8)


def _put_string(out: Bytes, at: int, data: Bytes, start: int, length: int) -> int:
    """A length and the bytes; -1 is null."""
    at = _put_varint(out, at, length)
    if length > 0:
        copy_bytes(out, at, data, start, length)
        at += length
    return at


def _finish(out: Bytes, start: int, stop: int, count: int, base_ms: int, max_ms: int) -> None:
    """Write the header of a batch, except for its CRC, its producer and its sequence number."""
    _put(out, start, 0, 8)
    _put(out, start + 8, stop - start - LENGTH_END, 4)
    _put(out, start + 12, -1, 4)
    out[start + 16] = 2
    _put(out, start + 17, 0, 6)
    _put(out, start + 23, count - 1, 4)
    _put(out, start + 27, base_ms, 8)
    _put(out, start + 35, max_ms, 8)
    _put(out, start + 43, -1, 8)
    _put(out, start + 51, -1, 2)
    _put(out, start + 53, -1, 4)
    _put(out, start + 57, count, 4)


@Kernel
def write(
    rows: Ints,
    partitions: SmallInts,
    timestamps_ms: Ints,
    keys: Bytes,
    key_ends: SmallInts,
    key_valid: Bytes,
    key_first: int,
    values: Bytes,
    value_ends: SmallInts,
    value_valid: Bytes,
    value_first: int,
    header_ends: SmallInts,
    names: Bytes,
    name_ends: SmallInts,
    header_values: Bytes,
    header_value_ends: SmallInts,
    header_valid: Bytes,
    header_first: int,
    batch_bytes: int,
    out: Bytes,
    table: Table,
) -> int:
    """Write the rows, which are ordered by partition, as batches one after the other; returns how many, or ``NO_ROOM``.

    A batch holds records of one partition and takes at most *batch_bytes*, unless a single record takes more.
    *timestamps_ms* has one entry for each row, or one for all. *header_ends* is empty if no row has headers.
    """
    found, at, start, count = 0, 0, 0, 0
    partition, base_ms, max_ms = np.int64(-1), np.int64(0), np.int64(0)
    for number in range(rows.size):
        i = rows[number]
        time_ms = timestamps_ms[i] if timestamps_ms.size > 1 else timestamps_ms[0]
        key_length = key_ends[i + 1] - key_ends[i] if _is_valid(key_valid, key_first, i) else -1
        value_length = value_ends[i + 1] - value_ends[i] if _is_valid(value_valid, value_first, i) else -1
        first_header = header_ends[i] if header_ends.size else 0
        stop_header = header_ends[i + 1] if header_ends.size else 0
        fixed = 1 + _varint_size(key_length) + max(key_length, 0) + _varint_size(value_length) + max(value_length, 0)
        fixed += _varint_size(stop_header - first_header)
        for h in range(first_header, stop_header):
            length = name_ends[h + 1] - name_ends[h]
            fixed += _varint_size(length) + length
            length = header_value_ends[h + 1] - header_value_ends[h]
            fixed += 1 if not _is_valid(header_valid, header_first, h) else _varint_size(length) + length
        size = fixed + _varint_size(time_ms - base_ms) + _varint_size(count)
        is_full = at + size + _varint_size(size) - start > batch_bytes
        if partitions[i] != partition or is_full:
            if count:
                _finish(out, start, at, count, base_ms, max_ms)
                table[found, STOP] = at
                table[found, RECORDS] = count
                found += 1
            if found >= table.shape[0] or at + HEADER_BYTES > out.size:
                return NO_ROOM
            partition, start, count = np.int64(partitions[i]), at, 0
            base_ms = max_ms = time_ms
            table[found, PARTITION] = partition
            table[found, START] = start
            at += HEADER_BYTES
            size = fixed + 2
        if at + size + _varint_size(size) > out.size:
            return NO_ROOM
        at = _put_varint(out, at, size)
        out[at] = 0
        at = _put_varint(out, at + 1, time_ms - base_ms)
        at = _put_varint(out, at, count)
        at = _put_string(out, at, keys, key_ends[i], key_length)
        at = _put_string(out, at, values, value_ends[i], value_length)
        at = _put_varint(out, at, stop_header - first_header)
        for h in range(first_header, stop_header):
            at = _put_string(out, at, names, name_ends[h], name_ends[h + 1] - name_ends[h])
            length = header_value_ends[h + 1] - header_value_ends[h]
            if not _is_valid(header_valid, header_first, h):
                length = -1
            at = _put_string(out, at, header_values, header_value_ends[h], length)
        max_ms = max(max_ms, time_ms)
        count += 1
    if count:
        _finish(out, start, at, count, base_ms, max_ms)
        table[found, STOP] = at
        table[found, RECORDS] = count
        found += 1
    return found
