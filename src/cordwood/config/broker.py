"""A broker's settings: Kafka 4.3's names, kinds, defaults and ranges, and a few of Cordwood's own.

The defaults of topics are not repeated here: ``topic_defaults`` is a whole ``TopicConfig``, made from the broker's
``log.*`` and other settings that ``topic.py`` names. Settings of Kafka that are absent here are in ``foreign.py``: they
load, have no effect, and the broker says so.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Self

from cordwood.errors import ConfigError

from .endpoint import Endpoint, parse_endpoints
from .foreign import FOREIGN, is_foreign
from .layers import Layers
from .names import unknown_name
from .setting import (
    INT_MAX,
    LONG_MAX,
    Bool,
    Check,
    Double,
    Int,
    List,
    Long,
    Password,
    Scope,
    Setting,
    Short,
    Str,
    Value,
    at_least,
    between,
    each_of,
    one_of,
    setting,
    settings,
    settings_of,
    some_of,
)
from .topic import TOPIC_SETTINGS, TopicConfig

RACK_AWARE_REPLICA_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
_CLUSTER_WIDE = Scope.CLUSTER_WIDE
_LISTENER = "PLAINTEXT://127.0.0.1:9092"
_OVERRIDES = Check(
    lambda value: all(re.fullmatch(r"\s*\S+:[0-9]{1,9}\s*", part) for part in str(value).split(",") if value),
    "a list of address:number",
)


@settings
class BrokerConfig:
    """How one broker runs."""

    # Who it is and where it listens

    node_id: Int = setting(
        default=1,
        check=at_least(0),
        alias="broker.id",
        doc="This broker's number, of which a cluster has each only once.",
    )
    broker_rack: Str | None = setting(
        default=None, doc="The rack or zone that this broker stands in, for spreading replicas."
    )
    listeners: List = setting(
        default=(_LISTENER,),
        doc="Where to listen, as NAME://host:port. No host, or 0.0.0.0, is every interface; port 0 is any free one.",
    )
    advertised_listeners: List | None = setting(
        default=None,
        doc="The addresses that clients are told to connect to. Left out, each is told the address that it dialled.",
    )
    listener_security_protocol_map: Str = setting(
        default="PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        doc="Which security protocol each listener's name stands for.",
    )
    inter_broker_listener_name: Str | None = setting(
        default=None, doc="The listener through which brokers reach each other."
    )
    security_inter_broker_protocol: Str = setting(
        default="PLAINTEXT",
        check=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        later=True,
        doc="The security protocol between brokers where no listener is named for it.",
    )
    controller_listener_names: List = setting(
        default=(), doc="Listeners that only Kafka's own controllers use; they are not opened here."
    )
    log_dirs: List = setting(
        default=("cordwood-data",), alias="log.dir", doc="The directory of the logs and their metadata. One, for now."
    )

    # Topics

    auto_create_topics_enable: Bool = setting(
        default=True, doc="Create a topic when a client first asks for it by name."
    )
    delete_topic_enable: Bool = setting(default=True, doc="Let clients delete topics.")
    num_partitions: Int = setting(
        default=1, check=at_least(1), doc="Partitions of a topic whose creator named no number."
    )
    default_replication_factor: Int = setting(default=1, doc="Replicas of a topic whose creator named no number.")
    max_request_partition_size_limit: Int = setting(
        default=2000, check=at_least(1), doc="The most partitions that one DescribeTopicPartitions answer holds."
    )

    # The log

    log_retention_check_interval_ms: Long = setting(
        default=300_000, check=at_least(1), doc="How often logs are searched for segments that may go."
    )
    log_flush_offset_checkpoint_interval_ms: Int = setting(
        default=60_000, check=at_least(0), doc="How often it is written down up to where each log is safe on disk."
    )
    log_flush_start_offset_checkpoint_interval_ms: Int = setting(
        default=60_000,
        check=at_least(0),
        doc="Accepted; it is written down with log.flush.offset.checkpoint.interval.ms.",
    )
    log_initial_task_delay_ms: Long = setting(
        default=30_000,
        check=at_least(0),
        internal=True,
        doc="Accepted; a broker looks after its logs from the start.",
    )
    log_dir_failure_timeout_ms: Long = setting(
        default=30_000,
        check=at_least(1),
        later=True,
        doc="How long a broker lives on after a failed disk that leads partitions.",
    )
    num_recovery_threads_per_data_dir: Int = setting(
        default=2, check=at_least(1), scope=_CLUSTER_WIDE, doc="Accepted; logs are repaired one after the other."
    )
    log_cleaner_enable: Bool = setting(default=True, doc="Compact the topics that ask for it.")
    log_cleaner_threads: Int = setting(
        default=1,
        check=at_least(0),
        scope=_CLUSTER_WIDE,
        doc="Any number but 0 lets one thread compact one log after the other; 0 stops compaction.",
    )
    log_cleaner_backoff_ms: Long = setting(
        default=15_000,
        check=at_least(0),
        scope=_CLUSTER_WIDE,
        doc="How long the cleaner rests when there is nothing to compact.",
    )
    log_cleaner_dedupe_buffer_size: Long = setting(
        default=128 << 20,
        scope=_CLUSTER_WIDE,
        doc="Memory for the keys of one compaction. A key takes 160 bytes, where Kafka's takes 24; a log with more "
        "keys is compacted in several rounds.",
    )
    log_cleaner_io_buffer_size: Int = setting(
        default=512 << 10,
        check=at_least(0),
        scope=_CLUSTER_WIDE,
        doc="Memory for reading and writing while compacting, and one batch more.",
    )
    log_cleaner_io_buffer_load_factor: Double = setting(
        default=0.9, scope=_CLUSTER_WIDE, doc="How much of log.cleaner.dedupe.buffer.size is used."
    )
    log_cleaner_io_max_bytes_per_second: Double = setting(
        default=1.7976931348623157e308,
        scope=_CLUSTER_WIDE,
        doc="The most that compaction reads and writes in a second.",
    )

    # Connections and requests

    socket_request_max_bytes: Int = setting(
        default=100 << 20, check=at_least(1), doc="The largest request; a connection that announces more is closed."
    )
    socket_send_buffer_bytes: Int = setting(
        default=100 << 10, doc="Accepted; the size of the sockets' buffers is left to the system."
    )
    socket_receive_buffer_bytes: Int = setting(
        default=100 << 10, doc="Accepted; the size of the sockets' buffers is left to the system."
    )
    socket_listen_backlog_size: Int = setting(
        default=50, check=at_least(1), doc="Connections that may wait to be accepted."
    )
    connections_max_idle_ms: Long = setting(
        default=600_000, doc="A connection on which nothing happens for this long is closed; negative is never."
    )
    max_connections: Int = setting(
        default=INT_MAX,
        check=at_least(0),
        scope=_CLUSTER_WIDE,
        doc="The most connections to one broker; others wait until some end.",
    )
    max_connections_per_ip: Int = setting(
        default=INT_MAX,
        check=at_least(0),
        scope=_CLUSTER_WIDE,
        doc="The most connections to one broker from one address.",
    )
    max_connections_per_ip_overrides: Str = setting(
        default="",
        check=_OVERRIDES,
        scope=_CLUSTER_WIDE,
        doc="Other limits for some addresses, as address:number,address:number.",
    )
    max_connection_creation_rate: Int = setting(
        default=INT_MAX,
        check=at_least(0),
        scope=_CLUSTER_WIDE,
        doc="The most new connections in a second; others wait.",
    )
    queued_max_requests: Int = setting(
        default=500,
        check=at_least(1),
        doc="Accepted; how many requests may be under way is limited for each connection.",
    )
    queued_max_request_bytes: Long = setting(
        default=-1,
        doc="The most bytes of requests that have come in part, over all connections. While there are more, nobody may "
        "begin a long one. -1: no limit.",
    )
    request_timeout_ms: Int = setting(
        default=30_000, later=True, doc="How long a broker waits for the answer of another."
    )
    fetch_max_bytes: Int = setting(default=55 << 20, check=at_least(1024), doc="The most bytes in one Fetch answer.")
    max_incremental_fetch_session_cache_slots: Int = setting(
        default=1000,
        check=at_least(0),
        doc="Fetch sessions that the broker remembers; the idlest gives way to a new one.",
    )
    max_decompressed_message_bytes: Int = setting(
        default=64 << 20,
        check=at_least(1),
        ours=True,
        doc="The most bytes that one batch may grow to where the broker decompresses it.",
    )
    max_in_flight_requests_per_connection: Int = setting(
        default=128,
        check=at_least(1),
        ours=True,
        doc="Requests of one connection that may wait for their answers; beyond it the broker stops reading there.",
    )
    max_unsent_response_bytes: Int = setting(
        default=1 << 20,
        check=at_least(1),
        ours=True,
        doc="Answers that one client may leave unread before the broker stops reading its requests.",
    )
    max_groups_bytes: Int = setting(
        default=1 << 30,
        check=at_least(1),
        ours=True,
        doc="About how much memory groups may take; beyond it new groups and members are refused, others go on.",
    )
    max_recordless_request_bytes: Int = setting(
        default=16 << 20,
        check=at_least(1024),
        ours=True,
        doc="The largest request other than Produce. Small fields take many times their size once they are read.",
    )

    # Idempotent producers and transactions

    producer_id_expiration_ms: Int = setting(
        default=86_400_000,
        check=at_least(1),
        scope=_CLUSTER_WIDE,
        doc="How long an idle producer's last batches are remembered.",
    )
    producer_id_expiration_check_interval_ms: Int = setting(
        default=600_000, check=at_least(1), internal=True, doc="How often forgotten producers are looked for."
    )
    transactional_id_expiration_ms: Int = setting(
        default=604_800_000, check=at_least(1), later=True, doc="How long an unused transactional id is kept."
    )
    transaction_max_timeout_ms: Int = setting(
        default=900_000, check=at_least(1), later=True, doc="The longest transaction that may be asked for."
    )
    transaction_partition_verification_enable: Bool = setting(
        default=True,
        scope=_CLUSTER_WIDE,
        later=True,
        doc="Check that a partition was added to a transaction before writing to it.",
    )
    transaction_two_phase_commit_enable: Bool = setting(
        default=False, later=True, doc="Let producers hold prepared transactions without a time limit."
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: Int = setting(
        default=10_000, check=at_least(1), later=True, doc="How often transactions beyond their time are aborted."
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: Int = setting(
        default=3_600_000, check=at_least(1), later=True, doc="How often expired transactional ids are removed."
    )
    transaction_state_log_num_partitions: Int = setting(
        default=50, check=at_least(1), later=True, doc="Partitions of the internal topic that holds transactions."
    )
    transaction_state_log_replication_factor: Short = setting(
        default=3,
        check=at_least(1),
        later=True,
        doc="Replicas of the internal topic that holds transactions; as many as there are brokers, at most.",
    )
    transaction_state_log_min_isr: Int = setting(
        default=2, check=at_least(1), later=True, doc="In-sync replicas that the internal topic of transactions needs."
    )
    transaction_state_log_segment_bytes: Int = setting(
        default=100 << 20,
        check=at_least(1),
        later=True,
        doc="Segment size of the internal topic that holds transactions.",
    )
    transaction_state_log_load_buffer_size: Int = setting(
        default=5 << 20, check=at_least(1), later=True, doc="How much is read at once while transactions are loaded."
    )
    add_partitions_to_txn_retry_backoff_ms: Int = setting(
        default=20,
        check=at_least(1),
        later=True,
        doc="First wait before a broker asks the transaction coordinator again.",
    )
    add_partitions_to_txn_retry_backoff_max_ms: Int = setting(
        default=100,
        check=at_least(0),
        later=True,
        doc="Longest wait before a broker asks the transaction coordinator again.",
    )

    # Groups and their offsets

    offset_metadata_max_bytes: Int = setting(
        default=4096, doc="The largest note that a client may attach to an offset."
    )
    offsets_commit_timeout_ms: Int = setting(
        default=5000, check=at_least(1), doc="How long a commit, or a change of a group, waits for its replicas."
    )
    offsets_load_buffer_size: Int = setting(
        default=5 << 20,
        check=at_least(1),
        doc="Accepted; offsets are loaded in small slices, so that others are served meanwhile.",
    )
    offsets_retention_minutes: Int = setting(
        default=10_080, check=at_least(1), doc="How long offsets outlive the last member of their group."
    )
    offsets_retention_check_interval_ms: Long = setting(
        default=600_000, check=at_least(1), doc="How often old offsets are looked for."
    )
    offsets_topic_num_partitions: Int = setting(
        default=50, check=at_least(1), doc="Partitions of the internal topic that holds offsets."
    )
    offsets_topic_replication_factor: Short = setting(
        default=3,
        check=at_least(1),
        doc="Replicas of the internal topic that holds offsets; as many as there are brokers, at most.",
    )
    offsets_topic_segment_bytes: Int = setting(
        default=100 << 20,
        check=at_least(1),
        doc="Segment size of the internal topic that holds offsets; 1 MiB at least.",
    )
    offsets_topic_compression_codec: Int = setting(
        default=0, check=between(0, 4), doc="Compression of the internal topic that holds offsets, by code."
    )
    group_initial_rebalance_delay_ms: Int = setting(default=3000, doc="How long a new group waits for more members.")
    group_min_session_timeout_ms: Int = setting(
        default=6000, doc="The shortest session timeout of a classic group's member."
    )
    group_max_session_timeout_ms: Int = setting(
        default=1_800_000, doc="The longest session timeout of a classic group's member."
    )
    group_max_size: Int = setting(default=INT_MAX, check=at_least(1), doc="The most members of a classic group.")
    group_coordinator_rebalance_protocols: List = setting(
        default=("classic", "consumer", "streams"),
        check=each_of("consumer", "classic", "share", "streams"),
        later=True,
        doc="The group protocols that are served.",
    )
    group_coordinator_threads: Int = setting(
        default=4, check=at_least(1), doc="Accepted; one loop does all the work here."
    )
    group_coordinator_background_threads: Int = setting(
        default=2, check=at_least(1), doc="Accepted; one loop does all the work here."
    )
    group_coordinator_append_linger_ms: Int = setting(
        default=-1,
        check=at_least(-1),
        doc="How long committed offsets gather into one batch; with -1, until all requests that have arrived are read.",
    )
    group_coordinator_cached_buffer_max_bytes: Int = setting(
        default=1024 * 1024 + 12,
        check=at_least(512 << 10),
        scope=_CLUSTER_WIDE,
        later=True,
        doc="The largest write buffer that is kept for reuse.",
    )
    group_consumer_assignors: List = setting(
        default=("uniform", "range"),
        check=some_of("uniform", "range"),
        doc="How the broker spreads partitions over members.",
    )
    group_consumer_assignment_interval_ms: Int = setting(
        default=1000,
        check=at_least(0),
        scope=_CLUSTER_WIDE,
        doc="The least time between two new assignments of a group.",
    )
    group_consumer_min_assignment_interval_ms: Int = setting(
        default=0, check=at_least(0), doc="The smallest assignment interval that a group may set."
    )
    group_consumer_max_assignment_interval_ms: Int = setting(
        default=15_000, check=at_least(0), doc="The largest assignment interval that a group may set."
    )
    group_consumer_heartbeat_interval_ms: Int = setting(
        default=5000, check=at_least(1), doc="How often members report."
    )
    group_consumer_min_heartbeat_interval_ms: Int = setting(
        default=5000, check=at_least(1), doc="The smallest heartbeat interval that a group may set."
    )
    group_consumer_max_heartbeat_interval_ms: Int = setting(
        default=15_000, check=at_least(1), doc="The largest heartbeat interval that a group may set."
    )
    group_consumer_session_timeout_ms: Int = setting(
        default=45_000, check=at_least(1), doc="How long a silent member stays in its group."
    )
    group_consumer_min_session_timeout_ms: Int = setting(
        default=45_000, check=at_least(1), doc="The smallest session timeout that a group may set."
    )
    group_consumer_max_session_timeout_ms: Int = setting(
        default=60_000, check=at_least(1), doc="The largest session timeout that a group may set."
    )
    group_consumer_max_size: Int = setting(
        default=INT_MAX, check=at_least(1), doc="The most members of a consumer group."
    )
    group_consumer_migration_policy: Str = setting(
        default="bidirectional",
        check=one_of("disabled", "downgrade", "upgrade", "bidirectional"),
        doc="In which directions a group may change between the classic and the consumer protocol.",
    )
    group_consumer_regex_refresh_interval_ms: Int = setting(
        default=600_000,
        check=at_least(10_000),
        internal=True,
        doc="How often subscriptions by pattern look for new topics.",
    )

    # Replication and clusters

    zookeeper_connect: Str | None = setting(
        default=None,
        doc="The ZooKeeper ensemble of the cluster, as host:port,host:port/chroot; none is a broker on its own.",
    )
    zookeeper_session_timeout_ms: Int = setting(default=18_000, doc="How long ZooKeeper waits for a silent broker.")
    zookeeper_connection_timeout_ms: Int | None = setting(
        default=None,
        doc="How long to wait for ZooKeeper at start; as long as the session timeout if left out.",
    )
    zookeeper_user: Str | None = setting(
        default=None,
        ours=True,
        doc="The user as which brokers log in to ZooKeeper (digest). Nobody else can change what they write then.",
    )
    zookeeper_password: Password | None = setting(default=None, ours=True, doc="That user's password.")
    zookeeper_set_acl: Bool = setting(
        default=False, later=True, doc="Write to ZooKeeper so that others cannot change it."
    )
    auto_leader_rebalance_enable: Bool = setting(
        default=True, doc="Give leadership back to the preferred replicas by and by."
    )
    leader_imbalance_check_interval_seconds: Long = setting(
        default=300, check=at_least(1), doc="How often leadership is given back to the preferred replicas."
    )
    controlled_shutdown_enable: Bool = setting(default=True, doc="Hand leadership over before stopping.")
    replica_lag_time_max_ms: Long = setting(
        default=30_000, doc="A follower that was not up to date for this long leaves the in-sync replicas."
    )
    replica_fetch_min_bytes: Int = setting(default=1, doc="Bytes that a follower's Fetch waits for.")
    replica_fetch_wait_max_ms: Int = setting(default=500, doc="The longest wait of a follower's Fetch.")
    replica_fetch_max_bytes: Int = setting(
        default=1 << 20, check=at_least(0), doc="Bytes that a follower takes of one partition at once."
    )
    replica_fetch_response_max_bytes: Int = setting(
        default=10 << 20, check=at_least(0), doc="Bytes that a follower takes at once."
    )
    replica_fetch_backoff_ms: Int = setting(
        default=1000, check=at_least(0), doc="How long a follower rests after a failed Fetch."
    )
    replica_high_watermark_checkpoint_interval_ms: Long = setting(
        default=5000, doc="How often it is written down up to where each partition is committed."
    )
    replica_socket_timeout_ms: Int = setting(default=30_000, doc="How long a follower waits for its leader's answer.")
    replica_socket_receive_buffer_bytes: Int = setting(
        default=64 << 10, doc="Accepted; the system sizes receive buffers as it sees fit."
    )
    replica_selector_class: Str | None = setting(
        default=None,
        check=one_of(RACK_AWARE_REPLICA_SELECTOR, RACK_AWARE_REPLICA_SELECTOR.rpartition(".")[2]),
        doc="Kafka's RackAwareReplicaSelector lets consumers read from a replica in their own rack.",
    )
    num_replica_fetchers: Int = setting(
        default=1,
        check=at_least(1),
        scope=_CLUSTER_WIDE,
        doc="Accepted; one connection brings all that there is from one leader.",
    )
    leader_replication_throttled_rate: Long = setting(
        default=LONG_MAX,
        check=at_least(0),
        scope=_CLUSTER_WIDE,
        doc="Bytes a second that throttled replicas are served.",
    )
    follower_replication_throttled_rate: Long = setting(
        default=LONG_MAX,
        check=at_least(0),
        scope=_CLUSTER_WIDE,
        doc="Bytes a second that throttled replicas take.",
    )
    replica_alter_log_dirs_io_max_bytes_per_second: Long = setting(
        default=LONG_MAX,
        check=at_least(0),
        scope=_CLUSTER_WIDE,
        later=True,
        doc="Bytes a second of moves between directories of one broker.",
    )

    # Settings that people set out of habit, and what they do here

    num_network_threads: Int = setting(
        default=3,
        check=at_least(1),
        scope=_CLUSTER_WIDE,
        doc="Accepted; one loop does all the work. Run more brokers to use more cores.",
    )
    num_io_threads: Int = setting(
        default=8,
        check=at_least(1),
        scope=_CLUSTER_WIDE,
        doc="Accepted; one loop does all the work. Run more brokers to use more cores.",
    )
    background_threads: Int = setting(
        default=10,
        check=at_least(1),
        scope=_CLUSTER_WIDE,
        doc="Accepted; work beside the loop needs no number of threads.",
    )
    fetch_purgatory_purge_interval_requests: Int = setting(
        default=1000, doc="Accepted; a parked request leaves when it is done."
    )
    producer_purgatory_purge_interval_requests: Int = setting(
        default=1000, doc="Accepted; a parked request leaves when it is done."
    )
    delete_records_purgatory_purge_interval_requests: Int = setting(
        default=1, doc="Accepted; a parked request leaves when it is done."
    )
    authorizer_class_name: Str = setting(
        default="",
        check=Check(
            lambda value: value == "", "left out: there is no access control here yet, and nobody should believe in one"
        ),
        doc="The Java class of Kafka's access control. It must be left out: there is no access control here yet.",
    )

    topic_defaults: TopicConfig = field(default_factory=TopicConfig)

    @classmethod
    def parse(cls, layers: Layers | Mapping[str, str]) -> Self:
        """The settings that these texts give: those of a properties file alone, or with later alterations.

        Raises:
            ConfigError: an unknown name, a wrong kind, a value out of range, or two that conflict.
        """
        if not isinstance(layers, Layers):
            layers = Layers(static=layers)
        for layer in layers.mappings():
            for name, text in layer.items():
                parse_broker_value(name, text)
        values = {s.attribute: effective(s, layers) for s in _DECLARED.values()}
        config = cls(**values, topic_defaults=topic_defaults(layers))  # type: ignore[arg-type]
        _check_agreement(config, layers)
        return config

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where to listen: the listeners, without those of Kafka's own controllers."""
        return self._parsed("listeners", self.listeners)

    def advertised_endpoints(self) -> tuple[Endpoint, ...]:
        """The addresses to give to clients; empty means the one that each client dialled."""
        return self._parsed("advertised.listeners", self.advertised_listeners or ())

    def listener_named_for_brokers(self) -> str:
        """The listener through which brokers reach each other; "" if none is configured for that."""
        return (self.inter_broker_listener_name or "").upper()

    def _parsed(self, name: str, texts: tuple[str, ...]) -> tuple[Endpoint, ...]:
        found = parse_endpoints(name, texts, self.listener_security_protocol_map)
        controllers = {n.upper() for n in self.controller_listener_names}
        return tuple(e for e in found if e.name not in controllers)

    def data_directory(self) -> str:
        if len(self.log_dirs) != 1:
            raise ConfigError(f"log.dirs names {len(self.log_dirs)} directories; it must be exactly one for now")
        return self.log_dirs[0]


_DECLARED: Mapping[str, Setting] = settings_of(BrokerConfig)


def _of_topics() -> list[Setting]:
    """The broker's settings that exist because topics' settings take their defaults from them."""
    return [
        Setting(
            s.name,
            s.kind,
            s.default,
            f"Default of the topics' {topic.name}. {topic.doc}",
            s.check,
            s.scope,
            later=topic.later,
        )
        for topic in TOPIC_SETTINGS.values()
        for s in topic.brokers
    ]


def _aliases() -> list[Setting]:
    return [
        Setting(s.alias, s.kind, s.default, f"An older name of {s.name}.", s.check, s.scope)
        for s in _DECLARED.values()
        if s.alias is not None
    ]


BROKER_SETTINGS: Mapping[str, Setting] = {s.name: s for s in [*_DECLARED.values(), *_aliases(), *_of_topics()]}


def parse_broker_value(name: str, text: str) -> Value:
    """The value of a broker's setting; None for Kafka's settings without a meaning here."""
    if (declared := BROKER_SETTINGS.get(name)) is not None:
        return declared.parse(text)
    if is_foreign(name):
        return None
    of_topics = {topic.name: topic.brokers[0].name for topic in TOPIC_SETTINGS.values() if topic.brokers}
    raise unknown_name("setting", name, [*BROKER_SETTINGS, *FOREIGN], elsewhere=of_topics)


def effective(setting: Setting, layers: Layers) -> Value:
    """The effective value of a broker's setting, given under its name or its alias."""
    found = layers.strongest((setting.name,) if setting.alias is None else (setting.name, setting.alias))
    return setting.default if found is None else setting.parse(found.text)


def topic_defaults(layers: Layers) -> TopicConfig:
    """The settings of a topic without any of its own on this broker."""
    return TopicConfig.parse(layers.topic_texts(TOPIC_SETTINGS))


def _check_agreement(config: BrokerConfig, layers: Layers) -> None:
    """Kafka's conditions that involve several settings."""
    ids = {text for layer in layers.mappings() for name, text in layer.items() if name in ("node.id", "broker.id")}
    if len(ids) > 1:
        raise ConfigError("node.id and broker.id differ; give the same number or only one of them")
    if config.topic_defaults.retention_ms == 0:
        raise ConfigError("log.retention.ms is 0; it must be at least 1, or -1 for no limit")
    if 0 < config.queued_max_request_bytes < config.socket_request_max_bytes:
        raise ConfigError(
            f"queued.max.request.bytes is {config.queued_max_request_bytes}; it must be at least "
            f"socket.request.max.bytes, {config.socket_request_max_bytes}"
        )
    for name, limit_ms in (
        ("replica.socket.timeout.ms", config.replica_socket_timeout_ms),
        ("replica.lag.time.max.ms", config.replica_lag_time_max_ms),
    ):
        if config.replica_fetch_wait_max_ms > limit_ms:
            raise ConfigError(
                f"replica.fetch.wait.max.ms is {config.replica_fetch_wait_max_ms}; it must not be more than "
                f"{name}, {limit_ms}"
            )
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_overrides:
        raise ConfigError(
            "max.connections.per.ip is 0, and max.connections.per.ip.overrides lets nobody in; name addresses there"
        )
    _check_endpoints(config)


def _check_endpoints(config: BrokerConfig) -> None:
    """Check that clients can reach this broker somewhere, and are told only addresses where they can."""
    if not config.listeners:
        raise ConfigError(f"listeners is empty; name one for clients, such as {_LISTENER}")
    if not config.endpoints():
        raise ConfigError(
            f"listeners has only {','.join(config.listeners)}, and controller.listener.names keeps that from clients; "
            f"add one for clients, such as {_LISTENER}"
        )
    for endpoint in config.endpoints():
        if endpoint.protocol != "PLAINTEXT":
            raise ConfigError(f"listeners has {endpoint}; {endpoint.protocol} is not served yet, only PLAINTEXT is")
    names = [endpoint.name for endpoint in config.endpoints()]
    for endpoint in config.advertised_endpoints():
        if endpoint.name not in names:
            raise ConfigError(f"advertised.listeners has {endpoint}; listeners has only {','.join(names)}")
        if endpoint.host in ("", "0.0.0.0", "::"):
            raise ConfigError(f"advertised.listeners has {endpoint}; name a host that clients can reach")
    named = config.listener_named_for_brokers()
    told = [endpoint.name for endpoint in config.advertised_endpoints()] or names
    if named and named not in told:
        raise ConfigError(f"inter.broker.listener.name is {named}; brokers are told only of {','.join(told)}")
