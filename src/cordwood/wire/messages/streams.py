"""Streams groups: the broker assigns the tasks of a Kafka Streams topology."""

from cordwood.wire.types import OPERATIONS_UNKNOWN, i8, i16, i32, i64, message, u16, v


@message
class StreamsKeyValue:
    """A key and its value."""

    key: str = ""
    value: str = ""


@message
class StreamsTopicInfo:
    """An internal topic that a topology needs. No partitions: as many as its sources have."""

    name: str = ""
    partitions: i32 = 0
    replication_factor: i16 = 0
    topic_configs: list[StreamsKeyValue] = v()


@message
class StreamsGroupHeartbeatRequestCopartitionGroup:
    source_topics: list[i16] = v()
    source_topic_regex: list[i16] = v()
    repartition_source_topics: list[i16] = v()


@message
class StreamsGroupHeartbeatRequestSubtopology:
    subtopology_id: str = ""
    source_topics: list[str] = v()
    source_topic_regex: list[str] = v()
    state_changelog_topics: list[StreamsTopicInfo] = v()
    repartition_sink_topics: list[str] = v()
    repartition_source_topics: list[StreamsTopicInfo] = v()
    copartition_groups: list[StreamsGroupHeartbeatRequestCopartitionGroup] = v()


@message
class StreamsGroupHeartbeatRequestTopology:
    epoch: i32 = 0
    subtopologies: list[StreamsGroupHeartbeatRequestSubtopology] = v()


@message
class StreamsTaskIds:
    """Tasks: partitions of a subtopology."""

    subtopology_id: str = ""
    partitions: list[i32] = v()


@message
class StreamsEndpoint:
    """Where an application answers interactive queries."""

    host: str = ""
    port: u16 = 0


@message
class StreamsTaskOffset:
    """How far a task has come."""

    subtopology_id: str = ""
    partition: i32 = 0
    offset: i64 = 0


@message(key=88, versions="0", flexible="0+")
class StreamsGroupHeartbeatRequest:
    """Join, stay in, or leave a streams group; the first heartbeat brings the topology, later ones what has changed."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: i32 = 0
    endpoint_information_epoch: i32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: i32 = -1
    topology: StreamsGroupHeartbeatRequestTopology | None = None
    active_tasks: list[StreamsTaskIds] | None = None
    standby_tasks: list[StreamsTaskIds] | None = None
    warmup_tasks: list[StreamsTaskIds] | None = None
    process_id: str | None = None
    user_endpoint: StreamsEndpoint | None = None
    client_tags: list[StreamsKeyValue] | None = None
    task_offsets: list[StreamsTaskOffset] | None = None
    task_end_offsets: list[StreamsTaskOffset] | None = None
    shutdown_application: bool = False


@message
class StreamsGroupHeartbeatResponseStatus:
    status_code: i8 = 0
    status_detail: str = ""


@message
class StreamsGroupHeartbeatResponseTopic:
    topic: str = ""
    partitions: list[i32] = v()


@message
class StreamsGroupHeartbeatResponseEndpointPartitions:
    user_endpoint: StreamsEndpoint = v()
    active_partitions: list[StreamsGroupHeartbeatResponseTopic] = v()
    standby_partitions: list[StreamsGroupHeartbeatResponseTopic] = v()


@message(key=88, versions="0", flexible="0+")
class StreamsGroupHeartbeatResponse:
    """The tasks to run, and what is wrong with the topology or the group, if anything."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: i32 = 0
    heartbeat_interval_ms: i32 = 0
    acceptable_recovery_lag: i32 = 0
    task_offset_interval_ms: i32 = 0
    status: list[StreamsGroupHeartbeatResponseStatus] | None = v(default=[])
    active_tasks: list[StreamsTaskIds] | None = None
    standby_tasks: list[StreamsTaskIds] | None = None
    warmup_tasks: list[StreamsTaskIds] | None = None
    endpoint_information_epoch: i32 = 0
    partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponseEndpointPartitions] | None = None


@message(key=89, versions="0", flexible="0+")
class StreamsGroupDescribeRequest:
    """Ask for streams groups in full."""

    group_ids: list[str] = v()
    include_authorized_operations: bool = False


@message
class StreamsGroupDescribeResponseSubtopology:
    subtopology_id: str = ""
    source_topics: list[str] = v()
    repartition_sink_topics: list[str] = v()
    state_changelog_topics: list[StreamsTopicInfo] = v()
    repartition_source_topics: list[StreamsTopicInfo] = v()


@message
class StreamsGroupDescribeResponseTopology:
    epoch: i32 = 0
    subtopologies: list[StreamsGroupDescribeResponseSubtopology] | None = None


@message
class StreamsGroupDescribeResponseAssignment:
    active_tasks: list[StreamsTaskIds] = v()
    standby_tasks: list[StreamsTaskIds] = v()
    warmup_tasks: list[StreamsTaskIds] = v()


@message
class StreamsGroupDescribeResponseMember:
    member_id: str = ""
    member_epoch: i32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: i32 = 0
    process_id: str = ""
    user_endpoint: StreamsEndpoint | None = None
    client_tags: list[StreamsKeyValue] = v()
    task_offsets: list[StreamsTaskOffset] = v()
    task_end_offsets: list[StreamsTaskOffset] = v()
    assignment: StreamsGroupDescribeResponseAssignment = v()
    target_assignment: StreamsGroupDescribeResponseAssignment = v()
    is_classic: bool = False


@message
class StreamsGroupDescribeResponseGroup:
    error_code: i16 = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: i32 = 0
    assignment_epoch: i32 = 0
    topology: StreamsGroupDescribeResponseTopology | None = None
    members: list[StreamsGroupDescribeResponseMember] = v()
    authorized_operations: i32 = OPERATIONS_UNKNOWN


@message(key=89, versions="0", flexible="0+")
class StreamsGroupDescribeResponse:
    """The streams groups with their topologies, members and tasks."""

    throttle_time_ms: i32 = 0
    groups: list[StreamsGroupDescribeResponseGroup] = v()
