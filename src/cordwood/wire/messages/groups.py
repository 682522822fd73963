"""Consumer groups of both protocols, and their offsets."""

from uuid import UUID

from cordwood.wire.types import OPERATIONS_UNKNOWN, i8, i16, i32, i64, message, v


@message
class JoinGroupRequestProtocol:
    """One way to assign, with what this member has to say about it."""

    name: str = ""
    metadata: bytes = b""


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupRequest:
    """Enter a group of the classic protocol, and offer the ways in which this member can be assigned partitions."""

    group_id: str = ""
    session_timeout_ms: i32 = 0
    rebalance_timeout_ms: i32 = v("1+", default=-1)
    member_id: str = ""  # empty at first: the coordinator gives one
    group_instance_id: str | None = v("5+")  # set by static members (KIP-345)
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = v()
    reason: str | None = v("8+")


@message
class JoinGroupResponseMember:
    member_id: str = ""
    group_instance_id: str | None = v("5+")
    metadata: bytes = b""


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupResponse:
    """The generation that begins. The leader is given all members, and assigns."""

    throttle_time_ms: i32 = v("2+")
    error_code: i16 = 0
    generation_id: i32 = -1
    protocol_type: str | None = v("7+")
    protocol_name: str | None = v(default="", null="7+")
    leader: str = ""
    skip_assignment: bool = v("9+")  # the leader has come back, and must not compute a new assignment
    member_id: str = ""
    members: list[JoinGroupResponseMember] = v()  # for the leader only


@message
class SyncGroupRequestAssignment:
    member_id: str = ""
    assignment: bytes = b""


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupRequest:
    """The leader sends its assignments; the others ask for theirs."""

    group_id: str = ""
    generation_id: i32 = 0
    member_id: str = ""
    group_instance_id: str | None = v("3+")
    protocol_type: str | None = v("5+")
    protocol_name: str | None = v("5+")
    assignments: list[SyncGroupRequestAssignment] = v()


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupResponse:
    """What this member is assigned."""

    throttle_time_ms: i32 = v("1+")
    error_code: i16 = 0
    protocol_type: str | None = v("5+")
    protocol_name: str | None = v("5+")
    assignment: bytes = b""


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatRequest:
    """Still here."""

    group_id: str = ""
    generation_id: i32 = 0
    member_id: str = ""
    group_instance_id: str | None = v("3+")


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatResponse:
    """Go on, or (REBALANCE_IN_PROGRESS) join again."""

    throttle_time_ms: i32 = v("1+")
    error_code: i16 = 0


@message
class LeaveGroupRequestMember:
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = v("5+")


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    """Members leave; from version 3 on, several at once, static ones by instance id."""

    group_id: str = ""
    member_id: str = v("0-2")
    members: list[LeaveGroupRequestMember] = v("3+")


@message
class LeaveGroupResponseMember:
    member_id: str = ""
    group_instance_id: str | None = None
    error_code: i16 = 0


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    """What became of each member."""

    throttle_time_ms: i32 = v("1+")
    error_code: i16 = 0
    members: list[LeaveGroupResponseMember] = v("3+")


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    """Ask for groups of the classic protocol in full."""

    groups: list[str] = v()
    include_authorized_operations: bool = v("3+")


@message
class DescribeGroupsResponseMember:
    member_id: str = ""
    group_instance_id: str | None = v("4+")
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


@message
class DescribeGroupsResponseGroup:
    error_code: i16 = 0
    error_message: str | None = v("6+")
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribeGroupsResponseMember] = v()
    authorized_operations: i32 = v("3+", default=OPERATIONS_UNKNOWN)


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    """The groups with their members, subscriptions and assignments."""

    throttle_time_ms: i32 = v("1+")
    groups: list[DescribeGroupsResponseGroup] = v()


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsRequest:
    """Ask for the groups of this coordinator, by state and type if wanted."""

    states_filter: list[str] = v("4+")
    types_filter: list[str] = v("5+")


@message
class ListGroupsResponseGroup:
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = v("4+")
    group_type: str = v("5+")  # classic, consumer, share or streams


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsResponse:
    """The groups of this coordinator."""

    throttle_time_ms: i32 = v("1+")
    error_code: i16 = 0
    groups: list[ListGroupsResponseGroup] = v()


@message(key=42, versions="0-2", flexible="2+")
class DeleteGroupsRequest:
    """Delete groups without members, with their offsets."""

    groups_names: list[str] = v()


@message
class DeleteGroupsResponseGroup:
    group_id: str = ""
    error_code: i16 = 0


@message(key=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    """What became of each group."""

    throttle_time_ms: i32 = 0
    results: list[DeleteGroupsResponseGroup] = v()


@message
class ConsumerGroupHeartbeatRequestTopic:
    """Partitions of a topic that the member owns."""

    topic_id: UUID = v()
    partitions: list[i32] = v()


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest:
    """Join (epoch 0), stay in, leave (-1), leave for a while (-2). Null is "as before". The broker assigns."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: i32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: i32 = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = v("1+")
    server_assignor: str | None = None
    topic_partitions: list[ConsumerGroupHeartbeatRequestTopic] | None = None


@message
class ConsumerGroupHeartbeatResponseTopic:
    topic_id: UUID = v()
    partitions: list[i32] = v()


@message
class ConsumerGroupHeartbeatResponseAssignment:
    topic_partitions: list[ConsumerGroupHeartbeatResponseTopic] = v()


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    """The member's epoch and, if it has changed, its assignment."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: i32 = 0
    heartbeat_interval_ms: i32 = 0
    assignment: ConsumerGroupHeartbeatResponseAssignment | None = None


@message(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
    """Ask for groups of the new protocol in full."""

    group_ids: list[str] = v()
    include_authorized_operations: bool = False


@message
class ConsumerGroupDescribeResponseTopic:
    topic_id: UUID = v()
    topic_name: str = ""
    partitions: list[i32] = v()


@message
class ConsumerGroupDescribeResponseAssignment:
    topic_partitions: list[ConsumerGroupDescribeResponseTopic] = v()


@message
class ConsumerGroupDescribeResponseMember:
    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: i32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = v()
    subscribed_topic_regex: str | None = None
    assignment: ConsumerGroupDescribeResponseAssignment = v()
    target_assignment: ConsumerGroupDescribeResponseAssignment = v()
    member_type: i8 = v("1+", default=-1)  # -1 unknown, 0 classic, 1 consumer


@message
class ConsumerGroupDescribeResponseGroup:
    error_code: i16 = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: i32 = 0
    assignment_epoch: i32 = 0
    assignor_name: str = ""
    members: list[ConsumerGroupDescribeResponseMember] = v()
    authorized_operations: i32 = OPERATIONS_UNKNOWN


@message(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    """The groups with their members, and each member's current and target assignment."""

    throttle_time_ms: i32 = 0
    groups: list[ConsumerGroupDescribeResponseGroup] = v()


@message
class OffsetCommitRequestPartition:
    partition_index: i32 = 0
    committed_offset: i64 = 0
    committed_leader_epoch: i32 = v("6+", default=-1)
    committed_metadata: str | None = None


@message
class OffsetCommitRequestTopic:
    name: str = v("2-9")
    topic_id: UUID = v("10+")
    partitions: list[OffsetCommitRequestPartition] = v()


@message(key=8, versions="2-10", flexible="8+")
class OffsetCommitRequest:
    """Store how far a group has read."""

    group_id: str = ""
    generation_id_or_member_epoch: i32 = -1  # -1 from outside of the group
    member_id: str = ""
    group_instance_id: str | None = v("7+")
    retention_time_ms: i64 = v("2-4", default=-1)
    topics: list[OffsetCommitRequestTopic] = v()


@message
class OffsetCommitResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0


@message
class OffsetCommitResponseTopic:
    name: str = v("2-9")
    topic_id: UUID = v("10+")
    partitions: list[OffsetCommitResponsePartition] = v()


@message(key=8, versions="2-10", flexible="8+")
class OffsetCommitResponse:
    """What became of each offset."""

    throttle_time_ms: i32 = v("3+")
    topics: list[OffsetCommitResponseTopic] = v()


@message
class OffsetFetchRequestTopic:
    name: str = ""
    partition_indexes: list[i32] = v()


@message
class OffsetFetchRequestGroupTopic:
    name: str = v("8-9")
    topic_id: UUID = v("10+")
    partition_indexes: list[i32] = v()


@message
class OffsetFetchRequestGroup:
    group_id: str = ""
    member_id: str | None = v("9+")
    member_epoch: i32 = v("9+", default=-1)
    topics: list[OffsetFetchRequestGroupTopic] | None = v(default=[])


@message(key=9, versions="1-10", flexible="6+")
class OffsetFetchRequest:
    """Ask how far groups have read; no list of topics means all of them."""

    group_id: str = v("1-7")
    topics: list[OffsetFetchRequestTopic] | None = v("1-7", default=[], null="2-7")
    groups: list[OffsetFetchRequestGroup] = v("8+")
    require_stable: bool = v("7+")  # wait for transactions that commit offsets


@message
class OffsetFetchResponsePartition:
    partition_index: i32 = 0
    committed_offset: i64 = 0
    committed_leader_epoch: i32 = v("5+", default=-1)
    metadata: str | None = None
    error_code: i16 = 0


@message
class OffsetFetchResponseTopic:
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = v()


@message
class OffsetFetchResponseGroupPartition:
    partition_index: i32 = 0
    committed_offset: i64 = 0
    committed_leader_epoch: i32 = -1
    metadata: str | None = None
    error_code: i16 = 0


@message
class OffsetFetchResponseGroupTopic:
    name: str = v("8-9")
    topic_id: UUID = v("10+")
    partitions: list[OffsetFetchResponseGroupPartition] = v()


@message
class OffsetFetchResponseGroup:
    group_id: str = ""
    topics: list[OffsetFetchResponseGroupTopic] = v()
    error_code: i16 = 0


@message(key=9, versions="1-10", flexible="6+")
class OffsetFetchResponse:
    """The offsets that groups have committed; -1 for none."""

    throttle_time_ms: i32 = v("3+")
    topics: list[OffsetFetchResponseTopic] = v("1-7")
    error_code: i16 = v("2-7")
    groups: list[OffsetFetchResponseGroup] = v("8+")


@message
class OffsetDeleteRequestPartition:
    partition_index: i32 = 0


@message
class OffsetDeleteRequestTopic:
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = v()


@message(key=47, versions="0")
class OffsetDeleteRequest:
    """Forget offsets of a group."""

    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = v()


@message
class OffsetDeleteResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0


@message
class OffsetDeleteResponseTopic:
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = v()


@message(key=47, versions="0")
class OffsetDeleteResponse:
    """What became of each offset."""

    error_code: i16 = 0
    throttle_time_ms: i32 = 0
    topics: list[OffsetDeleteResponseTopic] = v()
