"""The few requests that the harness sends itself, as bytes: old, non-flexible versions that every broker still serves.

Written by hand so that neither side's own code is part of what is measured. Metadata 1, Produce 3, Fetch 4,
ListOffsets 1.
"""

import socket
import struct
from types import TracebackType
from typing import Final, NamedTuple, Self

import crc32c

PRODUCE: Final = 0
FETCH: Final = 1
LIST_OFFSETS: Final = 2
METADATA: Final = 3

LATEST: Final = -1


class RawError(Exception):
    """The broker answered with an error code, or closed the connection."""


class RawConnection:
    """One blocking connection: a request, its answer, the next request."""

    def __init__(self, port: int, *, timeout_s: float = 10.0) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def ask(self, frame: bytes) -> bytes:
        """Send one framed request; return the answer's body, after its correlation id."""
        self._socket.sendall(frame)
        return self._receive(int.from_bytes(self._receive(4), "big"))[4:]

    def _receive(self, size: int) -> bytes:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            count = self._socket.recv_into(view)
            if count == 0:
                raise RawError("the broker closed the connection")
            view = view[count:]
        return bytes(data)


def metadata_frame() -> bytes:
    """Asks for the brokers only, with an empty list of topics."""
    return _frame(METADATA, 1, struct.pack(">i", 0))


def broker_count(body: bytes) -> int:
    return int.from_bytes(body[:4], "big", signed=True)


def topic_frame(topic: str) -> bytes:
    """Asks for one topic, and for the brokers."""
    return _frame(METADATA, 1, struct.pack(">i", 1) + _string(topic))


class PartitionState(NamedTuple):
    """A partition as Metadata describes it."""

    partition: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


def partition_states(body: bytes) -> list[PartitionState]:
    """The partitions of the only topic of a Metadata answer; none if there is no such topic."""
    at, brokers = 4, broker_count(body)
    for _ in range(brokers):
        at = _behind_string(body, _behind_string(body, at + 4) + 4)  # number, host, port, rack
    _, topics, error = struct.unpack_from(">iih", body, at)  # the controller first
    if topics != 1 or error:
        return []
    at = _behind_string(body, at + 10) + 1
    (count,) = struct.unpack_from(">i", body, at)
    at += 4
    states = []
    for _ in range(count):
        _, partition, leader = struct.unpack_from(">hii", body, at)
        replicas, at = _numbers(body, at + 10)
        in_sync, at = _numbers(body, at)
        states.append(PartitionState(partition, leader, replicas, in_sync))
    return states


def _numbers(body: bytes, at: int) -> tuple[tuple[int, ...], int]:
    (count,) = struct.unpack_from(">i", body, at)
    return struct.unpack_from(f">{count}i", body, at + 4), at + 4 + 4 * count


def _behind_string(body: bytes, at: int) -> int:
    (length,) = struct.unpack_from(">h", body, at)
    return at + 2 + max(int(length), 0)


def produce_frame(topic: str, partition: int, records: bytes, *, acks: int = 1) -> bytes:
    head = struct.pack(">hhi", -1, acks, 10_000)
    return _frame(PRODUCE, 3, head + _one_partition(topic, partition, _bytes(records)))


def fetch_frame(topic: str, partition: int, offset: int, *, max_wait_ms: int, bytes_max: int) -> bytes:
    head = struct.pack(">iiiib", -1, max_wait_ms, 1, bytes_max, 0)
    return _frame(FETCH, 4, head + _one_partition(topic, partition, struct.pack(">qi", offset, bytes_max)))


def list_offsets_frame(topic: str, partition: int, timestamp_ms: int) -> bytes:
    return _frame(
        LIST_OFFSETS, 1, struct.pack(">i", -1) + _one_partition(topic, partition, struct.pack(">q", timestamp_ms))
    )


def produced(body: bytes) -> int:
    """The base offset of a Produce answer about one partition."""
    error, offset = struct.unpack_from(">hq", body, _behind_topic(body, 0))
    _check(error)
    return int(offset)


def fetched(body: bytes) -> int:
    """How many bytes of records a Fetch answer about one partition holds."""
    at = _behind_topic(body, 4)
    error, _, _, aborted = struct.unpack_from(">hqqi", body, at)
    _check(error)
    return int(struct.unpack_from(">i", body, at + 22 + 16 * max(aborted, 0))[0])


def listed(body: bytes) -> int:
    """The offset of a ListOffsets answer about one partition."""
    error, _, offset = struct.unpack_from(">hqq", body, _behind_topic(body, 0))
    _check(error)
    return int(offset)


def record_batch(*, count: int, size: int, timestamp_ms: int) -> bytes:
    """One uncompressed batch of `count` keyless records with values of `size` bytes."""
    records = b"".join(_record(offset, bytes(size)) for offset in range(count))
    body = struct.pack(">hiqqqhii", 0, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count) + records
    return struct.pack(">qiibI", 0, len(body) + 9, -1, 2, crc32c.crc32c(body)) + body


def _record(offset: int, value: bytes) -> bytes:
    body = b"\0\0" + _varint(offset) + _varint(-1) + _varint(len(value)) + value + b"\0"
    return _varint(len(body)) + body


def _varint(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _frame(key: int, version: int, body: bytes) -> bytes:
    request = struct.pack(">hhi", key, version, 0) + _string("bench") + body
    return _bytes(request)


def _one_partition(topic: str, partition: int, rest: bytes) -> bytes:
    return struct.pack(">i", 1) + _string(topic) + struct.pack(">ii", 1, partition) + rest


def _behind_topic(body: bytes, at: int) -> int:
    """Where the error code of the only partition of the only topic is, in an answer whose topics begin at `at`."""
    (length,) = struct.unpack_from(">h", body, at + 4)
    return at + 4 + 2 + int(length) + 4 + 4


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _check(error: int) -> None:
    if error != 0:
        raise RawError(f"the broker answered with error {error}")
