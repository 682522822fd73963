"""What consumers of the classic protocol tell each other through JoinGroup and SyncGroup; opaque to the broker."""

from cordwood.wire.types import i32, message, v


@message
class ConsumerProtocolSubscriptionOwnedPartition:
    topic: str = ""
    partitions: list[i32] = v()


@message(versions="0-3")
class ConsumerProtocolSubscription:
    """What a consumer says when it joins: the topics it wants, the partitions it has."""

    topics: list[str] = v()
    user_data: bytes | None = None
    owned_partitions: list[ConsumerProtocolSubscriptionOwnedPartition] = v("1+")
    generation_id: i32 = v("2+", default=-1)
    rack_id: str | None = v("3+")


@message
class ConsumerProtocolAssignmentAssignedPartition:
    topic: str = ""
    partitions: list[i32] = v()


@message(versions="0-3")
class ConsumerProtocolAssignment:
    """What the leader assigns to a consumer."""

    assigned_partitions: list[ConsumerProtocolAssignmentAssignedPartition] = v()
    user_data: bytes | None = None
