"""The partitions that this broker holds: opened at start, created and removed as the metadata says, and maintained.

In a cluster, a replica begins with the high watermark of the last checkpoint, and does not lead what it led in a former
life until the metadata gives it a newer leader epoch. A broker on its own has committed all that is in its logs.

Invariants (``check``): the partitions by name and by id are the same; each is where the metadata puts it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from cordwood.broker.additions import PAUSE_MS, Additions
from cordwood.broker.settings import Settings
from cordwood.broker.syncs import Syncs
from cordwood.cluster.controller import forget_topic
from cordwood.cluster.image import NO_LEADER, Delta, MetadataImage, PartitionInfo, TopicInfo
from cordwood.cluster.layout import partition_path, topic_path
from cordwood.config import TopicConfig
from cordwood.config.topic import problems
from cordwood.effects import Remove
from cordwood.errors import CorruptData, Error, Refused, StorageError
from cordwood.ids import NodeId, TopicId, TopicName, TopicPartition
from cordwood.log.directory import LogDirectory
from cordwood.log.epochs import EpochEnd
from cordwood.log.log import Log, SyncJob
from cordwood.partition.partition import LAG_MAX_MS, Partition
from cordwood.ports import Instant, Logger

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

SYNC_CHECK_INTERVAL_MS: Final = 1000
ADD_AGAIN_MS: Final = 10_000
"""When to retry a log that could not be created: there may be room by now. Its partition may have no other leader."""


class Replicas:
    """All local partitions, and the data directory that holds them."""

    def __init__(
        self,
        directory: LogDirectory,
        node: NodeId,
        directory_name: str,
        logger: Logger,
        *,
        partitions_max: int = 1_000_000,
    ) -> None:
        self.directory = directory
        self.directory_name = directory_name
        self.by_name: dict[TopicName, dict[int, Partition]] = {}
        self.by_id: dict[int, dict[int, Partition]] = {}
        """By the number of the topic id, because the hash of a UUID is itself interpreted."""
        self.syncs = Syncs()
        self._node = node
        self._logger = logger
        self._removals: dict[int, TopicId | None] = {}
        self._removal_count = 0
        self._leftovers: list[str] = []
        self._partitions_max = partitions_max
        self._checkpointing = False
        self._checkpoint_again = False
        self._image = MetadataImage()
        self._clustered = False
        self._fenced = False
        self._registered = False
        """Has this broker registered since the logs were opened? Until then, its leaderships are its former life's."""
        self._lag_max_ms = LAG_MAX_MS
        self._configs: dict[TopicId, tuple[dict[str, str], TopicConfig, TopicConfig]] = {}
        """By topic: its own settings, the defaults, and the result of both."""
        self._new_roles: dict[Partition, None] = {}
        self.additions = Additions()
        self.lacks_records = False
        """Has a log fewer records than it had before, and has this broker not registered since?"""

    def get(self, topic: TopicName, index: int) -> Partition:
        partitions = self.by_name.get(topic)
        if partitions is None or (partition := partitions.get(index)) is None:
            raise self.not_here(self._image, topic, index)
        return partition

    def not_here(self, image: MetadataImage, key: TopicName | TopicId, index: int) -> Refused:
        """Why a partition is not served here: other brokers have it, or it does not exist."""
        topic = image.topic(key)
        if topic is None and not isinstance(key, str):
            return Refused(Error.UNKNOWN_TOPIC_ID)
        if topic is None or not 0 <= index < len(topic.partitions) or self._node in topic.partitions[index].replicas:
            return Refused(Error.UNKNOWN_TOPIC_OR_PARTITION)
        return Refused(Error.NOT_LEADER_OR_FOLLOWER)

    def take_new_roles(self) -> list[Partition]:
        """The partitions that are gone, or whose role has changed, since this was last asked."""
        roles, self._new_roles = self._new_roles, {}
        return list(roles)

    def fence(self, fenced: bool) -> None:
        """This broker may not lead anything, or may again."""
        self._fenced = fenced
        self._registered |= not fenced
        if self._registered and self.lacks_records:
            self.lacks_records = False
            self._note_lack(self.directory.lack_is_known)
        for partition in self.all():
            partition.fence(fenced)

    def _note_lack(self, note: Callable[[], None]) -> None:
        try:
            note()
        except StorageError as error:
            self._logger.error("whether a log lacks records could not be written down: %s", error)

    @property
    def room(self) -> int:
        """How many more partitions this broker can hold."""
        return self._partitions_max - sum(map(len, self.by_name.values())) - len(self.additions)

    def all(self) -> list[Partition]:
        return [partition for partitions in self.by_name.values() for partition in partitions.values()]

    # ------------------------------------------------------------------ at start

    def open(self, image: MetadataImage, settings: Settings, now: Instant) -> None:
        """Open every log that the metadata puts here, and set aside what it does not."""
        self._image = image
        self._clustered = settings.config.zookeeper_connect is not None
        self._lag_max_ms = settings.config.replica_lag_time_max_ms
        stored, self._leftovers = self.directory.load()
        for name, topic_id in stored:
            self._sort_out(image, name, topic_id)
        there = {name for name, _ in stored}
        self.lacks_records = self.directory.lacks_records
        for topic in image.topics.values():
            config = self._config_of(topic, settings)
            for info in topic.partitions:
                if self._node in info.replicas:
                    self._add(topic, info, config, now)
                    self.lacks_records |= self._lacks_records(topic, info, there)
        if self._clustered and self.lacks_records:
            self._note_lack(self.directory.mark_lack)

    def _lacks_records(self, topic: TopicInfo, info: PartitionInfo, there: Collection[TopicPartition]) -> bool:
        """Was the log cut, or is it missing although this broker is in sync with others that have one?"""
        if self.by_id[topic.id.int][info.index].log.was_cut:
            return True
        was_led = info.leader != NO_LEADER or info.leader_epoch > 0
        return was_led and self._node in info.isr and TopicPartition(topic.name, info.index) not in there

    def _config_of(self, topic: TopicInfo, settings: Settings) -> TopicConfig:
        """A topic's settings: its own over the broker's defaults."""
        defaults = settings.config.topic_defaults
        known = self._configs.get(topic.id)
        if known is not None and known[0] is topic.config and known[1] is defaults:
            return known[2]
        for text in problems(topic.config):
            self._logger.error("a setting of %s is left out: %s", topic.name, text)
        config = TopicConfig.merge(topic.config, defaults)
        self._configs[topic.id] = topic.config, defaults, config
        return config

    def _sort_out(self, image: MetadataImage, name: TopicPartition, topic_id: TopicId | None) -> None:
        """Decide what to do with a directory: its topic exists, or was deleted, or is unknown.

        The id in a directory is safe on disk with the first sync of its log. So if a directory has lost its id in a
        power failure, and has the name of a topic that was being deleted, it holds nothing that was ever acknowledged.
        In a cluster, topics are deleted and partitions given to others while this broker is away. A topic whose
        metadata is damaged may be repaired, so its directories stay.
        """
        topic = image.topics.get(name.topic)
        if topic_path(name.topic) in image.damaged:
            return
        names = {mark.name for mark in image.deleted_topics.values()} if topic_id is None else ()
        doomed = topic_id in image.deleted_topics or name.topic in names
        known = topic is not None and topic_id in (topic.id, None) and name.partition < len(topic.partitions)
        if known and self._clustered and topic is not None:
            known = self._node in topic.partitions[name.partition].replicas
        if known and not doomed:
            return
        if doomed or (self._clustered and topic_id is not None):
            self._leftovers.append(self.directory.set_aside(name, topic_id))
        else:
            kept = self.directory.keep_stray(name, topic_id)
            self._logger.warning("the metadata does not know %s; its files are kept in %s", name, kept)

    def _add(self, topic: TopicInfo, info: PartitionInfo, config: TopicConfig, now: Instant) -> None:
        name = TopicPartition(topic.name, info.index)
        log = self.directory.open(name, topic.id, config, now=now)
        high_watermark = self.directory.high_watermarks.get(name, 0) if self._clustered else None
        partition = Partition(name, topic.id, log, self._node, high_watermark=high_watermark)
        partition.lag_max_ms = self._lag_max_ms
        partition.fence(self._fenced)
        self._give_role(partition, info, now)
        if partition.sync_due():
            _sync_now(log, now)
            partition.advance(now.mono_ms)
        partitions = self.by_id.setdefault(topic.id.int, {})
        partitions[info.index] = partition
        self.by_name[topic.name] = partitions

    def _give_role(self, partition: Partition, info: PartitionInfo, now: Instant) -> None:
        if self._clustered and not self._registered:
            partition.former_epoch = info.leader_epoch
        is_new = partition.become(
            leader=info.leader,
            epoch=info.leader_epoch,
            isr=info.isr,
            replicas=info.replicas,
            version=self._image.versions.get(partition_path(partition.name.topic, info.index), -1),
            now_ms=now.mono_ms,
        )
        if is_new:
            self._new_roles[partition] = None

    def start(self, broker: "Broker") -> None:
        """Start maintaining the logs; remove what earlier deletions left behind."""
        config, now, every = broker.config, broker.now, broker.timers.every
        every(SYNC_CHECK_INTERVAL_MS, lambda now: self._sync_due(broker, now), now=now)
        every(config.log_retention_check_interval_ms, lambda now: self._delete_old(broker, now), now=now)
        every(config.log_flush_offset_checkpoint_interval_ms, lambda now: self.checkpoint(broker), now=now)
        every(config.producer_id_expiration_check_interval_ms, lambda now: self._expire_producers(broker, now), now=now)
        self._remove_leftovers(broker)

    # ------------------------------------------------------------------ as the metadata changes

    def apply(self, broker: "Broker", delta: Delta) -> None:
        """Make the local partitions what the metadata now says."""
        changed: Mapping[TopicName, Collection[int] | None] = delta.topics
        if delta.broker_configs:
            changed = dict.fromkeys([*broker.image.topics, *delta.topics])
        self.additions.begin()
        for name, states in changed.items():
            topic = broker.image.topics.get(name)
            local = self.by_name.get(name)
            if local is not None and (topic is None or topic.id.int not in self.by_id):
                self._delete_topic(broker, name, local)
            elif local is None and topic is None and self.additions.forget(name):
                self._delete_unmade(broker, name)
            if topic is not None:
                self._update(broker, topic, states)
        self._add_more_later(broker)

    def _update(self, broker: "Broker", topic: TopicInfo, states: Collection[int] | None) -> None:
        """Make one topic's partitions what they should be: those whose state has changed, or all."""
        config = self._config_of(topic, broker.settings)
        local = self.by_id.get(topic.id.int, {})
        for info in topic.partitions if states is None else [topic.partitions[index] for index in states]:
            partition = local.get(info.index)
            if partition is None:
                if self._node in info.replicas:
                    self._try_to_add(broker, topic, info, config)
                continue
            if partition.log.config is not config:
                partition.log.update_config(config)
            if self._node not in info.replicas:
                self._drop(broker, partition)
            elif not _has_role(partition, info):
                self._give_role(partition, info, broker.now)

    def _try_to_add(self, broker: "Broker", topic: TopicInfo, info: PartitionInfo, config: TopicConfig) -> None:
        """The metadata is written, whether the disk has room or not: a partition without a log is not served."""
        if not self.additions.may_add(TopicPartition(topic.name, info.index)):
            return
        try:
            self._add(topic, info, config, broker.now)
        except StorageError as error:
            self._logger.error("%s-%d has no log, it is tried again: %s", topic.name, info.index, error)
            deadline_ms = broker.now.mono_ms + ADD_AGAIN_MS
            broker.timers.at(deadline_ms, lambda _: self._add_again(broker, topic.id, info.index))

    def _add_again(self, broker: "Broker", topic_id: TopicId, index: int) -> None:
        topic = broker.image.topic_by_id(topic_id)
        if topic is not None and index not in self.by_id.get(topic_id.int, {}):
            broker.look_again_at([TopicPartition(topic.name, index)])

    def _add_more_later(self, broker: "Broker") -> None:
        additions = self.additions
        if len(additions) and not additions.is_scheduled:
            additions.is_scheduled = True
            broker.timers.at(broker.now.mono_ms + PAUSE_MS, lambda _: self._add_more(broker))

    def _add_more(self, broker: "Broker") -> None:
        self.additions.is_scheduled = False
        broker.look_again_at([name for name in self.additions.take() if broker.image.has_partition(*name)])
        self.additions.settle()

    def _drop(self, broker: "Broker", partition: Partition) -> None:
        """This broker no longer holds the partition. Its files are removed."""
        name, topic_id = partition.name, partition.topic_id
        partition.leave(Error.NOT_LEADER_OR_FOLLOWER)
        local = self.by_id[topic_id.int]
        del local[name.partition]
        if not local:
            del self.by_name[name.topic], self.by_id[topic_id.int]
        self._new_roles[partition] = None
        directories = self._set_aside([partition])
        if directories:
            self._remove(broker, directories=directories)

    def _delete_topic(self, broker: "Broker", name: TopicName, local: dict[int, Partition]) -> None:
        topic_id = next(iter(local.values())).topic_id
        for partition in local.values():
            partition.leave(Error.UNKNOWN_TOPIC_OR_PARTITION)
            self._new_roles[partition] = None
        directories = self._set_aside(list(local.values()))
        del self.by_name[name]
        del self.by_id[topic_id.int]
        self._configs.pop(topic_id, None)
        self._remove(broker, directories=directories, topic_id=topic_id if len(directories) == len(local) else None)

    def _delete_unmade(self, broker: "Broker", name: TopicName) -> None:
        """The topic had no log here yet: there is nothing to remove, but its mark in the metadata is dealt with."""
        for topic_id, mark in broker.image.deleted_topics.items():
            if mark.name == name and topic_id not in self._removals.values():
                self._remove(broker, topic_id=topic_id)

    def _set_aside(self, partitions: Sequence[Partition]) -> list[str]:
        """Rename the directories; they may be removed now."""
        directories = []
        for partition in partitions:
            try:
                directories.append(self.directory.set_aside(partition.name, partition.topic_id))
            except StorageError as error:
                self._logger.error("%s could not be set aside, the next start does it: %s", partition.name, error)
        return directories

    # ------------------------------------------------------------------ removing files

    def _remove(
        self,
        broker: "Broker",
        *,
        files: Sequence[str] = (),
        directories: Sequence[str] = (),
        topic_id: TopicId | None = None,
    ) -> None:
        """Have files removed; with the last files of a deleted topic, its mark in the metadata may be removed too."""
        self._removal_count += 1
        self._removals[self._removal_count] = topic_id
        broker.effects.append(Remove(self._removal_count, files, directories))

    def remove_later(self, broker: "Broker", partition: Partition, files: Sequence[str]) -> None:
        """Have files removed that a log no longer refers to, once nobody reads them any more."""
        if files:
            deadline_ms = broker.now.mono_ms + partition.log.config.file_delete_delay_ms
            broker.timers.at(deadline_ms, lambda _: self._remove(broker, files=files))

    def removed(self, broker: "Broker", token: int) -> None:
        topic_id = self._removals.pop(token)
        if topic_id is not None:
            broker.propose(lambda: forget_topic(broker.image, topic_id, self._node), _ignore)

    def _remove_leftovers(self, broker: "Broker") -> None:
        leftovers, self._leftovers = self._leftovers, []
        if leftovers:
            self._remove(broker, directories=leftovers)
        for topic_id, mark in sorted(broker.image.deleted_topics.items()):
            if self._node in mark.replicas or not mark.replicas:
                self._remove(broker, topic_id=topic_id)  # removals run in order: this is after all leftovers

    # ------------------------------------------------------------------ as a follower

    def append(self, broker: "Broker", partition: Partition, data: memoryview) -> None:
        """Append what the leader sent; see ``Partition.append_as_follower``."""
        safe_before = partition.log.recovery_checkpoint
        removed = partition.append_as_follower(data, broker.now)
        if removed:
            self._shortened(broker, partition, safe_before, removed)

    def truncate(self, broker: "Broker", partition: Partition, diverging: EpochEnd) -> None:
        """Cut off what the leader does not have."""
        before, safe_before = partition.log.end_offset, partition.log.recovery_checkpoint
        committed = partition.high_watermark
        removed = partition.truncate(diverging, broker.now)
        end = partition.log.end_offset
        if end < committed:
            self._logger.warning("%s is cut at offset %d, before its high watermark %d", partition.name, end, committed)
        elif end < before:
            self._logger.info("%s is cut at offset %d; it ended at %d", partition.name, end, before)
        self._shortened(broker, partition, safe_before, removed)

    def forget_unknown(self, broker: "Broker", partition: Partition) -> None:
        safe_before = partition.log.recovery_checkpoint
        self._shortened(broker, partition, safe_before, partition.forget_unknown(broker.now))

    def restart(self, broker: "Broker", partition: Partition, offset: int) -> None:
        """Delete everything, and go on at *offset*."""
        safe_before = partition.log.recovery_checkpoint
        self._logger.warning("%s begins anew at offset %d, its leader has nothing older", partition.name, offset)
        self._shortened(broker, partition, safe_before, partition.restart_at(offset, broker.now))

    def _shortened(self, broker: "Broker", partition: Partition, safe_before: int, removed: Sequence[str]) -> None:
        """What will be written in place of what was cut must not count as safe on disk."""
        if partition.log.end_offset < safe_before:
            self.directory.lower_recovery_point(partition.name)
        self.remove_later(broker, partition, removed)

    def follow_start(self, broker: "Broker", partition: Partition, offset: int) -> bool:
        """The leader's log starts at *offset*. Did this one's start move?"""
        if offset <= partition.log.log_start_offset or offset > partition.high_watermark:
            return False
        partition.log.advance_start(offset, high_watermark=partition.high_watermark)
        partition.changed()
        return True

    # ------------------------------------------------------------------ looking after the logs

    def delete_records(self, broker: "Broker", partition: Partition, offset: int) -> None:
        """Advance a partition's log start offset, and delete the segments that lie wholly before it."""
        if partition.log.advance_start(offset, high_watermark=partition.high_watermark):
            partition.changed()
            self.checkpoint(broker)
            self._drop_segments(broker, partition, partition.log.delete_before_start)

    def _delete_old(self, broker: "Broker", now: Instant) -> None:
        for partition in self.all():
            self._drop_segments(broker, partition, partial(partition.log.delete_old_segments, now))

    def _drop_segments(self, broker: "Broker", partition: Partition, drop: Callable[..., list[str]]) -> None:
        start = partition.log.log_start_offset
        try:
            files = drop(high_watermark=partition.high_watermark)
        except (StorageError, CorruptData) as error:
            self._logger.error("old segments of %s could not be deleted: %s", partition.name, error)
            return
        if partition.log.log_start_offset != start:
            self._logger.info("%s now starts at offset %d", partition.name, partition.log.log_start_offset)
            partition.changed()
        self.remove_later(broker, partition, files)

    def _sync_due(self, broker: "Broker", now: Instant) -> None:
        for partition in self.all():
            if partition.log.sync_due(now):
                self.syncs.start(partition, broker.effects)

    def _expire_producers(self, broker: "Broker", now: Instant) -> None:
        for partition in self.all():
            partition.log.producers.expire(now.wall_ms, broker.config.producer_id_expiration_ms)

    def checkpoint(self, broker: "Broker") -> None:
        """Write down up to where each log is safe. The files are put in place once they are on disk."""
        if self._checkpointing:
            self._checkpoint_again = True
            return
        try:
            files = self.directory.prepare_checkpoints(*self._offsets())
        except StorageError as error:
            self._logger.error("the checkpoints could not be written, it is tried again later: %s", error)
            return
        self._checkpointing = True
        self.syncs.sync(files, lambda effects, now: self._checkpoint_synced(broker), broker.effects)

    def _checkpoint_synced(self, broker: "Broker") -> None:
        try:
            self.directory.commit_checkpoints()
        except StorageError as error:
            self._logger.error("the checkpoints could not be put in place, it is tried again later: %s", error)
        self._checkpointing = False
        if self._checkpoint_again:
            self._checkpoint_again = False
            self.checkpoint(broker)

    def checkpoint_high_watermarks(self, high_watermarks: dict[TopicPartition, int]) -> None:
        """Write down each partition's high watermark. This only affects how soon consumers can go on after a start."""
        try:
            self.directory.write_high_watermarks(high_watermarks)
        except StorageError as error:
            self._logger.error("the high watermarks could not be written, it is tried again later: %s", error)

    def _offsets(self) -> tuple[dict[TopicPartition, Log], dict[TopicPartition, int]]:
        partitions = self.all()
        return {p.name: p.log for p in partitions}, {p.name: p.high_watermark for p in partitions}

    def close(self, now: Instant) -> None:
        """Sync every log, and note that the next start needs no recovery."""
        clean = True
        for partition in self.all():
            try:
                _sync(partition.log, partition.log.prepare_to_close(), now)
            except (StorageError, CorruptData) as error:
                self._logger.error(
                    "%s could not be closed, the next start recovers all logs: %s", partition.name, error
                )
                clean = False
        self.directory.write_checkpoints(*self._offsets())
        if clean:
            self.directory.mark_clean()
        for partition in self.all():
            partition.log.close()

    def check(self) -> None:
        self.additions.check()
        assert {id(partitions) for partitions in self.by_name.values()} == {id(p) for p in self.by_id.values()}
        for number, partitions in self.by_id.items():
            for index, partition in partitions.items():
                assert partition.name.partition == index
                assert partition.topic_id.int == number
                assert self.by_name[partition.name.topic] is partitions
                assert not partition.gone
                partition.check()


def _has_role(partition: Partition, info: PartitionInfo) -> bool:
    """Is its role what the metadata says, and does no follower's joining depend on news from the metadata?"""
    return (
        partition.leader == info.leader
        and partition.leader_epoch == info.leader_epoch
        and partition.isr == info.isr
        and partition.replicas == info.replicas
        and not any(follower.joining for follower in partition.followers.values())
    )


def _sync_now(log: Log, now: Instant) -> None:
    """A process that died may leave records that it never acknowledged. A retry would be told that they are there."""
    _sync(log, log.files_to_sync(), now)


def _sync(log: Log, job: SyncJob, now: Instant) -> None:
    for file in job.files:
        file.sync()
    log.synced(job, now)


def _ignore(_: Refused | None) -> None:
    """A mark that could not be removed is found again at the next start."""
