"""What the internal topic ``__consumer_offsets`` holds: Kafka's keys and values, so that its tools can read them.

A key begins with two bytes that tell its kind, a value with two bytes that tell its version. All kinds are here but
one: most records are committed offsets, which take a shorter path (``stored_offsets``).

Keys of kind 4, which Kafka wrote before 4.1, are not known here, nor are those of share and streams groups.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from struct import Struct
from typing import Any, Final
from uuid import UUID

from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import CorruptData, ProtocolError
from cordwood.group.committed import CommittedOffset
from cordwood.group.stored_offsets import (
    OFFSET_KINDS_MAX,
    OffsetCommitKey,
    decode_offset,
    decode_offset_key,
    encode_offset,
    encode_offset_key,
)
from cordwood.wire import decode, encoder
from cordwood.wire.types import i8, i32, i64, message, v

OFFSETS_TOPIC: Final = "__consumer_offsets"


@message(versions="2")
class GroupMetadataKey:
    group: str = ""


@message
class GroupMetadataMember:
    member_id: str = ""
    group_instance_id: str | None = v("3+")
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: i32 = v("1+", default=-1)
    session_timeout: i32 = 0
    subscription: bytes = b""
    assignment: bytes = b""


@message(versions="0-4", flexible="4+")
class GroupMetadataValue:
    """A generation of a group of the classic protocol."""

    protocol_type: str = ""
    generation: i32 = 0
    protocol: str | None = None
    leader: str | None = None
    current_state_timestamp: i64 = v("2+", default=-1)
    members: list[GroupMetadataMember] = v()


@message(versions="3")
class ConsumerGroupMetadataKey:
    group_id: str = ""


@message(versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    """The epoch of a group of the consumer protocol, and a hash of the topics' metadata it is based on."""

    epoch: i32 = 0
    metadata_hash: i64 = v("0+", tag=0)


@message(versions="5")
class ConsumerGroupMemberMetadataKey:
    group_id: str = ""
    member_id: str = ""


@message
class ClassicProtocol:
    name: str = ""
    metadata: bytes = b""


@message
class ClassicMemberMetadata:
    """What is known of a member of a consumer group that speaks the classic protocol."""

    session_timeout_ms: i32 = 0
    supported_protocols: list[ClassicProtocol] = v()


@message(versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    """A member as it has described itself."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = v()
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: i32 = -1
    server_assignor: str | None = None
    classic_member_metadata: ClassicMemberMetadata | None = v("0+", tag=0, null="0+")


@message(versions="6")
class ConsumerGroupTargetAssignmentMetadataKey:
    group_id: str = ""


@message(versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    """The group epoch of the target assignment."""

    assignment_epoch: i32 = 0
    assignment_timestamp: i64 = v("0+", tag=0)


@message(versions="7")
class ConsumerGroupTargetAssignmentMemberKey:
    group_id: str = ""
    member_id: str = ""


@message
class TargetTopicPartitions:
    topic_id: UUID = v()
    partitions: list[i32] = v()


@message(versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    """What a member should have."""

    topic_partitions: list[TargetTopicPartitions] = v()


@message(versions="8")
class ConsumerGroupCurrentMemberAssignmentKey:
    group_id: str = ""
    member_id: str = ""


@message
class CurrentTopicPartitions:
    topic_id: UUID = v()
    partitions: list[i32] = v()
    assignment_epochs: list[i32] | None = v("0+", tag=0)


@message(versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    """What a member has, and what it must give up first."""

    member_epoch: i32 = 0
    previous_member_epoch: i32 = 0
    state: i8 = 0
    assigned_partitions: list[CurrentTopicPartitions] = v()
    partitions_pending_revocation: list[CurrentTopicPartitions] = v()


@message(versions="16")
class ConsumerGroupRegularExpressionKey:
    group_id: str = ""
    regular_expression: str = ""


@message(versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    """The topics that a pattern matched, when, and in which version of the metadata."""

    topics: list[str] = v()
    version: i64 = 0
    timestamp: i64 = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of record: its number, its classes, the version in which values are written, and those that are read."""

    number: int
    key: type
    value: type
    written_version: int
    versions: range


KINDS: Final = (
    Kind(2, GroupMetadataKey, GroupMetadataValue, 3, range(5)),
    Kind(3, ConsumerGroupMetadataKey, ConsumerGroupMetadataValue, 0, range(1)),
    Kind(5, ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue, 0, range(1)),
    Kind(6, ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue, 0, range(1)),
    Kind(7, ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue, 0, range(1)),
    Kind(8, ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue, 0, range(1)),
    Kind(16, ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue, 0, range(1)),
)
_BY_NUMBER: Final[Mapping[int, Kind]] = {kind.number: kind for kind in KINDS}
_BY_KEY: Final[Mapping[type, Kind]] = {kind.key: kind for kind in KINDS}
_NUMBER: Final = Struct(">h")
_Encoder = Callable[[Any], list[Any]]


def encode_record(record: StateRecord) -> tuple[bytes, bytes | None]:
    """A change of the state as the key and value of a record."""
    key, value = record
    if type(key) is OffsetCommitKey:
        assert value is None or type(value) is CommittedOffset
        return encode_offset_key(key), None if value is None else encode_offset(value)
    key_head, encode_key, value_head, encode_value = _encoders(type(key))  # type: ignore[arg-type]
    return key_head + encode_key(key)[0], None if value is None else value_head + encode_value(value)[0]


@cache
def _encoders(key: type) -> tuple[bytes, _Encoder, bytes, _Encoder]:
    """The beginning and the encoder of keys and values of a kind. None of them has record batches: each is one
    chunk."""
    kind = _BY_KEY[key]
    return (
        _NUMBER.pack(kind.number),
        encoder(kind.key, kind.number),
        _NUMBER.pack(kind.written_version),
        encoder(kind.value, kind.written_version),
    )


def decode_record(key: bytes, value: bytes | None) -> StateRecord | None:
    """The change that a record stands for; None for a kind that is not known here.

    Raises:
        CorruptData: the bytes cannot be decoded.
    """
    if len(key) < _NUMBER.size:
        raise CorruptData("a key of the offsets' topic is too short")
    number = key[0] << 8 | key[1]
    try:
        if number <= OFFSET_KINDS_MAX:
            return StateRecord(decode_offset_key(key), None if value is None else decode_offset(value))
        kind = _BY_NUMBER.get(number)
        if kind is None:
            return None
        found: object = decode(kind.key, number, key[_NUMBER.size :])
        return StateRecord(found, None if value is None else _decode_value(kind, value))
    except ProtocolError as error:
        raise CorruptData(f"a record of kind {number} makes no sense: {error}") from error


def _decode_value(kind: Kind, value: bytes) -> object:
    if len(value) < _NUMBER.size:
        raise CorruptData("a value of the offsets' topic is too short")
    (version,) = _NUMBER.unpack_from(value)
    if version not in kind.versions:
        raise CorruptData(f"{kind.value.__name__} has no version {version} here")
    found: object = decode(kind.value, version, value[_NUMBER.size :])
    return found
