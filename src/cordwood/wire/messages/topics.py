"""Topics and where their replicas are: creation, deletion, growth, elections, moves, log directories."""

from uuid import UUID

from cordwood.wire.types import i8, i16, i32, i64, message, v


@message
class CreateTopicsRequestAssignment:
    """The brokers that are to hold a partition, the preferred leader first."""

    partition_index: i32 = 0
    broker_ids: list[i32] = v()


@message
class CreateTopicsRequestConfig:
    """A setting of the new topic."""

    name: str = ""
    value: str | None = None


@message
class CreateTopicsRequestTopic:
    """A topic with a number of partitions and replicas (-1: the broker's default), or with a full assignment."""

    name: str = ""
    num_partitions: i32 = 0  # -1: the broker's default
    replication_factor: i16 = 0  # -1: the broker's default
    assignments: list[CreateTopicsRequestAssignment] = v()
    configs: list[CreateTopicsRequestConfig] = v()


@message(key=19, versions="2-7", flexible="5+")
class CreateTopicsRequest:
    """Create topics, or (`validate_only`) say what the result would be."""

    topics: list[CreateTopicsRequestTopic] = v()
    timeout_ms: i32 = 60000
    validate_only: bool = False


@message
class CreateTopicsResponseConfig:
    """A setting of the new topic, and where it comes from."""

    name: str = ""
    value: str | None = None
    read_only: bool = False
    config_source: i8 = -1
    is_sensitive: bool = False


@message
class CreateTopicsResponseTopic:
    name: str = ""
    topic_id: UUID = v("7+")
    error_code: i16 = 0
    error_message: str | None = None
    topic_config_error_code: i16 = v("5+", tag=0)  # why there are no configs, if they may not be seen
    num_partitions: i32 = v("5+", default=-1)
    replication_factor: i16 = v("5+", default=-1)
    configs: list[CreateTopicsResponseConfig] | None = v("5+", default=[])


@message(key=19, versions="2-7", flexible="5+")
class CreateTopicsResponse:
    """What became of each topic, and with which settings."""

    throttle_time_ms: i32 = 0
    topics: list[CreateTopicsResponseTopic] = v()


@message
class DeleteTopicsRequestTopic:
    name: str | None = None
    topic_id: UUID = v()


@message(key=20, versions="1-6", flexible="4+")
class DeleteTopicsRequest:
    """Delete topics by name or, from version 6, by id."""

    topics: list[DeleteTopicsRequestTopic] = v("6+")
    topic_names: list[str] = v("1-5")
    timeout_ms: i32 = 0


@message
class DeleteTopicsResponseTopic:
    name: str | None = v(default="", null="6+")
    topic_id: UUID = v("6+")
    error_code: i16 = 0
    error_message: str | None = v("5+")


@message(key=20, versions="1-6", flexible="4+")
class DeleteTopicsResponse:
    """What became of each topic."""

    throttle_time_ms: i32 = 0
    responses: list[DeleteTopicsResponseTopic] = v()


@message
class CreatePartitionsRequestAssignment:
    broker_ids: list[i32] = v()


@message
class CreatePartitionsRequestTopic:
    """`count` is the new total; assignments, if given, are those of the new partitions."""

    name: str = ""
    count: i32 = 0
    assignments: list[CreatePartitionsRequestAssignment] | None = v(default=[])


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    """Raise the number of partitions of topics."""

    topics: list[CreatePartitionsRequestTopic] = v()
    timeout_ms: i32 = 0
    validate_only: bool = False


@message
class CreatePartitionsResponseTopic:
    name: str = ""
    error_code: i16 = 0
    error_message: str | None = None


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """What became of each topic."""

    throttle_time_ms: i32 = 0
    results: list[CreatePartitionsResponseTopic] = v()


@message
class ElectLeadersRequestTopic:
    topic: str = ""
    partitions: list[i32] = v()


@message(key=43, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    """Elect leaders: the preferred replica (type 0), or any replica at the price of lost records (1)."""

    election_type: i8 = v("1+")
    topic_partitions: list[ElectLeadersRequestTopic] | None = v(default=[])
    timeout_ms: i32 = 60000


@message
class ElectLeadersResponsePartition:
    partition_id: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None


@message
class ElectLeadersResponseTopic:
    topic: str = ""
    partition_result: list[ElectLeadersResponsePartition] = v()


@message(key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    """What became of each election."""

    throttle_time_ms: i32 = 0
    error_code: i16 = v("1+")
    replica_election_results: list[ElectLeadersResponseTopic] = v()


@message
class AlterPartitionReassignmentsRequestPartition:
    partition_index: i32 = 0
    replicas: list[i32] | None = None


@message
class AlterPartitionReassignmentsRequestTopic:
    name: str = ""
    partitions: list[AlterPartitionReassignmentsRequestPartition] = v()


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest:
    """Move partitions to other brokers; no list of replicas cancels a move."""

    timeout_ms: i32 = 60000
    allow_replication_factor_change: bool = v("1+", default=True)
    topics: list[AlterPartitionReassignmentsRequestTopic] = v()


@message
class AlterPartitionReassignmentsResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None


@message
class AlterPartitionReassignmentsResponseTopic:
    name: str = ""
    partitions: list[AlterPartitionReassignmentsResponsePartition] = v()


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    """Whether each move was begun."""

    throttle_time_ms: i32 = 0
    allow_replication_factor_change: bool = v("1+", default=True)
    error_code: i16 = 0
    error_message: str | None = None
    responses: list[AlterPartitionReassignmentsResponseTopic] = v()


@message
class ListPartitionReassignmentsRequestTopic:
    name: str = ""
    partition_indexes: list[i32] = v()


@message(key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest:
    """Ask for the moves under way, of some partitions or of all."""

    timeout_ms: i32 = 60000
    topics: list[ListPartitionReassignmentsRequestTopic] | None = None


@message
class ListPartitionReassignmentsResponsePartition:
    partition_index: i32 = 0
    replicas: list[i32] = v()
    adding_replicas: list[i32] = v()
    removing_replicas: list[i32] = v()


@message
class ListPartitionReassignmentsResponseTopic:
    name: str = ""
    partitions: list[ListPartitionReassignmentsResponsePartition] = v()


@message(key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    """The moves under way: all replicas, those to come, those to go."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    topics: list[ListPartitionReassignmentsResponseTopic] = v()


@message
class AlterReplicaLogDirsRequestTopic:
    name: str = ""
    partitions: list[i32] = v()


@message
class AlterReplicaLogDirsRequestDir:
    path: str = ""
    topics: list[AlterReplicaLogDirsRequestTopic] = v()


@message(key=34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    """Move replicas between the log directories of one broker."""

    dirs: list[AlterReplicaLogDirsRequestDir] = v()


@message
class AlterReplicaLogDirsResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0


@message
class AlterReplicaLogDirsResponseTopic:
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirsResponsePartition] = v()


@message(key=34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    """Whether each move was begun."""

    throttle_time_ms: i32 = 0
    results: list[AlterReplicaLogDirsResponseTopic] = v()


@message
class DescribeLogDirsRequestTopic:
    topic: str = ""
    partitions: list[i32] = v()


@message(key=35, versions="1-5", flexible="2+")
class DescribeLogDirsRequest:
    """Ask how much the replicas of a broker take in its log directories; no list means all of them."""

    topics: list[DescribeLogDirsRequestTopic] | None = v(default=[])


@message
class DescribeLogDirsResponsePartition:
    """`is_future_key` marks a replica that is on its way to replace the one in another directory."""

    partition_index: i32 = 0
    partition_size: i64 = 0  # bytes
    offset_lag: i64 = 0  # how far it is behind the high watermark
    is_future_key: bool = False


@message
class DescribeLogDirsResponseTopic:
    name: str = ""
    partitions: list[DescribeLogDirsResponsePartition] = v()


@message
class DescribeLogDirsResponseDir:
    error_code: i16 = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsResponseTopic] = v()
    total_bytes: i64 = v("4+", default=-1)
    usable_bytes: i64 = v("4+", default=-1)
    is_cordoned: bool = v("5+")


@message(key=35, versions="1-5", flexible="2+")
class DescribeLogDirsResponse:
    """The log directories with the sizes of the replicas in them."""

    throttle_time_ms: i32 = 0
    error_code: i16 = v("3+")
    results: list[DescribeLogDirsResponseDir] = v()
