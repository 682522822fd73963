"""Committed offsets as records of ``__consumer_offsets``: coded by hand, since a start may read millions of them.

A key is of kind 1 (0 in very old logs). A value has one of five versions: 4 is written, or 1 if the client chose when
the offset expires, which later versions cannot express. Values in any other form than the two that Kafka 4 writes take
the long way through ``wire``.
"""

from functools import lru_cache
from struct import Struct
from struct import error as StructError
from typing import NamedTuple
from uuid import UUID

from cordwood.errors import CorruptData
from cordwood.group.committed import NEVER_CHOSEN, CommittedOffset
from cordwood.wire import decode, encode
from cordwood.wire.types import i32, i64, message, v

OFFSET_KINDS_MAX = 1
KIND = 1
REMEMBERED_KEYS = 4096
REMEMBERED_NAME_MAX = 256


class OffsetCommitKey(NamedTuple):
    """Which offset: of a group, in a partition of a topic. The record's value is a ``CommittedOffset``."""

    group: str
    topic: str
    partition: int


@message(versions="0-4", flexible="4+")
class OffsetCommitValue:
    """How far a group has read a partition, in all versions."""

    offset: i64 = 0
    leader_epoch: i32 = v("3+", default=-1)
    metadata: str = ""
    commit_timestamp: i64 = 0
    expire_timestamp: i64 = v("1", default=NEVER_CHOSEN)
    topic_id: UUID = v("4+", tag=0)


_LENGTH = Struct(">h")
_KEY_HEAD = Struct(">hh")
_PARTITION = Struct(">i")
_VERSION_4 = Struct(">hqiB")
_TIME_ONLY = Struct(">qB")
_TIME_AND_ID = Struct(">q3s16s")
_ONE_TAG_OF_16_BYTES = b"\x01\x00\x10"
_STRING_BYTES_MAX = 0x7FFF


def encode_offset_key(key: OffsetCommitKey) -> bytes:
    """A client that commits does so again and again: keys are cached, except long ones, which take much memory."""
    return (_remembered_key if len(key.group) <= REMEMBERED_NAME_MAX else _encode_key)(key)


def _encode_key(key: OffsetCommitKey) -> bytes:
    group, topic, partition = key
    group_bytes, topic_bytes = group.encode(), topic.encode()
    assert len(group_bytes) <= _STRING_BYTES_MAX
    assert len(topic_bytes) <= _STRING_BYTES_MAX
    head = _KEY_HEAD.pack(KIND, len(group_bytes))
    return b"".join((head, group_bytes, _LENGTH.pack(len(topic_bytes)), topic_bytes, _PARTITION.pack(partition)))


_remembered_key = lru_cache(REMEMBERED_KEYS)(_encode_key)


def decode_offset_key(key: bytes) -> OffsetCommitKey:
    """Raises ``CorruptData`` if the bytes are not such a key."""
    try:
        group_end = 4 + (key[2] << 8 | key[3])
        topic_at = group_end + 2
        topic_end = topic_at + (key[group_end] << 8 | key[group_end + 1])
        if topic_end + 4 != len(key):
            raise CorruptData("the key of a committed offset is not as long as its parts")
        (partition,) = _PARTITION.unpack_from(key, topic_end)
        return OffsetCommitKey(key[4:group_end].decode(), key[topic_at:topic_end].decode(), partition)
    except (IndexError, UnicodeDecodeError) as error:
        raise CorruptData(f"the key of a committed offset makes no sense: {error}") from error


def encode_offset(committed: CommittedOffset) -> bytes:
    offset, leader_epoch, metadata, commit_timestamp, expire_timestamp, topic_id = committed
    metadata_bytes = metadata.encode()
    if expire_timestamp != NEVER_CHOSEN or len(metadata_bytes) > 126:
        return _encode_any(committed)
    head = _VERSION_4.pack(4, offset, leader_epoch, len(metadata_bytes) + 1)
    id_number = topic_id.int  # UUID's own comparison and ``bytes`` take a microsecond
    if not id_number:
        return head + metadata_bytes + _TIME_ONLY.pack(commit_timestamp, 0)
    return head + metadata_bytes + _TIME_AND_ID.pack(commit_timestamp, _ONE_TAG_OF_16_BYTES, id_number.to_bytes(16))


def decode_offset(value: bytes) -> CommittedOffset:
    """Raises ``CorruptData`` or ``ProtocolError`` if the bytes are not such a value."""
    try:
        version, offset, leader_epoch, length = _VERSION_4.unpack_from(value)
        if version != 4 or not 0 < length < 128:
            return _decode_any(value)
        end = 14 + length
        metadata = "" if length == 1 else value[15:end].decode()
        rest = len(value) - end
        if rest == _TIME_AND_ID.size:
            commit_timestamp, tag, id_bytes = _TIME_AND_ID.unpack_from(value, end)
            if tag == _ONE_TAG_OF_16_BYTES:
                return CommittedOffset(
                    offset, leader_epoch, metadata, commit_timestamp, NEVER_CHOSEN, _topic_id(id_bytes)
                )
        elif rest == _TIME_ONLY.size:
            commit_timestamp, tags = _TIME_ONLY.unpack_from(value, end)
            if not tags:
                return CommittedOffset(offset, leader_epoch, metadata, commit_timestamp)
    except (StructError, UnicodeDecodeError):
        pass  # The long way knows what is wrong, if anything is.
    return _decode_any(value)


@lru_cache(1024)
def _topic_id(id_bytes: bytes) -> UUID:
    """One object for the offsets of all partitions and groups: an id is larger than all the rest of an offset."""
    return UUID(bytes=id_bytes)


def _encode_any(committed: CommittedOffset) -> bytes:
    version = 4 if committed.expire_timestamp == NEVER_CHOSEN else 1
    return _LENGTH.pack(version) + encode(OffsetCommitValue(**committed._asdict()), version)


def _decode_any(value: bytes) -> CommittedOffset:
    if len(value) < _LENGTH.size:
        raise CorruptData("the value of a committed offset is too short")
    (version,) = _LENGTH.unpack_from(value)
    if not 0 <= version <= 4:
        raise CorruptData(f"a committed offset has no version {version} here")
    found = decode(OffsetCommitValue, version, value[_LENGTH.size :])
    return CommittedOffset(
        found.offset,
        found.leader_epoch,
        found.metadata,
        found.commit_timestamp,
        found.expire_timestamp,
        found.topic_id,
    )
