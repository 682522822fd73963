"""What a client asks first: ApiVersions, Metadata, DescribeCluster, DescribeTopicPartitions, FindCoordinator."""

from uuid import UUID

from cordwood.wire.types import OPERATIONS_UNKNOWN, i8, i16, i32, i64, message, v


@message(key=18, versions="0-4", flexible="3+")
class ApiVersionsRequest:
    """Ask what the broker serves. The first request on most connections, so any version gets an answer."""

    client_software_name: str = v("3+")
    client_software_version: str = v("3+")


@message
class ApiVersionsResponseApi:
    """One API and the versions of it that are served."""

    api_key: i16 = 0
    min_version: i16 = 0
    max_version: i16 = 0


@message
class ApiVersionsResponseSupportedFeature:
    """A feature and the levels of it that this broker could run."""

    name: str = ""
    min_version: i16 = 0
    max_version: i16 = 0


@message
class ApiVersionsResponseFinalizedFeature:
    """A feature and the levels of it that the cluster runs."""

    name: str = ""
    max_version_level: i16 = 0
    min_version_level: i16 = 0


@message(key=18, versions="0-4", flexible="3+")
class ApiVersionsResponse:
    """The APIs with their versions, and the cluster's features. Always sent with the oldest response header."""

    error_code: i16 = 0
    api_keys: list[ApiVersionsResponseApi] = v()
    throttle_time_ms: i32 = v("1+")
    supported_features: list[ApiVersionsResponseSupportedFeature] = v("3+", tag=0)
    finalized_features_epoch: i64 = v("3+", default=-1, tag=1)
    finalized_features: list[ApiVersionsResponseFinalizedFeature] = v("3+", tag=2)
    zk_migration_ready: bool = v("3+", tag=3)


@message
class MetadataRequestTopic:
    """A topic by name or, from version 10, by id."""

    topic_id: UUID = v("10+")
    name: str | None = v(default="", null="10+")


@message(key=3, versions="0-13", flexible="9+")
class MetadataRequest:
    """Ask who leads what. No list (an empty one, in version 0) means every topic."""

    topics: list[MetadataRequestTopic] | None = v(default=[], null="1+")
    allow_auto_topic_creation: bool = v("4+", default=True)
    include_cluster_authorized_operations: bool = v("8-10")
    include_topic_authorized_operations: bool = v("8+")


@message
class MetadataResponseBroker:
    """A broker and the address at which this client reaches it."""

    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: str | None = v("1+")


@message
class MetadataResponsePartition:
    """A partition with its leader and its replicas."""

    error_code: i16 = 0
    partition_index: i32 = 0
    leader_id: i32 = 0
    leader_epoch: i32 = v("7+", default=-1)
    replica_nodes: list[i32] = v()
    isr_nodes: list[i32] = v()
    offline_replicas: list[i32] = v("5+")


@message
class MetadataResponseTopic:
    """A topic with its partitions. `topic_authorized_operations` is a bit field, unset unless asked for."""

    error_code: i16 = 0
    name: str | None = v(default="", null="12+")
    topic_id: UUID = v("10+")
    is_internal: bool = v("1+")
    partitions: list[MetadataResponsePartition] = v()
    topic_authorized_operations: i32 = v("8+", default=OPERATIONS_UNKNOWN)


@message(key=3, versions="0-13", flexible="9+")
class MetadataResponse:
    """The brokers, the controller, and the partitions of the topics asked for."""

    throttle_time_ms: i32 = v("3+")
    brokers: list[MetadataResponseBroker] = v()
    cluster_id: str | None = v("2+")
    controller_id: i32 = v("1+", default=-1)
    topics: list[MetadataResponseTopic] = v()
    cluster_authorized_operations: i32 = v("8-10", default=OPERATIONS_UNKNOWN)
    error_code: i16 = v("13+")


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterRequest:
    """Ask for the brokers (endpoint type 1) or the controllers (2) of the cluster."""

    include_cluster_authorized_operations: bool = False
    endpoint_type: i8 = v("1+", default=1)
    include_fenced_brokers: bool = v("2+")


@message
class DescribeClusterResponseBroker:
    broker_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: str | None = None
    is_fenced: bool = v("2+")


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse:
    """The cluster's id, its controller, and its brokers."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    endpoint_type: i8 = v("1+", default=1)  # 1 brokers, 2 controllers
    cluster_id: str = ""
    controller_id: i32 = -1
    brokers: list[DescribeClusterResponseBroker] = v()
    cluster_authorized_operations: i32 = OPERATIONS_UNKNOWN


@message
class DescribeTopicPartitionsRequestTopic:
    name: str = ""


@message
class TopicPartitionCursor:
    """The partition with which a page begins."""

    topic_name: str = ""
    partition_index: i32 = 0


@message(key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest:
    """Ask for topics, a page of partitions at a time."""

    topics: list[DescribeTopicPartitionsRequestTopic] = v()
    response_partition_limit: i32 = 2000
    cursor: TopicPartitionCursor | None = None


@message
class DescribeTopicPartitionsResponsePartition:
    error_code: i16 = 0
    partition_index: i32 = 0
    leader_id: i32 = 0
    leader_epoch: i32 = -1
    replica_nodes: list[i32] = v()
    isr_nodes: list[i32] = v()
    eligible_leader_replicas: list[i32] | None = None  # safe to elect though not in sync (KIP-966)
    last_known_elr: list[i32] | None = None
    offline_replicas: list[i32] = v()


@message
class DescribeTopicPartitionsResponseTopic:
    error_code: i16 = 0
    name: str | None = None
    topic_id: UUID = v()
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = v()
    topic_authorized_operations: i32 = OPERATIONS_UNKNOWN


@message(key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    """A page of partitions, sorted by topic; `next_cursor` is where the next page begins, if there is one."""

    throttle_time_ms: i32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = v()
    next_cursor: TopicPartitionCursor | None = None


@message(key=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    """Ask which broker coordinates a group (key type 0), a transactional id (1) or a share partition (2)."""

    key: str = v("0-3")
    key_type: i8 = v("1+")
    coordinator_keys: list[str] = v("4+")


@message
class FindCoordinatorResponseCoordinator:
    key: str = ""
    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None


@message(key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    """The coordinator; from version 4 on, one for each key."""

    throttle_time_ms: i32 = v("1+")
    error_code: i16 = v("0-3")
    error_message: str | None = v("1-3")
    node_id: i32 = v("0-3")
    host: str = v("0-3")
    port: i32 = v("0-3")
    coordinators: list[FindCoordinatorResponseCoordinator] = v("4+")
