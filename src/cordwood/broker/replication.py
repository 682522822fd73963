"""Replication, from both ends: this broker fetches what it follows from the leaders, and watches its own followers."""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from cordwood.broker.fetch_sessions import FetchPartition
from cordwood.broker.fetcher import Fetcher
from cordwood.broker.in_sync import InSync
from cordwood.broker.throttle import Rate, is_named
from cordwood.cluster.image import NO_LEADER, Delta
from cordwood.cluster.states import hand_over, lead_later
from cordwood.errors import Refused
from cordwood.ids import NodeId, TopicPartition
from cordwood.partition.partition import Partition
from cordwood.ports import Instant, StoreOp
from cordwood.wire.messages import FetchResponsePartition

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

RETRY_MS: Final = 1000


class Replication:
    """The fetchers, one for each leader, and the maintenance of in-sync replicas."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.in_sync = InSync(broker)
        self.leader_rate = Rate(lambda: broker.config.leader_replication_throttled_rate)
        self.follower_rate = Rate(lambda: broker.config.follower_replication_throttled_rate)
        self._fetchers: dict[NodeId, Fetcher] = {}
        self._leader_of: dict[Partition, NodeId] = {}
        self._checkpointed: dict[TopicPartition, int] = {}

    def start(self) -> None:
        """Start fetching, and looking for followers that lag."""
        broker = self._broker
        if not broker.clustered:
            self._overtake(broker.replicas.take_new_roles())
            return
        self.fenced_changed()
        self.in_sync.start()
        interval_ms = broker.config.replica_high_watermark_checkpoint_interval_ms
        broker.timers.every(interval_ms, self._checkpoint, now=broker.now)
        self._follow_roles()

    def apply(self, delta: Delta) -> None:
        """Partitions have other leaders, or other followers."""
        broker = self._broker
        if not broker.clustered:
            self._overtake(broker.replicas.take_new_roles())
            return
        self._follow_roles()
        if delta.brokers:
            self.in_sync.brokers_changed(delta)
            if broker.node in delta.brokers:
                self._tell_all()
        for name, states in delta.topics.items():
            local = broker.replicas.by_name.get(name, {})
            for index in local if states is None else states:
                if (partition := local.get(index)) is not None and partition.followers:
                    self.in_sync.reconsider(partition)

    def fenced_changed(self) -> None:
        """This broker has been fenced, or is not fenced any more."""
        replicas = self._broker.replicas
        replicas.fence(self._broker.membership.fenced)
        self._overtake(replicas.all())

    def link_up(self, node: NodeId) -> None:
        """A leader can be reached, perhaps again."""
        fetcher = self._fetchers.get(node)
        if fetcher is not None:
            fetcher.go_on()

    # ------------------------------------------------------------------ following

    def _follow_roles(self) -> None:
        touched: dict[NodeId, None] = {}
        partitions = self._broker.replicas.take_new_roles()
        for partition in partitions:
            self._assign(partition, touched)
        for node in touched:
            self._fetchers[node].go_on(at_once=True)
        self._overtake(partitions)

    def _overtake(self, partitions: Iterable[Partition]) -> None:
        """Lead in a later epoch if the metadata has forgotten epochs, perhaps because a partition's state was
        deleted."""
        for partition in partitions:
            if partition.is_ahead and not partition.gone and not partition.fenced:
                plan = partial(self._plan_to_overtake, partition)
                self._broker.propose(plan, partial(self._overtook, partition))

    def _plan_to_overtake(self, partition: Partition) -> list[StoreOp]:
        broker, name = self._broker, partition.name
        topic = broker.image.topic_by_id(partition.topic_id)
        if topic is None or not partition.is_ahead:
            return []
        return lead_later(broker.image, topic, name.partition, leader=broker.node, after=partition.log.latest_epoch)

    def _overtook(self, partition: Partition, refusal: Refused | None) -> None:
        broker = self._broker
        if refusal is not None:
            broker.timers.at(broker.now.mono_ms + RETRY_MS, lambda _: self._overtake([partition]))
        elif partition.leading:
            broker.logger.warning(
                "%s: the metadata had forgotten leader epochs; broker %d leads on in epoch %d",
                partition.name,
                broker.node,
                partition.leader_epoch,
            )

    def _assign(self, partition: Partition, touched: dict[NodeId, None]) -> None:
        is_led_elsewhere = not partition.gone and partition.leader not in (NO_LEADER, self._broker.node)
        leader = partition.leader if is_led_elsewhere else None
        before = self._leader_of.get(partition)
        if before is not None and before != leader:
            del self._leader_of[partition]
            self._fetchers[before].drop(partition)
            touched[before] = None
        if leader is not None:
            self._leader_of[partition] = leader
            if leader not in self._fetchers:
                self._fetchers[leader] = Fetcher(self._broker, leader)
            self._fetchers[leader].follow(partition)
            touched[leader] = None

    def _tell_all(self) -> None:
        """This broker has registered, or is not registered any more: to its leaders it is a different broker now."""
        for fetcher in self._fetchers.values():
            fetcher.tell_all()
            fetcher.go_on()

    def _checkpoint(self, _: Instant) -> None:
        high_watermarks = {partition.name: partition.high_watermark for partition in self._broker.replicas.all()}
        if high_watermarks != self._checkpointed:
            self._checkpointed = high_watermarks
            self._broker.replicas.checkpoint_high_watermarks(high_watermarks)

    # ------------------------------------------------------------------ leading

    def could_not_write(self, partition: Partition) -> None:
        """The leader's disk failed: another in-sync replica should lead. This one may follow when it can."""
        if self._broker.clustered and partition.leading:
            self._broker.propose(partial(self._plan_to_hand_over, partition, partition.leader_epoch), _ignore)

    def _plan_to_hand_over(self, partition: Partition, epoch: int) -> list[StoreOp]:
        broker = self._broker
        topic = broker.image.topic_by_id(partition.topic_id)
        if topic is None or partition.leader_epoch != epoch:
            return []
        return hand_over(broker.image, topic, partition.name.partition, leader=broker.node)

    # ------------------------------------------------------------------ throttling

    def throttled_as_leader(self, partition: Partition, replica: NodeId) -> bool:
        """Must this follower wait for its records?"""
        replicas = partition.log.config.leader_replication_throttled_replicas
        if not replicas or replica in partition.isr or not is_named(replicas, partition, partition.node):
            return False
        return self.leader_rate.wait_ms(self._broker.now.mono_ms) > 0

    def sent_as_leader(self, entries: list[tuple[FetchPartition, FetchResponsePartition]]) -> None:
        """These records are sent to a follower."""
        for entry, answer in entries:
            local = entry.local
            if answer.records and local is not None:
                replicas = local.log.config.leader_replication_throttled_replicas
                if replicas and is_named(replicas, local, local.node):
                    self.leader_rate.record(len(answer.records), self._broker.now.mono_ms)

    def received_as_follower(self, partition: Partition, size: int) -> None:
        replicas = partition.log.config.follower_replication_throttled_replicas
        if replicas and is_named(replicas, partition, partition.node):
            self.follower_rate.record(size, self._broker.now.mono_ms)

    def check(self) -> None:
        self.in_sync.check()
        for fetcher in self._fetchers.values():
            fetcher.check()
        for partition, leader in self._leader_of.items():
            assert partition.leader == leader
        assert len(self._leader_of) == sum(map(len, self._fetchers.values()))


def _ignore(_: Refused | None) -> None:
    """The next record that cannot be written asks for it again."""
