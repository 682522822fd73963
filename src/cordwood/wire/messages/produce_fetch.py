"""Records in and out: Produce, Fetch, ListOffsets, DeleteRecords, OffsetForLeaderEpoch."""

from uuid import UUID

from cordwood.wire.types import Records, i8, i16, i32, i64, message, v


@message
class ProduceRequestPartition:
    """Record batches for one partition."""

    index: i32 = 0
    records: Records | None = None


@message
class ProduceRequestTopic:
    name: str = v("3-12")
    topic_id: UUID = v("13+")
    partition_data: list[ProduceRequestPartition] = v()


@message(key=0, versions="3-13", flexible="9+")
class ProduceRequest:
    """Append record batches to partitions. Topics go by name up to version 12, by id from 13."""

    transactional_id: str | None = None  # None outside of transactions
    acks: i16 = 0  # 0 answer nothing, 1 when the leader has it, -1 when all in-sync replicas have it
    timeout_ms: i32 = 0
    topic_data: list[ProduceRequestTopic] = v()


@message
class ProduceResponseRecordError:
    """One record of a refused batch, by its place in the batch."""

    batch_index: i32 = 0
    batch_index_error_message: str | None = None


@message
class LeaderIdAndEpoch:
    """Who leads a partition, as a hint that spares the client a Metadata request."""

    leader_id: i32 = -1
    leader_epoch: i32 = -1


@message
class ProduceResponsePartition:
    """The outcome for one partition; `current_leader` goes with NOT_LEADER_OR_FOLLOWER."""

    index: i32 = 0
    error_code: i16 = 0
    base_offset: i64 = 0
    log_append_time_ms: i64 = -1  # -1 unless the topic stamps records on arrival
    log_start_offset: i64 = v("5+", default=-1)
    record_errors: list[ProduceResponseRecordError] = v("8+")
    error_message: str | None = v("8+")
    current_leader: LeaderIdAndEpoch | None = v("10+", tag=0)


@message
class ProduceResponseTopic:
    name: str = v("3-12")
    topic_id: UUID = v("13+")
    partition_responses: list[ProduceResponsePartition] = v()


@message
class NodeEndpoint:
    """The address of a node that a response names as a leader."""

    node_id: i32 = 0
    host: str = ""
    port: i32 = 0
    rack: str | None = None


@message(key=0, versions="3-13", flexible="9+")
class ProduceResponse:
    """Where the batches of a ProduceRequest begin, or why they were refused."""

    responses: list[ProduceResponseTopic] = v()
    throttle_time_ms: i32 = 0
    node_endpoints: list[NodeEndpoint] = v("10+", tag=0)


@message
class FetchRequestReplicaState:
    """The follower that fetches; from version 15 on this takes the place of `replica_id`."""

    replica_id: i32 = -1
    replica_epoch: i64 = -1


@message
class FetchRequestPartition:
    """Where to read on. `last_fetched_epoch` lets the leader tell a follower that their logs diverge."""

    partition: i32 = 0
    current_leader_epoch: i32 = v("9+", default=-1)  # -1: do not check it
    fetch_offset: i64 = 0
    last_fetched_epoch: i32 = v("12+", default=-1)
    log_start_offset: i64 = v("5+", default=-1)  # a follower's, else -1
    partition_max_bytes: i32 = 0
    replica_directory_id: UUID = v("17+", tag=0)
    high_watermark: i64 = v("18+", default=9223372036854775807, tag=1)  # the follower's; the default is "not told"


@message
class FetchRequestTopic:
    topic: str = v("4-12")
    topic_id: UUID = v("13+")
    partitions: list[FetchRequestPartition] = v()


@message
class FetchRequestForgottenTopic:
    """Partitions to drop from an incremental fetch session."""

    topic: str = v("7-12")
    topic_id: UUID = v("13+")
    partitions: list[i32] = v()


@message(key=1, versions="4-18", flexible="12+")
class FetchRequest:
    """Read batches from partitions, as a consumer or (with a replica id) as a follower; waits for `min_bytes`."""

    cluster_id: str | None = v("12+", tag=0)
    replica_id: i32 = v("4-14", default=-1)  # -1 for a consumer
    replica_state: FetchRequestReplicaState | None = v("15+", tag=1)
    max_wait_ms: i32 = 0
    min_bytes: i32 = 0
    max_bytes: i32 = 2147483647
    isolation_level: i8 = 0  # 0 read uncommitted, 1 read committed
    session_id: i32 = v("7+")
    session_epoch: i32 = v("7+", default=-1)  # -1 no session, 0 a new one
    topics: list[FetchRequestTopic] = v()
    forgotten_topics_data: list[FetchRequestForgottenTopic] = v("7+")
    rack_id: str = v("11+")


@message
class FetchResponseEpochEndOffset:
    """The largest epoch that the logs share, and where it ends: the follower truncates to there."""

    epoch: i32 = -1
    end_offset: i64 = -1


@message
class FetchResponseSnapshotId:
    """The snapshot to load when the wanted offset is gone. Only the metadata quorum uses it."""

    end_offset: i64 = -1
    epoch: i32 = -1


@message
class FetchResponseAbortedTransaction:
    """A producer's records from this offset on are aborted, up to the next abort marker of that producer."""

    producer_id: i64 = 0
    first_offset: i64 = 0


@message
class FetchResponsePartition:
    """Whole batches, the first of which may begin before the wanted offset."""

    partition_index: i32 = 0
    error_code: i16 = 0
    high_watermark: i64 = 0
    last_stable_offset: i64 = -1
    log_start_offset: i64 = v("5+", default=-1)
    diverging_epoch: FetchResponseEpochEndOffset | None = v("12+", tag=0)
    current_leader: LeaderIdAndEpoch | None = v("12+", tag=1)
    snapshot_id: FetchResponseSnapshotId | None = v("12+", tag=2)
    aborted_transactions: list[FetchResponseAbortedTransaction] | None = v(default=[])  # None unless reading committed
    preferred_read_replica: i32 = v("11+", default=-1)  # -1: stay with the leader
    records: Records | None = None


@message
class FetchResponseTopic:
    topic: str = v("4-12")
    topic_id: UUID = v("13+")
    partitions: list[FetchResponsePartition] = v()


@message(key=1, versions="4-18", flexible="12+")
class FetchResponse:
    """Batches from where the client asked, or, in an incremental session, from the partitions with news."""

    throttle_time_ms: i32 = 0
    error_code: i16 = v("7+")
    session_id: i32 = v("7+")
    responses: list[FetchResponseTopic] = v()
    node_endpoints: list[NodeEndpoint] = v("16+", tag=0)


@message
class ListOffsetsRequestPartition:
    """-1 latest, -2 earliest, -3 largest timestamp, -4 earliest on disk, -5 latest tiered, -6 earliest not tiered."""

    partition_index: i32 = 0
    current_leader_epoch: i32 = v("4+", default=-1)
    timestamp: i64 = 0


@message
class ListOffsetsRequestTopic:
    name: str = ""
    partitions: list[ListOffsetsRequestPartition] = v()


@message(key=2, versions="1-11", flexible="6+")
class ListOffsetsRequest:
    """Find offsets by time. Negative timestamps are questions of their own: latest, earliest, and so on."""

    replica_id: i32 = 0  # -1 for a client
    isolation_level: i8 = v("2+")  # 0 read uncommitted, 1 read committed
    topics: list[ListOffsetsRequestTopic] = v()
    timeout_ms: i32 = v("10+")  # how long to wait for what lies in tiered storage


@message
class ListOffsetsResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0
    timestamp: i64 = -1
    offset: i64 = -1
    leader_epoch: i32 = v("4+", default=-1)


@message
class ListOffsetsResponseTopic:
    name: str = ""
    partitions: list[ListOffsetsResponsePartition] = v()


@message(key=2, versions="1-11", flexible="6+")
class ListOffsetsResponse:
    """The offset and timestamp found for each question; -1 for none."""

    throttle_time_ms: i32 = v("2+")
    topics: list[ListOffsetsResponseTopic] = v()


@message
class DeleteRecordsRequestPartition:
    partition_index: i32 = 0
    offset: i64 = 0


@message
class DeleteRecordsRequestTopic:
    name: str = ""
    partitions: list[DeleteRecordsRequestPartition] = v()


@message(key=21, versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    """Forget all records before an offset (-1: before the high watermark)."""

    topics: list[DeleteRecordsRequestTopic] = v()
    timeout_ms: i32 = 0


@message
class DeleteRecordsResponsePartition:
    partition_index: i32 = 0
    low_watermark: i64 = 0
    error_code: i16 = 0


@message
class DeleteRecordsResponseTopic:
    name: str = ""
    partitions: list[DeleteRecordsResponsePartition] = v()


@message(key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    """The lowest offset that is left in each partition."""

    throttle_time_ms: i32 = 0
    topics: list[DeleteRecordsResponseTopic] = v()


@message
class OffsetForLeaderEpochRequestPartition:
    partition: i32 = 0
    current_leader_epoch: i32 = -1
    leader_epoch: i32 = 0


@message
class OffsetForLeaderEpochRequestTopic:
    topic: str = ""
    partitions: list[OffsetForLeaderEpochRequestPartition] = v()


@message(key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    """Ask where a leader epoch ends, to find out up to where two logs agree."""

    replica_id: i32 = v("3+", default=-2)  # -1 for a client, -2 for a debugger
    topics: list[OffsetForLeaderEpochRequestTopic] = v()


@message
class OffsetForLeaderEpochResponsePartition:
    error_code: i16 = 0
    partition: i32 = 0
    leader_epoch: i32 = -1
    end_offset: i64 = -1


@message
class OffsetForLeaderEpochResponseTopic:
    topic: str = ""
    partitions: list[OffsetForLeaderEpochResponsePartition] = v()


@message(key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    """The end offset of the epoch asked for, or of the nearest one before it."""

    throttle_time_ms: i32 = 0
    topics: list[OffsetForLeaderEpochResponseTopic] = v()
