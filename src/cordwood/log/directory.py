"""The data directory: one directory for each partition, and the files that Kafka keeps about all of them.

``recovery-point-offset-checkpoint`` has, for each log, the offset from which it must be read after a crash;
``log-start-offset-checkpoint`` its start, if that is not 0; ``replication-offset-checkpoint`` its high watermark;
``cleaner-offset-checkpoint`` the offset up to which it is compacted. ``.kafka_cleanshutdown`` exists only between a
clean stop and the next start. ``.lacks_records`` exists while the other brokers have not yet been told that a log here
is shorter than it was, so that the next start knows of it if this process dies before it can tell them.

A deleted partition is first renamed to ``topic-0.<id>-delete``, so that a crash in the middle of its removal leaves
nothing that looks like a partition. Names on the disk are input like any other: anything that is not exactly the name
of a partition is left alone.
"""

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from cordwood.config.topic import TopicConfig
from cordwood.errors import CorruptData, StorageError
from cordwood.ids import TopicId, TopicName, TopicPartition
from cordwood.ports import Disk, Instant, Logger, Syncable

from .checkpoint import WrittenFile, format_checkpoint, parse_checkpoint, write_unsynced
from .log import Log
from .names import PARTITION_METADATA
from .recovery import DECOMPRESSED_BYTES_MAX, open_log

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"
CLEAN_STOP = ".kafka_cleanshutdown"
LACKS_RECORDS = ".lacks_records"
DELETED_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"

_NAME_MAX = 255
_PREPARED = ".prepared"
_PARTITION = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})", re.ASCII)
_DELETED = re.compile(r"[a-zA-Z0-9._-]*-[0-9]+\.[0-9a-f]{32}-delete", re.ASCII)
_TOPIC_ID = re.compile(r"version: 0\ntopic_id: ([a-zA-Z0-9_-]{22})\n?", re.ASCII)

Offsets = Mapping[TopicPartition, int]


class StoredPartition(NamedTuple):
    """A partition that has a directory; its topic's id is None if the file that holds it is missing or broken."""

    name: TopicPartition
    topic_id: TopicId | None


class LogDirectory:
    """All partitions of a broker on one disk."""

    def __init__(
        self, disk: Disk, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX, logger: Logger | None = None
    ) -> None:
        self._disk = disk
        self._decompressed_bytes_max = decompressed_bytes_max
        self._logger = logger
        self._recovery_points: dict[TopicPartition, int] = {}
        self._log_starts: dict[TopicPartition, int] = {}
        self._cleaned_offsets: dict[TopicPartition, int] = {}
        self._checkpointed: set[TopicPartition] = set()
        """The partitions named in the checkpoints on the disk."""
        self._prepared = False
        self.was_clean = False
        """Was the last stop a clean one?"""
        self.high_watermarks: Offsets = {}
        """The high watermarks at the last checkpoint."""

    def load(self) -> tuple[list[StoredPartition], list[str]]:
        """What is there: the partitions, and the directories left to remove because their deletion was interrupted.

        From now on the directory counts as in use: if the broker crashes, the next start will notice.
        """
        names = self._disk.list("")
        self.was_clean = CLEAN_STOP in names
        self._recovery_points = self._read_offsets(RECOVERY_POINTS)
        self._log_starts = self._read_offsets(LOG_STARTS)
        self._cleaned_offsets = self._read_offsets(CLEANED_OFFSETS)
        self.high_watermarks = self._read_offsets(HIGH_WATERMARKS)
        self._checkpointed = {
            *self._recovery_points,
            *self._log_starts,
            *self._cleaned_offsets,
            *self.high_watermarks,
        }
        if self.was_clean:
            self._disk.remove(CLEAN_STOP)
            # The removal must be durable before the first append is; writing any file durably makes it so.
            self._disk.replace(RECOVERY_POINTS, _encoded(self._recovery_points))
        found = [(name, partition) for name in names if (partition := parse_partition_name(name)) is not None]
        partitions = [StoredPartition(p, self._topic_id_of(name)) for name, p in found if self._is_directory(name)]
        return partitions, [name for name in names if _DELETED.fullmatch(name)]

    def open(self, name: TopicPartition, topic_id: TopicId, config: TopicConfig, *, now: Instant) -> Log:
        """The log of a partition, newly created or as it was left."""
        path = str(name)
        assert parse_partition_name(path) == name, "a topic's name was checked before it became a path"
        stored = self._topic_id_of(path)
        if stored not in (topic_id, None):
            self.set_aside(name, stored)  # it should have been when its topic was deleted; the disk must have failed
        if name in self._checkpointed and not self._disk.exists(path):
            self._forget(name)
        was_clean = self.was_clean and name in self._recovery_points
        recovery_point = self._recovery_points.pop(name, 0)
        log = open_log(
            self._disk,
            path,
            config,
            now=now,
            clean=was_clean,
            recovery_point=recovery_point,
            log_start_offset=self._log_starts.pop(name, 0),
            decompressed_bytes_max=self._decompressed_bytes_max,
            logger=self._logger,
        )
        cleaned_to = self._cleaned_offsets.pop(name, 0)
        log.cleaned_to = cleaned_to if cleaned_to <= log.end_offset else 0
        if recovery_point > log.end_offset:
            # The log has come back shorter than it was. What is written from now on must not count as synced.
            self.lower_recovery_point(name)
        if self._topic_id_of(path) != topic_id:
            write_unsynced(self._disk, f"{path}/{PARTITION_METADATA}", encode_topic_id(topic_id))
            log.sync_too(f"{path}/{PARTITION_METADATA}")
        return log

    def set_aside(self, name: TopicPartition, topic_id: TopicId | None) -> str:
        """Rename a partition's directory, so that it is no partition's any more. Return the path to remove."""
        path = deleted_name(name, topic_id)
        self._disk.remove_tree(path)
        self._disk.rename(str(name), path)
        return path

    def lower_recovery_point(self, name: TopicPartition) -> None:
        """Have the whole log read after a crash. Call this after a truncation, before anything is appended."""
        self._erase(RECOVERY_POINTS, name)

    def _forget(self, name: TopicPartition) -> None:
        """Forget an earlier topic of that name: after a crash, its checkpoints must not be taken for the new one's."""
        self._recovery_points.pop(name, None)
        self._log_starts.pop(name, None)
        self._cleaned_offsets.pop(name, None)
        self._erase(LOG_STARTS, name)
        self._erase(CLEANED_OFFSETS, name)
        self._erase(RECOVERY_POINTS, name)
        self._checkpointed.discard(name)

    def _erase(self, path: str, name: TopicPartition) -> None:
        stored = self._read_offsets(path)
        if stored.pop(name, None) is not None:
            self._disk.replace(path, _encoded(stored))
        self._prepared = False  # the prepared checkpoints may still name it

    def keep_stray(self, name: TopicPartition, topic_id: TopicId | None) -> str:
        """Rename a directory that is not in the metadata, and keep it, as somebody may still need what is in it. Return
        its new name."""
        path = deleted_name(name, topic_id).removesuffix(DELETED_SUFFIX) + STRAY_SUFFIX
        self._disk.rename(str(name), path)
        return path

    def prepare_checkpoints(self, logs: Mapping[TopicPartition, Log], high_watermarks: Offsets) -> list[Syncable]:
        """Write new checkpoints beside the old ones; when these files are synced, call ``commit_checkpoints``."""
        contents = _checkpoints(logs, high_watermarks)
        self._checkpointed |= {*logs, *high_watermarks}
        self._prepared = True
        for name, data in contents.items():
            write_unsynced(self._disk, name + _PREPARED, data)
        return [WrittenFile(self._disk, name + _PREPARED) for name in contents]

    def commit_checkpoints(self) -> None:
        if self._prepared:
            self._prepared = False
            for name in (LOG_STARTS, RECOVERY_POINTS, CLEANED_OFFSETS, HIGH_WATERMARKS):
                self._disk.rename(name + _PREPARED, name)

    def write_checkpoints(self, logs: Mapping[TopicPartition, Log], high_watermarks: Offsets) -> None:
        """Write the checkpoints, and wait for the disk."""
        self._checkpointed |= {*logs, *high_watermarks}
        for name, data in _checkpoints(logs, high_watermarks).items():
            self._disk.replace(name, data)

    def write_high_watermarks(self, high_watermarks: Offsets) -> None:
        """Write only this checkpoint, without waiting for the disk: a crash may lose it, which does little harm."""
        self._checkpointed |= high_watermarks.keys()
        write_unsynced(self._disk, HIGH_WATERMARKS, _encoded(high_watermarks))

    def mark_clean(self, *, broker_epoch: int = -1) -> None:
        """All logs are closed, synced and in the checkpoints: the next start may trust them."""
        text = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        self._disk.replace(CLEAN_STOP, text.encode())

    @property
    def lacks_records(self) -> bool:
        """Is there a log that is shorter than the other brokers know?"""
        return self._disk.exists(LACKS_RECORDS)

    def mark_lack(self) -> None:
        self._disk.replace(LACKS_RECORDS, b"")

    def lack_is_known(self) -> None:
        """The other brokers have been told, and no longer count on records that are not there."""
        self._disk.remove(LACKS_RECORDS)

    def usage(self) -> tuple[int, int]:
        return self._disk.usage()

    def _read_offsets(self, name: str) -> dict[TopicPartition, int]:
        if not self._disk.exists(name):
            return {}
        try:
            return dict(_parsed_offset(words) for words in parse_checkpoint(self._disk.read(name)))
        except CorruptData as error:
            if self._logger is not None:
                self._logger.warning("%s: %s; it is not used", name, error)
            return {}

    def _topic_id_of(self, path: str) -> TopicId | None:
        try:
            return decode_topic_id(self._disk.read(f"{path}/{PARTITION_METADATA}"))
        except (CorruptData, StorageError):
            return None

    def _is_directory(self, name: str) -> bool:
        try:
            self._disk.list(name)
        except StorageError:
            return False
        return True


def parse_partition_name(name: str) -> TopicPartition | None:
    """The partition whose directory has this name; None if it is not the name of one."""
    match = _PARTITION.fullmatch(name)
    if match is None or match[1] in (".", ".."):
        return None
    partition = int(match[2])
    return TopicPartition(TopicName(match[1]), partition) if partition < 2**31 else None


def deleted_name(name: TopicPartition, topic_id: TopicId | None) -> str:
    """The new name of a deleted partition's directory. The topic's id makes it unique; a long topic name is cut."""
    suffix = f"-{name.partition}.{(topic_id or UUID(int=0)).hex}{DELETED_SUFFIX}"
    return name.topic[: _NAME_MAX - len(suffix)] + suffix


def encode_topic_id(topic_id: TopicId) -> bytes:
    text = urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
    return f"version: 0\ntopic_id: {text}".encode()


def decode_topic_id(data: bytes) -> TopicId:
    match = _TOPIC_ID.fullmatch(data.decode(errors="replace"))
    if match is None:
        raise CorruptData("this is no partition.metadata")
    return TopicId(UUID(bytes=urlsafe_b64decode(match[1] + "==")))


def _checkpoints(logs: Mapping[TopicPartition, Log], high_watermarks: Offsets) -> dict[str, bytes]:
    """Log starts are written first: a segment before the log's start may be damaged, even though it lies before the
    recovery point, too."""
    return {
        LOG_STARTS: _encoded({name: log.log_start_offset for name, log in logs.items() if log.log_start_offset}),
        RECOVERY_POINTS: _encoded({name: log.recovery_checkpoint for name, log in logs.items()}),
        CLEANED_OFFSETS: _encoded({name: log.cleaned_to for name, log in logs.items() if log.cleaned_to}),
        HIGH_WATERMARKS: _encoded(high_watermarks),
    }


def _encoded(offsets: Offsets) -> bytes:
    return format_checkpoint(_lines(offsets))


def _lines(offsets: Offsets) -> Iterable[str]:
    return (f"{name.topic} {name.partition} {offset}" for name, offset in offsets.items())


def _parsed_offset(words: list[str]) -> tuple[TopicPartition, int]:
    try:
        topic, partition, offset = words
        return TopicPartition(TopicName(topic), int(partition)), int(offset)
    except ValueError as error:
        raise CorruptData(f"{' '.join(words)!r} is no partition and offset") from error
