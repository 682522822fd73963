"""What a leader does to a client's batch before it is written: check it against the topic's settings, fit it to them.

For most topics the batch stays opaque. Its records are looked at only where the topic's settings are about single
records: a compacted topic needs keys, timestamp limits other than the defaults bind every record, and another
``compression.type`` means to compress anew.
"""

from collections.abc import Callable

from cordwood.config.topic import TopicConfig
from cordwood.errors import CorruptData, Error, Refused
from cordwood.ids import NO_TIMESTAMP
from cordwood.record.batch import LOG_APPEND_TIME, BatchHeader, Codec, produced_batch, stamp_timestamp
from cordwood.record.build import Record, build, records

_CODECS = {"uncompressed": Codec.NONE} | {c.name.lower(): c for c in Codec if c is not Codec.NONE}
_DEFAULTS = TopicConfig()


class RecordsRefused(Refused):
    """Some records of a batch are at fault: ``record_errors`` has each one's number in the batch and what is wrong."""

    def __init__(self, error: Error, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(error, message)
        self.record_errors = record_errors


class ProduceRules:
    """A topic's settings as far as they bind its producers."""

    __slots__ = ("_config", "_decompressed_bytes_max", "_looks_inside", "_target", "log_append_time")

    def __init__(self, config: TopicConfig, *, decompressed_bytes_max: int) -> None:
        self._config = config
        self._decompressed_bytes_max = decompressed_bytes_max
        self._target = _CODECS.get(config.compression_type)
        self.log_append_time = config.message_timestamp_type == "LogAppendTime"
        self._looks_inside = "compact" in config.cleanup_policy or (
            not self.log_append_time and _has_own_limits(config)
        )

    def accept(self, data: memoryview, now_ms: int) -> tuple[memoryview, BatchHeader]:
        """The batch to write, and its header. Raises ``Refused`` if the topic does not take it."""
        config = self._config
        if len(data) > config.max_message_bytes:
            raise _too_large(len(data), config.max_message_bytes)
        header = produced_batch(data)
        if header.max_timestamp - now_ms > config.message_timestamp_after_max_ms and not self.log_append_time:
            raise _bad_timestamp([(0, f"Timestamp {header.max_timestamp} is too far ahead of {now_ms}.")])
        if self._looks_inside or (self._target is not None and self._target != header.codec):
            data, header = self._rewritten(data, header, now_ms)
        if len(data) > config.segment_bytes:
            text = f"The batch has {len(data)} bytes, more than a segment's {config.segment_bytes}."
            raise Refused(Error.RECORD_LIST_TOO_LARGE, text)
        if self.log_append_time or header.attributes & LOG_APPEND_TIME:
            header = self._stamped(data, header, now_ms)
        return data, header

    def _stamped(self, data: memoryview, header: BatchHeader, now_ms: int) -> BatchHeader:
        """Say whose time the records carry: this broker's, or their producer's even if the batch claims otherwise."""
        if not self.log_append_time:
            attributes, timestamp = header.attributes & ~LOG_APPEND_TIME, header.max_timestamp
        elif header.has_log_append_time:
            raise _bad_timestamp([(0, "A producer may not set the timestamp type LogAppendTime.")])
        else:
            attributes, timestamp = header.attributes | LOG_APPEND_TIME, now_ms
        stamp_timestamp(data, attributes, timestamp)
        return header._replace(attributes=attributes, max_timestamp=timestamp)

    def _rewritten(self, data: memoryview, header: BatchHeader, now_ms: int) -> tuple[memoryview, BatchHeader]:
        """Look at every record, and compress them as the topic wants it."""
        try:
            contents = list(records(data, header, limit=self._decompressed_bytes_max))
        except CorruptData as error:
            raise Refused(Error.INVALID_RECORD, f"The records of the batch can not be read: {error}.") from error
        self._check_records(contents, header, now_ms)
        if self._target is None or self._target == header.codec:
            return data, header
        built = memoryview(self._compressed(contents, header, self._target))
        if len(built) > self._config.max_message_bytes:
            raise _too_large(len(built), self._config.max_message_bytes)
        return built, produced_batch(built)

    def _compressed(self, contents: list[Record], header: BatchHeader, codec: Codec) -> bytearray:
        return build(
            contents,
            codec=codec,
            level=_level(self._config, codec),
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            transactional=header.is_transactional,
        )

    def _check_records(self, contents: list[Record], header: BatchHeader, now_ms: int) -> None:
        if any(record.offset != number for number, record in enumerate(contents)):
            raise Refused(Error.INVALID_RECORD, "The records of the batch are not numbered from 0 without a gap.")
        if "compact" in self._config.cleanup_policy:
            errors = _where(
                contents, lambda record: record.key is None, "A compacted topic takes no record without key."
            )
            if errors:
                raise RecordsRefused(Error.INVALID_RECORD, errors[0][1], errors)
        if not self.log_append_time:
            errors = _where(
                contents, lambda record: self._is_untimely(record, now_ms), "The timestamp is out of range."
            )
            if errors:
                raise _bad_timestamp(errors)

    def _is_untimely(self, record: Record, now_ms: int) -> bool:
        if record.timestamp == NO_TIMESTAMP:
            return False
        age_ms = now_ms - record.timestamp
        limits = self._config
        return age_ms > limits.message_timestamp_before_max_ms or -age_ms > limits.message_timestamp_after_max_ms


def _where(contents: list[Record], wrong: Callable[[Record], bool], text: str) -> list[tuple[int, str]]:
    return [(number, text) for number, record in enumerate(contents) if wrong(record)]


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


def _bad_timestamp(errors: list[tuple[int, str]]) -> RecordsRefused:
    return RecordsRefused(Error.INVALID_TIMESTAMP, errors[0][1], errors)
