"""Idempotent and transactional producers."""

from cordwood.wire.types import i8, i16, i32, i64, message, v


@message(key=22, versions="0-6", flexible="2+")
class InitProducerIdRequest:
    """Ask for a producer id; with a transactional id, also fence whoever used it before."""

    transactional_id: str | None = None
    transaction_timeout_ms: i32 = 0
    producer_id: i64 = v("3+", default=-1)
    producer_epoch: i16 = v("3+", default=-1)
    enable2_pc: bool = v("6+")  # two-phase commit: the transaction never times out (KIP-939)
    keep_prepared_txn: bool = v("6+")


@message(key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse:
    """The producer id and epoch to write with."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: i64 = -1
    producer_epoch: i16 = 0
    ongoing_txn_producer_id: i64 = v("6+", default=-1)
    ongoing_txn_producer_epoch: i16 = v("6+", default=-1)


@message
class AddPartitionsToTxnRequestTopic:
    name: str = ""
    partitions: list[i32] = v()


@message
class AddPartitionsToTxnRequestTransaction:
    transactional_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    verify_only: bool = False  # ask whether they are part of it, change nothing
    topics: list[AddPartitionsToTxnRequestTopic] = v()


@message(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest:
    """Make partitions part of a transaction. From version 4 on brokers ask, for many transactions at once."""

    transactions: list[AddPartitionsToTxnRequestTransaction] = v("4+")
    v3_and_below_transactional_id: str = v("0-3")
    v3_and_below_producer_id: i64 = v("0-3")
    v3_and_below_producer_epoch: i16 = v("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnRequestTopic] = v("0-3")


@message
class AddPartitionsToTxnResponsePartition:
    partition_index: i32 = 0
    partition_error_code: i16 = 0


@message
class AddPartitionsToTxnResponseTopic:
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnResponsePartition] = v()


@message
class AddPartitionsToTxnResponseTransaction:
    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnResponseTopic] = v()


@message(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    """What became of each partition."""

    throttle_time_ms: i32 = 0
    error_code: i16 = v("4+")
    results_by_transaction: list[AddPartitionsToTxnResponseTransaction] = v("4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnResponseTopic] = v("0-3")


@message(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest:
    """Announce that a transaction will commit offsets of a group."""

    transactional_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    group_id: str = ""


@message(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    """Whether it may."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0


@message(key=26, versions="0-5", flexible="3+")
class EndTxnRequest:
    """Commit or abort a transaction."""

    transactional_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    committed: bool = False


@message(key=26, versions="0-5", flexible="3+")
class EndTxnResponse:
    """Whether it is decided; from version 5 on with the producer id and epoch for the next one."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: i64 = v("5+", default=-1)
    producer_epoch: i16 = v("5+", default=-1)


@message
class WriteTxnMarkersRequestTopic:
    name: str = ""
    partition_indexes: list[i32] = v()


@message
class WriteTxnMarkersRequestMarker:
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    transaction_result: bool = False  # True commits, False aborts
    topics: list[WriteTxnMarkersRequestTopic] = v()
    coordinator_epoch: i32 = 0
    transaction_version: i8 = v("2+")


@message(key=27, versions="1-2", flexible="1+")
class WriteTxnMarkersRequest:
    """The transaction coordinator tells leaders how transactions ended."""

    markers: list[WriteTxnMarkersRequestMarker] = v()


@message
class WriteTxnMarkersResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0


@message
class WriteTxnMarkersResponseTopic:
    name: str = ""
    partitions: list[WriteTxnMarkersResponsePartition] = v()


@message
class WriteTxnMarkersResponseMarker:
    producer_id: i64 = 0
    topics: list[WriteTxnMarkersResponseTopic] = v()


@message(key=27, versions="1-2", flexible="1+")
class WriteTxnMarkersResponse:
    """What became of each marker."""

    markers: list[WriteTxnMarkersResponseMarker] = v()


@message
class TxnOffsetCommitRequestPartition:
    partition_index: i32 = 0
    committed_offset: i64 = 0
    committed_leader_epoch: i32 = v("2+", default=-1)
    committed_metadata: str | None = None


@message
class TxnOffsetCommitRequestTopic:
    name: str = ""
    partitions: list[TxnOffsetCommitRequestPartition] = v()


@message(key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitRequest:
    """Commit a group's offsets with a transaction."""

    transactional_id: str = ""
    group_id: str = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    generation_id: i32 = v("3+", default=-1)
    member_id: str = v("3+")
    group_instance_id: str | None = v("3+")
    topics: list[TxnOffsetCommitRequestTopic] = v()


@message
class TxnOffsetCommitResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0


@message
class TxnOffsetCommitResponseTopic:
    name: str = ""
    partitions: list[TxnOffsetCommitResponsePartition] = v()


@message(key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse:
    """What became of each offset."""

    throttle_time_ms: i32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = v()


@message
class DescribeProducersRequestTopic:
    name: str = ""
    partition_indexes: list[i32] = v()


@message(key=61, versions="0", flexible="0+")
class DescribeProducersRequest:
    """Ask which producers are active in partitions."""

    topics: list[DescribeProducersRequestTopic] = v()


@message
class DescribeProducersResponseProducer:
    producer_id: i64 = 0
    producer_epoch: i32 = 0
    last_sequence: i32 = -1
    last_timestamp: i64 = -1
    coordinator_epoch: i32 = 0
    current_txn_start_offset: i64 = -1


@message
class DescribeProducersResponsePartition:
    partition_index: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    active_producers: list[DescribeProducersResponseProducer] = v()


@message
class DescribeProducersResponseTopic:
    name: str = ""
    partitions: list[DescribeProducersResponsePartition] = v()


@message(key=61, versions="0", flexible="0+")
class DescribeProducersResponse:
    """The producers' last sequence numbers, and where their open transactions begin."""

    throttle_time_ms: i32 = 0
    topics: list[DescribeProducersResponseTopic] = v()


@message(key=65, versions="0", flexible="0+")
class DescribeTransactionsRequest:
    """Ask for transactions by transactional id."""

    transactional_ids: list[str] = v()


@message
class DescribeTransactionsResponseTopic:
    topic: str = ""
    partitions: list[i32] = v()


@message
class DescribeTransactionsResponseTransaction:
    error_code: i16 = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: i32 = 0
    transaction_start_time_ms: i64 = 0
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    topics: list[DescribeTransactionsResponseTopic] = v()


@message(key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    """The transactions with their states and partitions."""

    throttle_time_ms: i32 = 0
    transaction_states: list[DescribeTransactionsResponseTransaction] = v()


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsRequest:
    """Ask for the transactions of this coordinator: by state, producer, age (ms), or pattern of the id."""

    state_filters: list[str] = v()
    producer_id_filters: list[i64] = v()
    duration_filter: i64 = v("1+", default=-1)
    transactional_id_pattern: str | None = v("2+")


@message
class ListTransactionsResponseTransaction:
    transactional_id: str = ""
    producer_id: i64 = 0
    transaction_state: str = ""


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    """The transactions found."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    unknown_state_filters: list[str] = v()
    transaction_states: list[ListTransactionsResponseTransaction] = v()
