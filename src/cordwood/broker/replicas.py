"""The partitions that this broker holds: opened at start, made and removed as the metadata says, looked after since.

Invariants (``check``): by name and by id it is the same partitions; each lies where the metadata puts it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cordwood.broker.settings import Settings
from cordwood.broker.syncs import Syncs
from cordwood.cluster.controller import forget_topic
from cordwood.cluster.image import Delta, MetadataImage, PartitionInfo, TopicInfo
from cordwood.config import TopicConfig
from cordwood.config.topic import problems
from cordwood.effects import Remove
from cordwood.errors import CorruptData, Error, Refused, StorageError
from cordwood.ids import NodeId, TopicId, TopicName, TopicPartition
from cordwood.log.directory import LogDirectory
from cordwood.log.log import Log, SyncJob
from cordwood.partition.partition import Partition
from cordwood.ports import Instant, Logger

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

SYNC_CHECK_INTERVAL_MS = 1000


class Replicas:
    """All local partitions, and the data directory they lie in."""

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
        self.by_id: dict[TopicId, dict[int, Partition]] = {}
        self.syncs = Syncs()
        self._node = node
        self._logger = logger
        self._removals: dict[int, TopicId | None] = {}
        self._removal_count = 0
        self._leftovers: list[str] = []
        self._partitions_max = partitions_max
        self._checkpointing = False
        self._checkpoint_again = False

    def get(self, topic: TopicName, index: int) -> Partition:
        partitions = self.by_name.get(topic)
        if partitions is None or (partition := partitions.get(index)) is None:
            raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION)
        return partition

    @property
    def room(self) -> int:
        """How many more partitions this broker can hold."""
        return self._partitions_max - sum(map(len, self.by_name.values()))

    def all(self) -> list[Partition]:
        return [partition for partitions in self.by_name.values() for partition in partitions.values()]

    # ------------------------------------------------------------------ at start

    def open(self, image: MetadataImage, settings: Settings, now: Instant) -> None:
        """Open every log that the metadata puts here, and set aside what it does not know."""
        stored, self._leftovers = self.directory.load()
        for name, topic_id in stored:
            self._sort_out(image, name, topic_id)
        for topic in image.topics.values():
            config = self._config_of(topic, settings)
            for info in topic.partitions:
                if self._node in info.replicas:
                    self._add(topic, info, config, now)

    def _config_of(self, topic: TopicInfo, settings: Settings) -> TopicConfig:
        """A topic's settings: its own over the broker's defaults."""
        for text in problems(topic.config):
            self._logger.error("a setting of %s is left out: %s", topic.name, text)
        return TopicConfig.merge(topic.config, settings.config.topic_defaults)

    def _sort_out(self, image: MetadataImage, name: TopicPartition, topic_id: TopicId | None) -> None:
        """A directory belongs to a topic, or to one that was deleted, or to nobody knows whom.

        Which id it belongs to is safe on the disk with the first sync of its log. A directory that lost its id with the
        power, under the name of a topic that was being deleted, has nothing in it that anybody was promised.
        """
        topic = image.topics.get(name.topic)
        names = {mark.name for mark in image.deleted_topics.values()} if topic_id is None else ()
        doomed = topic_id in image.deleted_topics or name.topic in names
        known = topic is not None and topic_id in (topic.id, None) and name.partition < len(topic.partitions)
        if known and not doomed:
            return
        if doomed:
            self._leftovers.append(self.directory.set_aside(name, topic_id))
        else:
            kept = self.directory.keep_stray(name, topic_id)
            self._logger.warning("the metadata does not know %s; its files are kept in %s", name, kept)

    def _add(self, topic: TopicInfo, info: PartitionInfo, config: TopicConfig, now: Instant) -> None:
        name = TopicPartition(topic.name, info.index)
        log = self.directory.open(name, topic.id, config, now=now)
        partition = Partition(name, topic.id, log, self._node)
        partition.become(leader=info.leader, epoch=info.leader_epoch, isr=info.isr)
        if partition.sync_due():
            _sync_now(log, now)
        partitions = self.by_id.setdefault(topic.id, {})
        partitions[info.index] = partition
        self.by_name[topic.name] = partitions

    def start(self, broker: "Broker") -> None:
        """Begin to look after the logs; remove what earlier deletions left behind."""
        config, now, every = broker.config, broker.now, broker.timers.every
        every(SYNC_CHECK_INTERVAL_MS, lambda now: self._sync_due(broker, now), now=now)
        every(config.log_retention_check_interval_ms, lambda now: self._delete_old(broker, now), now=now)
        every(config.log_flush_offset_checkpoint_interval_ms, lambda now: self.checkpoint(broker), now=now)
        every(config.producer_id_expiration_check_interval_ms, lambda now: self._expire_producers(broker, now), now=now)
        self._remove_leftovers(broker)

    # ------------------------------------------------------------------ as the metadata changes

    def apply(self, broker: "Broker", delta: Delta) -> None:
        """Make the local partitions what the metadata now says."""
        names = list(broker.image.topics) if delta.broker_configs else list(delta.topics)
        for name in names:
            topic = broker.image.topics.get(name)
            local = self.by_name.get(name)
            if local is not None and (topic is None or topic.id not in self.by_id):
                self._delete_topic(broker, name, local)
            if topic is not None:
                self._update(broker, topic)

    def _update(self, broker: "Broker", topic: TopicInfo) -> None:
        config = self._config_of(topic, broker.settings)
        local = self.by_id.get(topic.id, {})
        for info in topic.partitions:
            partition = local.get(info.index)
            if partition is not None:
                partition.log.update_config(config)
                partition.become(leader=info.leader, epoch=info.leader_epoch, isr=info.isr)
            elif self._node in info.replicas:
                self._try_to_add(topic, info, config, broker.now)

    def _try_to_add(self, topic: TopicInfo, info: PartitionInfo, config: TopicConfig, now: Instant) -> None:
        """The metadata is written, whether the disk has room or not: a partition without a log is not served."""
        try:
            self._add(topic, info, config, now)
        except StorageError as error:
            self._logger.error("%s-%d has no log, the next start tries again: %s", topic.name, info.index, error)

    def _delete_topic(self, broker: "Broker", name: TopicName, local: dict[int, Partition]) -> None:
        topic_id = next(iter(local.values())).topic_id
        directories = []
        for partition in local.values():
            partition.gone = True
            partition.changed()
            try:
                directories.append(self.directory.set_aside(partition.name, partition.topic_id))
            except StorageError as error:
                self._logger.error("%s could not be set aside, the next start does it: %s", partition.name, error)
        del self.by_name[name]
        del self.by_id[topic_id]
        self._remove(broker, directories=directories, topic_id=topic_id if len(directories) == len(local) else None)

    # ------------------------------------------------------------------ removing files

    def _remove(
        self,
        broker: "Broker",
        *,
        files: Sequence[str] = (),
        directories: Sequence[str] = (),
        topic_id: TopicId | None = None,
    ) -> None:
        """Have files removed; when the last of a deleted topic are gone, its mark in the metadata may go too."""
        self._removal_count += 1
        self._removals[self._removal_count] = topic_id
        broker.effects.append(Remove(self._removal_count, files, directories))

    def remove_later(self, broker: "Broker", partition: Partition, files: Sequence[str]) -> None:
        """Have files removed that a log has let go of, when nobody reads them any more."""
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
                self._remove(broker, topic_id=topic_id)  # removals happen in order: after all leftovers

    # ------------------------------------------------------------------ looking after the logs

    def delete_records(self, broker: "Broker", partition: Partition, offset: int) -> None:
        """Let a partition start at *offset*, and drop the segments that lie wholly before it."""
        if partition.log.advance_start(offset, high_watermark=partition.high_watermark):
            partition.changed()
            self.checkpoint(broker)
            self._drop_segments(broker, partition, broker.now)

    def _delete_old(self, broker: "Broker", now: Instant) -> None:
        for partition in self.all():
            self._drop_segments(broker, partition, now)

    def _drop_segments(self, broker: "Broker", partition: Partition, now: Instant) -> None:
        start = partition.log.log_start_offset
        try:
            files = partition.log.delete_old_segments(now, high_watermark=partition.high_watermark)
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
        """Write down how far each log is safe. The files are put in place once they are on the disk."""
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

    def _offsets(self) -> tuple[dict[TopicPartition, Log], dict[TopicPartition, int]]:
        partitions = self.all()
        return {p.name: p.log for p in partitions}, {p.name: p.high_watermark for p in partitions}

    def close(self, now: Instant) -> None:
        """Bring every log to the disk and note that the next start needs no recovery."""
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
        assert {id(partitions) for partitions in self.by_name.values()} == {id(p) for p in self.by_id.values()}
        for topic_id, partitions in self.by_id.items():
            for index, partition in partitions.items():
                assert partition.name.partition == index
                assert partition.topic_id == topic_id
                assert self.by_name[partition.name.topic] is partitions
                assert not partition.gone
                partition.check()


def _sync_now(log: Log, now: Instant) -> None:
    """A process that died may leave what it never acknowledged and a repeated request would be told is there."""
    _sync(log, log.files_to_sync(), now)


def _sync(log: Log, job: SyncJob, now: Instant) -> None:
    for file in job.files:
        file.sync()
    log.synced(job, now)


def _ignore(_: Refused | None) -> None:
    """A mark that could not be removed is found again at the next start."""
