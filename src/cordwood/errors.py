"""Every error that Cordwood raises on purpose, by kind; the kinds are never mixed.

::

    CordwoodError
    ├── ProtocolError     the peer broke the protocol: its connection closes, with one log line
    ├── Refused           a request, or a part of it, is refused: the peer gets Kafka's error code
    ├── CorruptData       bytes on disk, or in a batch, do not match their checksum or their header
    ├── StorageError      the disk failed
    │   ├── TruncationError   ... in the middle of truncating a log: the broker stops; its next start recovers the log
    │   └── StoreAway         the metadata store cannot be reached at the moment: nothing was done
    │       └── PerhapsDone   ... and it is unknown whether the change was made before the connection broke
    ├── StoreConflict     the metadata changed under a compare-and-set
    └── ConfigError       a setting is unknown, ill-typed or out of range; the text says what to write instead

A bug in Cordwood is none of these: it is a failed assertion, and the broker stops rather than serve wrong data.
"""

from enum import IntEnum


class CordwoodError(Exception):
    """Base of all errors raised on purpose."""


class ProtocolError(CordwoodError):
    """The peer sent bytes that no Kafka client may send."""


class Refused(CordwoodError):
    """A request that is well formed but will not be served: an error code, and a sentence for a human reader.

    The sentence often quotes what the client sent, which may be as long as a string can be. It is cut, because it might
    not fit into any response otherwise.
    """

    MESSAGE_LENGTH_MAX = 1000

    def __init__(self, error: "Error", message: str | None = None) -> None:
        if message is not None and len(message) > self.MESSAGE_LENGTH_MAX:
            message = message[: self.MESSAGE_LENGTH_MAX] + "…"
        super().__init__(message or error.name)
        self.error = error
        self.message = message


class CorruptData(CordwoodError):
    """Stored or received records are inconsistent."""


class StorageError(CordwoodError):
    """A file could not be read or written."""


class TruncationError(StorageError):
    """A log was only partly truncated: its files and its state in memory may disagree, so it must not be used again."""


class StoreAway(StorageError):
    """The metadata store cannot be reached at the moment. Nothing was done; a later attempt may succeed."""


class PerhapsDone(StoreAway):
    """The change may or may not have been made: even the store can no longer tell, or not soon enough."""


class StoreConflict(CordwoodError):
    """A node of the metadata store is missing, exists already, or does not have the expected version."""


class ConfigError(CordwoodError):
    """A setting cannot be used as given."""


class Error(IntEnum):
    """Kafka's error codes."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133

    @property
    def retriable(self) -> bool:
        """May the same request succeed later?"""
        return self in _RETRIABLE


_RETRIABLE = frozenset(
    {
        Error.CORRUPT_MESSAGE,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.LEADER_NOT_AVAILABLE,
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.REQUEST_TIMED_OUT,
        Error.REPLICA_NOT_AVAILABLE,
        Error.NETWORK_EXCEPTION,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
        Error.NOT_ENOUGH_REPLICAS,
        Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Error.NOT_CONTROLLER,
        Error.CONCURRENT_TRANSACTIONS,
        Error.KAFKA_STORAGE_ERROR,
        Error.FETCH_SESSION_ID_NOT_FOUND,
        Error.INVALID_FETCH_SESSION_EPOCH,
        Error.LISTENER_NOT_FOUND,
        Error.FENCED_LEADER_EPOCH,
        Error.UNKNOWN_LEADER_EPOCH,
        Error.OFFSET_NOT_AVAILABLE,
        Error.PREFERRED_LEADER_NOT_AVAILABLE,
        Error.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        Error.ELECTION_NOT_NEEDED,
        Error.UNSTABLE_OFFSET_COMMIT,
        Error.THROTTLING_QUOTA_EXCEEDED,
        Error.UNKNOWN_TOPIC_ID,
        Error.INCONSISTENT_TOPIC_ID,
        Error.FETCH_SESSION_TOPIC_ID_ERROR,
        Error.SHARE_SESSION_NOT_FOUND,
        Error.INVALID_SHARE_SESSION_EPOCH,
        Error.SHARE_SESSION_LIMIT_REACHED,
    }
)
