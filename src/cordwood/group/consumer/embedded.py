"""What consumers of the classic protocol send inside JoinGroup and SyncGroup: subscriptions and assignments by name.

Two bytes give the version. A version later than the newest known here is read as that one, as every consumer does: new
versions only add fields at the end.
"""

from collections.abc import Collection, Iterable, Mapping
from struct import Struct
from uuid import UUID

from cordwood.cluster.image import MetadataImage
from cordwood.errors import ProtocolError
from cordwood.ids import TopicId, TopicName
from cordwood.wire import decoder, encode
from cordwood.wire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentAssignedPartition,
    ConsumerProtocolSubscription,
)

NEWEST_VERSION = 3
_VERSION = Struct(">h")


def version_of(data: bytes) -> int:
    """Raises ``ProtocolError`` if there is none."""
    if len(data) < _VERSION.size:
        raise ProtocolError("there is no version in what a consumer says")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise ProtocolError(f"there is no version {version} of what a consumer says")
    return int(min(version, NEWEST_VERSION))


def spoken_version(protocols: Iterable[bytes]) -> int:
    """The version to use for a member with these protocols; the oldest if its metadata makes no sense.

    A member may send different metadata with each of them, and only that of the protocol its group chose has been
    checked.
    """
    try:
        return version_of(next(iter(protocols), b""))
    except ProtocolError:
        return 0


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Raises ``ProtocolError``."""
    subscription, _ = decoder(ConsumerProtocolSubscription, version_of(data))(memoryview(data), _VERSION.size)
    return subscription


def decode_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Raises ``ProtocolError``. No bytes at all are an assignment of nothing."""
    if not data:
        return ConsumerProtocolAssignment()
    assignment, _ = decoder(ConsumerProtocolAssignment, version_of(data))(memoryview(data), _VERSION.size)
    return assignment


def encode_assignment(partitions: Mapping[UUID, Collection[int]], image: MetadataImage, version: int) -> bytes:
    """Topics that no longer exist have no name, and are left out."""
    names = sorted(
        (image.topic_names[TopicId(each)], each) for each in partitions if TopicId(each) in image.topic_names
    )
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentAssignedPartition(topic=name, partitions=sorted(partitions[each]))
            for name, each in names
        ]
    )
    return _VERSION.pack(version) + encode(assignment, version)


def by_id(named: Mapping[str, Collection[int]], image: MetadataImage) -> dict[UUID, Collection[int]]:
    """The partitions of existing topics, by topic id."""
    topics = ((image.topics.get(TopicName(name)), partitions) for name, partitions in named.items())
    return {topic.id: partitions for topic, partitions in topics if topic is not None and partitions}
