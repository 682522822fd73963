"""The cluster itself: features, brokers, and the metadata quorum."""

from uuid import UUID

from cordwood.wire.types import i8, i16, i32, i64, message, u16, v


@message
class DescribeQuorumRequestPartition:
    partition_index: i32 = 0


@message
class DescribeQuorumRequestTopic:
    topic_name: str = ""
    partitions: list[DescribeQuorumRequestPartition] = v()


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumRequest:
    """Ask for the state of the metadata quorum."""

    topics: list[DescribeQuorumRequestTopic] = v()


@message
class DescribeQuorumResponseReplica:
    """How far a voter or observer has come."""

    replica_id: i32 = 0
    replica_directory_id: UUID = v("2+")
    log_end_offset: i64 = 0
    last_fetch_timestamp: i64 = v("1+", default=-1)
    last_caught_up_timestamp: i64 = v("1+", default=-1)


@message
class DescribeQuorumResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: str | None = v("2+")
    leader_id: i32 = 0
    leader_epoch: i32 = 0
    high_watermark: i64 = 0
    current_voters: list[DescribeQuorumResponseReplica] = v()
    observers: list[DescribeQuorumResponseReplica] = v()


@message
class DescribeQuorumResponseTopic:
    topic_name: str = ""
    partitions: list[DescribeQuorumResponsePartition] = v()


@message
class DescribeQuorumResponseListener:
    name: str = ""
    host: str = ""
    port: u16 = 0


@message
class DescribeQuorumResponseNode:
    node_id: i32 = 0
    listeners: list[DescribeQuorumResponseListener] = v()


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    """The leader, the voters and the observers, and how far each has come."""

    error_code: i16 = 0
    error_message: str | None = v("2+")
    topics: list[DescribeQuorumResponseTopic] = v()
    nodes: list[DescribeQuorumResponseNode] = v("2+")


@message
class UpdateFeaturesRequestFeature:
    feature: str = ""
    max_version_level: i16 = 0
    allow_downgrade: bool = v("0")
    upgrade_type: i8 = v("1+", default=1)  # 1 upgrade, 2 downgrade, 3 downgrade at any price


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesRequest:
    """Raise or (by an unsafe or safe downgrade) lower the levels of features."""

    timeout_ms: i32 = 60000
    feature_updates: list[UpdateFeaturesRequestFeature] = v()
    validate_only: bool = v("1+")


@message
class UpdateFeaturesResponseFeature:
    feature: str = ""
    error_code: i16 = 0
    error_message: str | None = None


@message(key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    """What became of it; up to version 1, of each feature."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    results: list[UpdateFeaturesResponseFeature] = v("0-1")


@message(key=64, versions="0", flexible="0+")
class UnregisterBrokerRequest:
    """Forget a broker that is gone for good."""

    broker_id: i32 = 0


@message(key=64, versions="0", flexible="0+")
class UnregisterBrokerResponse:
    """Whether it has been forgotten."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None


@message
class AddRaftVoterRequestListener:
    name: str = ""
    host: str = ""
    port: u16 = 0


@message(key=80, versions="0-1", flexible="0+")
class AddRaftVoterRequest:
    """Make a controller a voter of the metadata quorum."""

    cluster_id: str | None = None
    timeout_ms: i32 = 0
    voter_id: i32 = 0
    voter_directory_id: UUID = v()
    listeners: list[AddRaftVoterRequestListener] = v()
    ack_when_committed: bool = v("1+", default=True)


@message(key=80, versions="0-1", flexible="0+")
class AddRaftVoterResponse:
    """Whether it has become a voter."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None


@message(key=81, versions="0", flexible="0+")
class RemoveRaftVoterRequest:
    """Take a controller's vote."""

    cluster_id: str | None = None
    voter_id: i32 = 0
    voter_directory_id: UUID = v()


@message(key=81, versions="0", flexible="0+")
class RemoveRaftVoterResponse:
    """Whether it is taken."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
