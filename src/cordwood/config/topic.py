"""A topic's settings: Kafka 4.3's names, kinds, defaults and ranges.

Each also names the broker's settings that give it its default, so a broker's ``log.retention.hours`` is declared only
here.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Self

from cordwood.errors import ConfigError

from .names import unknown_name
from .setting import (
    LONG_MAX,
    Bool,
    Check,
    Double,
    Int,
    Kind,
    List,
    Long,
    Scope,
    Setting,
    Str,
    Synonym,
    Value,
    at_least,
    between,
    each_of,
    either,
    one_of,
    setting,
    settings,
    settings_of,
)

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

_THROTTLED = Check(
    lambda value: (
        value == ("*",) or (isinstance(value, tuple) and all(re.fullmatch("[0-9]+:[0-9]+", v) for v in value))
    ),
    "* or a list of partition:broker",
)


def _milliseconds(name: str) -> Synonym:
    return Synonym(name, scope=Scope.CLUSTER_WIDE)


def _hours(name: str, default: int, check: Check) -> Synonym:
    return Synonym(name, HOUR_MS, default, Kind.INT, check)


@settings
class TopicConfig:
    """How one topic keeps its records."""

    cleanup_policy: List = setting(
        default=("delete",),
        check=each_of("compact", "delete"),
        broker="log.cleanup.policy",
        doc="What happens to old segments: delete drops them by age and size, compact keeps each key's last record, "
        "both do both, an empty list keeps everything.",
    )
    compression_type: Str = setting(
        default="producer",
        check=one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        broker="compression.type",
        doc="How batches are compressed on disk; producer keeps each batch as it came.",
    )
    compression_gzip_level: Int = setting(
        default=-1,
        check=either(-1, between(1, 9)),
        broker="compression.gzip.level",
        doc="Effort of gzip where the broker compresses itself; -1 is zlib's own default.",
    )
    compression_lz4_level: Int = setting(
        default=9,
        check=between(1, 17),
        broker="compression.lz4.level",
        doc="Effort of lz4 where the broker compresses itself.",
    )
    compression_zstd_level: Int = setting(
        default=3,
        check=between(-131072, 22),
        broker="compression.zstd.level",
        doc="Effort of zstd where the broker compresses itself.",
    )
    delete_retention_ms: Long = setting(
        default=DAY_MS,
        check=at_least(0),
        broker="log.cleaner.delete.retention.ms",
        doc="How long a compacted topic still shows that a key was deleted.",
    )
    file_delete_delay_ms: Long = setting(
        default=MINUTE_MS,
        check=at_least(0),
        broker="log.segment.delete.delay.ms",
        doc="How long a segment's files stay on disk after the log has let go of them.",
    )
    flush_messages: Long = setting(
        default=LONG_MAX,
        check=at_least(1),
        broker="log.flush.interval.messages",
        doc="After how many records the log is forced to the disk itself; 1 means before every acknowledgement.",
    )
    flush_ms: Long = setting(
        default=LONG_MAX,
        check=at_least(0),
        broker=(
            _milliseconds("log.flush.interval.ms"),
            Synonym("log.flush.scheduler.interval.ms", default=LONG_MAX),
        ),
        doc="The longest time that records wait before the log is forced to the disk itself.",
    )
    follower_replication_throttled_replicas: List = setting(
        default=(),
        check=_THROTTLED,
        doc="Replicas that are slowed down while they catch up, as partition:broker, or * for all.",
    )
    index_interval_bytes: Int = setting(
        default=4096,
        check=at_least(0),
        broker="log.index.interval.bytes",
        doc="Bytes of records between two entries of a segment's offset index.",
    )
    internal_segment_bytes: Int | None = setting(
        default=None, internal=True, doc="Overrides segment.bytes without its minimum. For tests."
    )
    leader_replication_throttled_replicas: List = setting(
        default=(),
        check=_THROTTLED,
        doc="Replicas that are slowed down while they serve others, as partition:broker, or * for all.",
    )
    local_retention_bytes: Long = setting(
        default=-2,
        check=at_least(-2),
        broker="log.local.retention.bytes",
        later=True,
        doc="Bytes kept on local disk beside tiered storage; -2 is the same as retention.bytes.",
    )
    local_retention_ms: Long = setting(
        default=-2,
        check=at_least(-2),
        broker="log.local.retention.ms",
        later=True,
        doc="Age kept on local disk beside tiered storage; -2 is the same as retention.ms.",
    )
    max_compaction_lag_ms: Long = setting(
        default=LONG_MAX,
        check=at_least(1),
        broker="log.cleaner.max.compaction.lag.ms",
        doc="The longest time that a record of a compacted topic may wait for compaction.",
    )
    max_message_bytes: Int = setting(
        default=1024 * 1024 + 12,
        check=at_least(0),
        broker="message.max.bytes",
        doc="The largest record batch that is accepted, as compressed by the producer.",
    )
    message_timestamp_after_max_ms: Long = setting(
        default=HOUR_MS,
        check=at_least(0),
        broker="log.message.timestamp.after.max.ms",
        doc="How far ahead of the broker's clock a producer's timestamp may be.",
    )
    message_timestamp_before_max_ms: Long = setting(
        default=LONG_MAX,
        check=at_least(0),
        broker="log.message.timestamp.before.max.ms",
        doc="How far behind the broker's clock a producer's timestamp may be.",
    )
    message_timestamp_type: Str = setting(
        default="CreateTime",
        check=one_of("CreateTime", "LogAppendTime"),
        broker="log.message.timestamp.type",
        doc="Whose time a record carries: its producer's (CreateTime) or this broker's on arrival (LogAppendTime).",
    )
    min_cleanable_dirty_ratio: Double = setting(
        default=0.5,
        check=between(0, 1),
        broker="log.cleaner.min.cleanable.ratio",
        doc="The share of not yet compacted bytes at which a log is compacted.",
    )
    min_compaction_lag_ms: Long = setting(
        default=0,
        check=at_least(0),
        broker="log.cleaner.min.compaction.lag.ms",
        doc="How long a record of a compacted topic stays untouched.",
    )
    min_insync_replicas: Int = setting(
        default=1,
        check=at_least(1),
        broker="min.insync.replicas",
        doc="How many replicas must have a record before a producer with acks=all is answered.",
    )
    preallocate: Bool = setting(
        default=False,
        broker="log.preallocate",
        doc="Reserve a new segment's whole size at once. Accepted; files here only grow.",
    )
    remote_log_copy_disable: Bool = setting(
        default=False, doc="Stop copying to tiered storage. Accepted; there is no tiered storage here yet."
    )
    remote_log_delete_on_disable: Bool = setting(
        default=False,
        doc="Delete the tiered copy when tiering is switched off. Accepted; there is no tiered storage here yet.",
    )
    remote_storage_enable: Bool = setting(
        default=False,
        check=Check(lambda value: value is False, "false: there is no tiered storage here yet"),
        doc="Tier this topic.",
    )
    retention_bytes: Long = setting(
        default=-1,
        broker="log.retention.bytes",
        doc="The size of a partition beyond which its oldest segments are deleted; negative is no limit.",
    )
    retention_ms: Long = setting(
        default=7 * DAY_MS,
        check=at_least(-1),
        broker=(
            Synonym("log.retention.ms", scope=Scope.CLUSTER_WIDE, negative_is_endless=True),
            Synonym("log.retention.minutes", MINUTE_MS, None, Kind.INT, negative_is_endless=True),
            Synonym("log.retention.hours", HOUR_MS, 168, Kind.INT, negative_is_endless=True),
        ),
        doc="The age of its newest record at which a segment is deleted; -1 is no limit.",
    )
    segment_bytes: Int = setting(
        default=1 << 30,
        check=at_least(1 << 20),
        broker="log.segment.bytes",
        doc="The size at which a log starts its next segment.",
    )
    segment_index_bytes: Int = setting(
        default=10 << 20,
        check=at_least(4),
        broker="log.index.size.max.bytes",
        doc="The size of its offset index at which a log starts its next segment.",
    )
    segment_jitter_ms: Long = setting(
        default=0,
        check=at_least(0),
        broker=(_milliseconds("log.roll.jitter.ms"), _hours("log.roll.jitter.hours", 0, at_least(0))),
        doc="Up to this much is taken off segment.ms at random, so that logs do not all roll at once.",
    )
    segment_ms: Long = setting(
        default=7 * DAY_MS,
        check=at_least(1),
        broker=(_milliseconds("log.roll.ms"), _hours("log.roll.hours", 168, at_least(1))),
        doc="The age at which a log starts its next segment even if the last one is small.",
    )
    unclean_leader_election_enable: Bool = setting(
        default=False,
        broker="unclean.leader.election.enable",
        doc="Let a replica lead that may lack acknowledged records, when no other is left.",
    )

    @classmethod
    def parse(cls, overrides: Mapping[str, str | None], defaults: "TopicConfig | None" = None) -> Self:
        """The settings of a topic: *overrides* as a person or a client wrote them, over the broker's *defaults*.

        Raises:
            ConfigError: an unknown name, a missing value, a wrong kind, a value out of range, or two that conflict.
        """
        for name, text in overrides.items():
            parse_topic_value(name, text)
        config = cls.merge(overrides, defaults)
        if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
            raise ConfigError(
                f"min.compaction.lag.ms is {config.min_compaction_lag_ms}; it must be at most "
                f"max.compaction.lag.ms, {config.max_compaction_lag_ms}"
            )
        return config

    @classmethod
    def merge(cls, overrides: Mapping[str, str | None], defaults: "TopicConfig | None" = None) -> Self:
        """Like ``parse``, for an existing topic, whose settings may contradict defaults that were altered since.

        A setting that is not valid by itself (another version may have stored it) is left out: see ``problems``.
        """
        values = {}
        for name, text in overrides.items():
            with suppress(ConfigError):
                values[name.replace(".", "_")] = parse_topic_value(name, text)
        config = replace(cls() if defaults is None else defaults, **values)  # type: ignore[arg-type]
        if config.internal_segment_bytes is not None:
            config = replace(config, segment_bytes=config.internal_segment_bytes)
        assert isinstance(config, cls)
        return config


def problems(overrides: Mapping[str, str | None]) -> list[str]:
    """What is wrong with a topic's settings, one by one."""
    found = []
    for name, text in overrides.items():
        try:
            parse_topic_value(name, text)
        except ConfigError as error:
            found.append(str(error))
    return found


def parse_topic_value(name: str, text: str | None) -> Value:
    if (declared := TOPIC_SETTINGS.get(name)) is None:
        raise unknown_name("topic setting", name, TOPIC_SETTINGS)
    if text is None:
        raise ConfigError(f"{name} has no value")
    return declared.parse(text)


TOPIC_SETTINGS: Mapping[str, Setting] = settings_of(TopicConfig)
