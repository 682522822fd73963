"""What a leader does with a client's batch before writing it: check it against the topic's settings, adapt it to them.

For most topics the batch stays opaque. Its records are looked at only where the topic's settings concern single
records: a compacted topic needs keys, timestamp limits other than the defaults apply to every record, and a different
``compression.type`` means recompressing.
"""

from typing import Final

from cordwood.config.setting import LONG_MAX
from cordwood.config.topic import TopicConfig
from cordwood.errors import CorruptData, Error, Refused
from cordwood.ids import NO_TIMESTAMP
from cordwood.ports import Buffer
from cordwood.record.batch import (
    CODEC_MASK,
    HEADER_SIZE,
    LENGTH_END,
    LOG_APPEND_TIME,
    BatchHeader,
    Codec,
    produced_batch,
    stamp_timestamp,
)
from cordwood.record.build import seal
from cordwood.record.codecs import compress
from cordwood.record.glance import Effort, decompressed, glance

RECORD_ERRORS_MAX: Final = 100
"""At most this many invalid records of a batch are reported; Kafka reports them all, which could be a million."""
LONG_MIN: Final = -(1 << 63)

_CODECS: Final = {"uncompressed": Codec.NONE} | {c.name.lower(): c for c in Codec if c is not Codec.NONE}
_DEFAULTS: Final = TopicConfig()


class RecordsRefused(Refused):
    """Some records of a batch are invalid: ``record_errors`` has each one's number in the batch and what is wrong."""

    def __init__(self, error: Error, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(error, message)
        self.record_errors = record_errors


class ProduceRules:
    """A topic's settings as far as they concern its producers."""

    __slots__ = (
        "_ahead_max_ms",
        "_bytes_max",
        "_config",
        "_decompressed_bytes_max",
        "_effort",
        "_looks_inside",
        "_segment_bytes",
        "_target",
        "log_append_time",
    )

    def __init__(self, config: TopicConfig, *, decompressed_bytes_max: int, effort: Effort) -> None:
        self._config = config
        self._bytes_max = config.max_message_bytes
        self._segment_bytes = config.segment_bytes
        self._ahead_max_ms = config.message_timestamp_after_max_ms
        self._decompressed_bytes_max = decompressed_bytes_max
        self._target = _CODECS.get(config.compression_type)
        self.log_append_time = config.message_timestamp_type == "LogAppendTime"
        self._looks_inside = "compact" in config.cleanup_policy or (
            not self.log_append_time and _has_own_limits(config)
        )
        self._effort = effort

    @property
    def may_look_inside(self) -> bool:
        return self._looks_inside or self._target is not None

    def accept(self, data: memoryview, now_ms: int) -> tuple[memoryview, BatchHeader]:
        """The batch to write, and its header. Raises ``Refused`` if the topic does not accept it."""
        if len(data) > self._bytes_max:
            raise _too_large(len(data), self._bytes_max)
        header = produced_batch(data)
        if self._looks_inside or (self._target is not None and self._target != header.codec):
            data, header = self._rewritten(data, header, now_ms)
        if header.max_timestamp - now_ms > self._ahead_max_ms and not self.log_append_time:
            raise _bad_header(header, f"Timestamp {header.max_timestamp} is too far ahead of {now_ms}.")
        if len(data) > self._segment_bytes:
            text = f"The batch has {len(data)} bytes, more than a segment's {self._segment_bytes}."
            raise Refused(Error.RECORD_LIST_TOO_LARGE, text)
        if self.log_append_time or header.attributes & LOG_APPEND_TIME:
            header = self._stamped(data, header, now_ms)
        return data, header

    def _stamped(self, data: memoryview, header: BatchHeader, now_ms: int) -> BatchHeader:
        """Set whose time the records carry: this broker's, or their producer's even if the batch claims otherwise."""
        if not self.log_append_time:
            attributes, timestamp = header.attributes & ~LOG_APPEND_TIME, header.max_timestamp
        elif header.has_log_append_time:
            raise _bad_header(header, "A producer may not set the timestamp type LogAppendTime.")
        else:
            attributes, timestamp = header.attributes | LOG_APPEND_TIME, now_ms
        stamp_timestamp(data, attributes, timestamp)
        return header.replaced(attributes=attributes, max_timestamp=timestamp)

    def _rewritten(self, data: memoryview, header: BatchHeader, now_ms: int) -> tuple[memoryview, BatchHeader]:
        """Check every record, and compress them as the topic demands."""
        try:
            body = decompressed(data, header, limit=self._decompressed_bytes_max, effort=self._effort)
            max_timestamp = self._check_records(body, header, now_ms)
        except CorruptData as error:
            raise Refused(Error.INVALID_RECORD, f"The records of the batch cannot be read: {error}.") from error
        if self._target is None or self._target == header.codec:
            return data, header
        built = memoryview(self._compressed(body, header.replaced(max_timestamp=max_timestamp), self._target))
        if len(built) > self._bytes_max:
            raise _too_large(len(built), self._bytes_max)
        return built, produced_batch(built)

    def _compressed(self, body: Buffer, header: BatchHeader, codec: Codec) -> bytearray:
        """The same records, unchanged, in a batch with another codec."""
        batch = bytearray(HEADER_SIZE) + compress(codec, body, _level(self._config, codec))
        attributes = header.attributes & ~CODEC_MASK | codec
        return seal(batch, header.replaced(length=len(batch) - LENGTH_END, attributes=attributes))

    def _check_records(self, body: Buffer, header: BatchHeader, now_ms: int) -> int:
        """Check that all records are as this topic demands, and return the largest of their timestamps."""
        keyed = "compact" in self._config.cleanup_policy
        oldest, youngest = self._time_limits(now_ms)
        largest = LONG_MIN
        keyless: list[int] = []
        untimely: list[int] = []
        for number, (offset_delta, timestamp_delta, has_key) in enumerate(glance(body, header)):
            if offset_delta != number:
                raise Refused(Error.INVALID_RECORD, "The records of the batch are not numbered from 0 without a gap.")
            timestamp = header.base_timestamp + timestamp_delta
            if timestamp > largest:
                largest = timestamp
            if not oldest <= timestamp <= youngest and timestamp != NO_TIMESTAMP:
                _note(untimely, number)
            if keyed and not has_key:
                _note(keyless, number)
        if keyless:
            text = "A compacted topic takes no record without key."
            raise RecordsRefused(Error.INVALID_RECORD, text, _errors(keyless, text))
        if untimely:
            text = "The timestamp is out of range."
            raise RecordsRefused(Error.INVALID_TIMESTAMP, text, _errors(untimely, text))
        return largest

    def _time_limits(self, now_ms: int) -> tuple[int, int]:
        """The oldest and the youngest timestamp that a record may have, both within 64 bits, whatever the settings."""
        if self.log_append_time:
            return LONG_MIN, LONG_MAX
        limits = self._config
        oldest, youngest = (
            now_ms - limits.message_timestamp_before_max_ms,
            now_ms + limits.message_timestamp_after_max_ms,
        )
        return max(oldest, LONG_MIN), min(youngest, LONG_MAX)


def _note(numbers: list[int], number: int) -> None:
    if len(numbers) < RECORD_ERRORS_MAX:
        numbers.append(number)


def _errors(numbers: list[int], text: str) -> list[tuple[int, str]]:
    return [(number, text) for number in numbers]


def _has_own_limits(config: TopicConfig) -> bool:
    return (
        config.message_timestamp_before_max_ms != _DEFAULTS.message_timestamp_before_max_ms
        or config.message_timestamp_after_max_ms != _DEFAULTS.message_timestamp_after_max_ms
    )


def _level(config: TopicConfig, codec: Codec) -> int | None:
    match codec:
        case Codec.GZIP:
            return config.compression_gzip_level if config.compression_gzip_level >= 0 else None
        case Codec.LZ4:
            return config.compression_lz4_level
        case Codec.ZSTD:
            return config.compression_zstd_level
        case _:
            return None


def _too_large(size: int, limit: int) -> Refused:
    return Refused(Error.MESSAGE_TOO_LARGE, f"The batch has {size} bytes, more than max.message.bytes {limit}.")


def _bad_header(header: BatchHeader, text: str) -> RecordsRefused:
    """A batch refused by its header alone. If it has one record, that is the invalid one; otherwise none is named, and
    clients take that to mean all of them."""
    return RecordsRefused(Error.INVALID_TIMESTAMP, text, [(0, text)] if header.record_count == 1 else [])
