"""Share groups: a topic read as a queue, with the state of every delivery kept by a coordinator."""

from uuid import UUID

from cordwood.wire.types import OPERATIONS_UNKNOWN, Records, i8, i16, i32, i64, message, v

from .produce_fetch import NodeEndpoint


@message(key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatRequest:
    """Join, stay in (epoch above 0), or leave (-1) a share group; a field that has not changed is null."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: i32 = 0
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None


@message
class ShareGroupHeartbeatResponseTopic:
    topic_id: UUID = v()
    partitions: list[i32] = v()


@message
class ShareGroupHeartbeatResponseAssignment:
    topic_partitions: list[ShareGroupHeartbeatResponseTopic] = v()


@message(key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse:
    """The member's epoch and, if it has changed, its assignment."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: i32 = 0
    heartbeat_interval_ms: i32 = 0
    assignment: ShareGroupHeartbeatResponseAssignment | None = None


@message(key=77, versions="1", flexible="0+")
class ShareGroupDescribeRequest:
    """Ask for share groups in full."""

    group_ids: list[str] = v()
    include_authorized_operations: bool = False


@message
class ShareGroupDescribeResponseTopic:
    topic_id: UUID = v()
    topic_name: str = ""
    partitions: list[i32] = v()


@message
class ShareGroupDescribeResponseAssignment:
    topic_partitions: list[ShareGroupDescribeResponseTopic] = v()


@message
class ShareGroupDescribeResponseMember:
    member_id: str = ""
    rack_id: str | None = None
    member_epoch: i32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = v()
    assignment: ShareGroupDescribeResponseAssignment = v()


@message
class ShareGroupDescribeResponseGroup:
    error_code: i16 = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: i32 = 0
    assignment_epoch: i32 = 0
    assignor_name: str = ""
    members: list[ShareGroupDescribeResponseMember] = v()
    authorized_operations: i32 = OPERATIONS_UNKNOWN


@message(key=77, versions="1", flexible="0+")
class ShareGroupDescribeResponse:
    """The share groups with their members and assignments."""

    throttle_time_ms: i32 = 0
    groups: list[ShareGroupDescribeResponseGroup] = v()


@message
class AcknowledgementBatch:
    """Offsets and what became of them: 0 gap, 1 accept, 2 release, 3 reject, 4 renew; one type for all, or one each."""

    first_offset: i64 = 0
    last_offset: i64 = 0
    acknowledge_types: list[i8] = v()


@message
class ShareFetchRequestPartition:
    partition_index: i32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = v()


@message
class ShareFetchRequestTopic:
    topic_id: UUID = v()
    partitions: list[ShareFetchRequestPartition] = v()


@message
class ShareFetchRequestForgottenTopic:
    topic_id: UUID = v()
    partitions: list[i32] = v()


@message(key=78, versions="1-2", flexible="0+")
class ShareFetchRequest:
    """Acquire records for a while, and acknowledge earlier ones on the way."""

    group_id: str | None = None
    member_id: str | None = None
    share_session_epoch: i32 = 0  # 0 opens a session, -1 closes it
    max_wait_ms: i32 = 0
    min_bytes: i32 = 0
    max_bytes: i32 = 2147483647
    max_records: i32 = 0
    batch_size: i32 = 0
    share_acquire_mode: i8 = v("2+")  # 0 whole batches, 1 no more than max_records
    is_renew_ack: bool = v("2+")
    topics: list[ShareFetchRequestTopic] = v()
    forgotten_topics_data: list[ShareFetchRequestForgottenTopic] = v()


@message
class ShareLeaderIdAndEpoch:
    """Who leads a partition, when it is not the broker asked."""

    leader_id: i32 = 0
    leader_epoch: i32 = 0


@message
class ShareFetchResponseAcquiredRecords:
    """A range of offsets that the member holds, and how often they were delivered."""

    first_offset: i64 = 0
    last_offset: i64 = 0
    delivery_count: i16 = 0


@message
class ShareFetchResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    acknowledge_error_code: i16 = 0
    acknowledge_error_message: str | None = None
    current_leader: ShareLeaderIdAndEpoch = v()
    records: Records = b""
    acquired_records: list[ShareFetchResponseAcquiredRecords] = v()


@message
class ShareFetchResponseTopic:
    topic_id: UUID = v()
    partitions: list[ShareFetchResponsePartition] = v()


@message(key=78, versions="1-2", flexible="0+")
class ShareFetchResponse:
    """Records, and which of them this member has acquired."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: i32 = 0
    responses: list[ShareFetchResponseTopic] = v()
    node_endpoints: list[NodeEndpoint] = v()


@message
class ShareAcknowledgeRequestPartition:
    partition_index: i32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = v()


@message
class ShareAcknowledgeRequestTopic:
    topic_id: UUID = v()
    partitions: list[ShareAcknowledgeRequestPartition] = v()


@message(key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeRequest:
    """Acknowledge records without fetching more."""

    group_id: str | None = None
    member_id: str | None = None
    share_session_epoch: i32 = 0
    is_renew_ack: bool = v("2+")
    topics: list[ShareAcknowledgeRequestTopic] = v()


@message
class ShareAcknowledgeResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    current_leader: ShareLeaderIdAndEpoch = v()


@message
class ShareAcknowledgeResponseTopic:
    topic_id: UUID = v()
    partitions: list[ShareAcknowledgeResponsePartition] = v()


@message(key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse:
    """What became of the acknowledgements."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: i32 = v("2+")
    responses: list[ShareAcknowledgeResponseTopic] = v()
    node_endpoints: list[NodeEndpoint] = v()


@message
class InitializeShareGroupStateRequestPartition:
    partition: i32 = 0
    state_epoch: i32 = 0
    start_offset: i64 = 0


@message
class InitializeShareGroupStateRequestTopic:
    topic_id: UUID = v()
    partitions: list[InitializeShareGroupStateRequestPartition] = v()


@message(key=83, versions="0", flexible="0+")
class InitializeShareGroupStateRequest:
    """A group coordinator sets where share partitions begin."""

    group_id: str = ""
    topics: list[InitializeShareGroupStateRequestTopic] = v()


@message
class InitializeShareGroupStateResponsePartition:
    partition: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None


@message
class InitializeShareGroupStateResponseTopic:
    topic_id: UUID = v()
    partitions: list[InitializeShareGroupStateResponsePartition] = v()


@message(key=83, versions="0", flexible="0+")
class InitializeShareGroupStateResponse:
    """What became of each partition."""

    results: list[InitializeShareGroupStateResponseTopic] = v()


@message
class ReadShareGroupStateRequestPartition:
    partition: i32 = 0
    leader_epoch: i32 = 0


@message
class ReadShareGroupStateRequestTopic:
    topic_id: UUID = v()
    partitions: list[ReadShareGroupStateRequestPartition] = v()


@message(key=84, versions="0", flexible="0+")
class ReadShareGroupStateRequest:
    """The leader of share partitions loads their delivery state."""

    group_id: str = ""
    topics: list[ReadShareGroupStateRequestTopic] = v()


@message
class ShareStateBatch:
    """A range of offsets in one delivery state."""

    first_offset: i64 = 0
    last_offset: i64 = 0
    delivery_state: i8 = 0  # 0 available, 2 acknowledged, 4 archived
    delivery_count: i16 = 0


@message
class ReadShareGroupStateResponsePartition:
    partition: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    state_epoch: i32 = 0
    start_offset: i64 = 0
    state_batches: list[ShareStateBatch] = v()


@message
class ReadShareGroupStateResponseTopic:
    topic_id: UUID = v()
    partitions: list[ReadShareGroupStateResponsePartition] = v()


@message(key=84, versions="0", flexible="0+")
class ReadShareGroupStateResponse:
    """The delivery states."""

    results: list[ReadShareGroupStateResponseTopic] = v()


@message
class WriteShareGroupStateRequestPartition:
    partition: i32 = 0
    state_epoch: i32 = 0
    leader_epoch: i32 = 0
    start_offset: i64 = 0
    delivery_complete_count: i32 = v("1+", default=-1)
    state_batches: list[ShareStateBatch] = v()


@message
class WriteShareGroupStateRequestTopic:
    topic_id: UUID = v()
    partitions: list[WriteShareGroupStateRequestPartition] = v()


@message(key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateRequest:
    """The leader of share partitions stores changes of their delivery state."""

    group_id: str = ""
    topics: list[WriteShareGroupStateRequestTopic] = v()


@message
class WriteShareGroupStateResponsePartition:
    partition: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None


@message
class WriteShareGroupStateResponseTopic:
    topic_id: UUID = v()
    partitions: list[WriteShareGroupStateResponsePartition] = v()


@message(key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse:
    """What became of each partition."""

    results: list[WriteShareGroupStateResponseTopic] = v()


@message
class DeleteShareGroupStateRequestPartition:
    partition: i32 = 0


@message
class DeleteShareGroupStateRequestTopic:
    topic_id: UUID = v()
    partitions: list[DeleteShareGroupStateRequestPartition] = v()


@message(key=86, versions="0", flexible="0+")
class DeleteShareGroupStateRequest:
    """Forget the delivery state of share partitions."""

    group_id: str = ""
    topics: list[DeleteShareGroupStateRequestTopic] = v()


@message
class DeleteShareGroupStateResponsePartition:
    partition: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None


@message
class DeleteShareGroupStateResponseTopic:
    topic_id: UUID = v()
    partitions: list[DeleteShareGroupStateResponsePartition] = v()


@message(key=86, versions="0", flexible="0+")
class DeleteShareGroupStateResponse:
    """What became of each partition."""

    results: list[DeleteShareGroupStateResponseTopic] = v()


@message
class ReadShareGroupStateSummaryRequestPartition:
    partition: i32 = 0
    leader_epoch: i32 = 0


@message
class ReadShareGroupStateSummaryRequestTopic:
    topic_id: UUID = v()
    partitions: list[ReadShareGroupStateSummaryRequestPartition] = v()


@message(key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest:
    """Ask only where share partitions begin."""

    group_id: str = ""
    topics: list[ReadShareGroupStateSummaryRequestTopic] = v()


@message
class ReadShareGroupStateSummaryResponsePartition:
    partition: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    state_epoch: i32 = 0
    leader_epoch: i32 = 0
    start_offset: i64 = 0
    delivery_complete_count: i32 = v("1+", default=-1)


@message
class ReadShareGroupStateSummaryResponseTopic:
    topic_id: UUID = v()
    partitions: list[ReadShareGroupStateSummaryResponsePartition] = v()


@message(key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse:
    """Where share partitions begin."""

    results: list[ReadShareGroupStateSummaryResponseTopic] = v()


@message
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: str = ""
    partitions: list[i32] = v()


@message
class DescribeShareGroupOffsetsRequestGroup:
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = v(default=[])


@message(key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest:
    """Ask for the positions of share groups; no list of topics means all of them."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = v()


@message
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: i32 = 0
    start_offset: i64 = 0
    leader_epoch: i32 = 0
    lag: i64 = v("1+", default=-1)
    error_code: i16 = 0
    error_message: str | None = None


@message
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: UUID = v()
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = v()


@message
class DescribeShareGroupOffsetsResponseGroup:
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = v()
    error_code: i16 = 0
    error_message: str | None = None


@message(key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse:
    """The positions of share groups, and how far they lag."""

    throttle_time_ms: i32 = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = v()


@message
class AlterShareGroupOffsetsRequestPartition:
    partition_index: i32 = 0
    start_offset: i64 = 0


@message
class AlterShareGroupOffsetsRequestTopic:
    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = v()


@message(key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest:
    """Set where an empty share group begins."""

    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = v()


@message
class AlterShareGroupOffsetsResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None


@message
class AlterShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: UUID = v()
    partitions: list[AlterShareGroupOffsetsResponsePartition] = v()


@message(key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse:
    """What became of each partition."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = v()


@message
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str = ""


@message(key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest:
    """Forget a share group's topics."""

    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = v()


@message
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: UUID = v()
    error_code: i16 = 0
    error_message: str | None = None


@message(key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse:
    """What became of each topic."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = v()
