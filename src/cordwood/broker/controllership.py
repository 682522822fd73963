"""The controller's part of a broker: it stands for election, and while elected, it keeps the cluster in order.

The image shows what has to be done: a partition whose state is not what it should be, a reassignment that has finished.
So a new controller only has to look at everything once; afterwards it looks at what has changed. A partition that is
being changed (*busy*) is left alone until the store has answered, and is then looked at again.

Every write of the controller fails if another one has been elected in the meantime. Without a cluster, nothing happens
here.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from cordwood.broker.portions import next_portion
from cordwood.broker.timers import Timer
from cordwood.cluster import layout
from cordwood.cluster.election import imbalanced, needed_state, preferred_state
from cordwood.cluster.image import Delta, PartitionInfo, TopicInfo
from cordwood.cluster.reassignment import Move, completed, write_moves
from cordwood.cluster.registration import remove_broker
from cordwood.cluster.states import STATES_MAX, Live, State, is_damaged, state_of, write_states
from cordwood.config import TopicConfig
from cordwood.effects import PurgeChanges
from cordwood.errors import Refused
from cordwood.ids import NodeId, TopicName, TopicPartition
from cordwood.ports import Check, Create, Instant, Set, StoreOp

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

PlanFor = Callable[[Sequence[TopicPartition]], list[StoreOp]]

RETRY_MS = 200
UNDER_WAY_MAX = 2
"""How many portions may be with the store at a time."""
PURGE_INTERVAL_MS = 60_000
ELECTIONS_MAX = 1000
"""How many partitions are given back to their preferred leaders in one check, as in Kafka."""


class Controllership:
    """What this broker does as the controller, or to become it."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._standing = False
        self._epoch = -1
        """The controller epoch for which everything has been looked at."""
        self._busy: dict[TopicPartition, None] = {}
        self._portions: deque[tuple[PlanFor, Sequence[TopicPartition]]] = deque()
        self._under_way = 0
        self._portion_max = STATES_MAX
        """How many partitions are changed at once: fewer after failures, so that a bad one does not block others."""
        self._proposing = False
        self._failing = False
        """Did the last change fail? It is retried until it succeeds, and logged only once."""
        self._retry: Timer | None = None

    @property
    def active(self) -> bool:
        """Is this broker the controller?"""
        broker = self._broker
        return broker.image.controller == broker.node and broker.clustered and not broker.membership.fenced

    def unclean(self, topic: TopicInfo) -> bool:
        """May an out-of-sync replica become leader of this topic?"""
        config = TopicConfig.merge(topic.config, self._broker.config.topic_defaults)
        return config.unclean_leader_election_enable

    def start(self) -> None:
        broker = self._broker
        if not broker.clustered:
            return
        every, config = broker.timers.every, broker.config
        every(PURGE_INTERVAL_MS, self._purge, now=broker.now)
        if config.auto_leader_rebalance_enable:
            every(config.leader_imbalance_check_interval_seconds * 1000, self._rebalance, now=broker.now)

    # ------------------------------------------------------------------ when to look

    def apply(self, delta: Delta) -> None:
        """Stand for election, or deal with what has changed."""
        if not self._broker.clustered:
            return
        if not self.active:
            self._stand()
        elif self._is_new or delta.reloaded or delta.brokers or delta.broker_configs:
            self._look_at_everything()
        elif delta.topics:
            self._look(self._touched(delta))

    def fenced_changed(self) -> None:
        """This broker was registered, or fenced."""
        if self.active:
            self._look_at_everything()
        else:
            self._stand()

    @property
    def _is_new(self) -> bool:
        return self._epoch != self._broker.image.controller_epoch

    def _look_at_everything(self) -> None:
        image = self._broker.image
        if self._is_new:
            self._epoch = image.controller_epoch
            self._broker.logger.info("broker %d is the controller, epoch %d", self._broker.node, self._epoch)
        self._look((topic, partition) for topic in image.topics.values() for partition in topic.partitions)

    def _touched(self, delta: Delta) -> list[tuple[TopicInfo, PartitionInfo]]:
        topics = self._broker.image.topics
        everything = {name: range(len(topics[name].partitions)) for name in delta.topics if name in topics}
        return self._find(
            TopicPartition(name, index)
            for name, indexes in delta.topics.items()
            for index in (everything.get(name, ()) if indexes is None else indexes)
        )

    def _later(self) -> None:
        """Something failed: look again after a while."""
        if self._retry is None:
            self._retry = self._broker.timers.at(self._broker.now.mono_ms + RETRY_MS, self._again)

    def _again(self, now: Instant) -> None:
        self._retry = None
        self.fenced_changed()

    # ------------------------------------------------------------------ becoming the controller

    def _stand(self) -> None:
        membership = self._broker.membership
        if self._broker.image.controller is None and not (self._standing or membership.fenced or membership.stopping):
            self._standing = True
            self._broker.propose(self._plan_candidacy, self._stood)

    def _plan_candidacy(self) -> list[StoreOp]:
        broker = self._broker
        image, path = broker.image, layout.CONTROLLER_EPOCH
        if image.controller is not None or broker.membership.fenced:
            return []
        return [
            Create(layout.CONTROLLER, layout.controller_data(broker.node, broker.now.wall_ms), ephemeral=True),
            Set(path, str(image.controller_epoch + 1).encode(), image.versions[path]),
        ]

    def _stood(self, refusal: Refused | None) -> None:
        self._standing = False
        if refusal is not None:
            self._later()

    # ------------------------------------------------------------------ keeping partitions in order

    def _look(self, partitions: Iterable[tuple[TopicInfo, PartitionInfo]]) -> None:
        """Find what is out of order and have it put right, beginning with partitions that have no leader."""
        live = Live.of(self._broker.image)
        leaderless: list[TopicPartition] = []
        others: list[TopicPartition] = []
        ended: dict[TopicName, list[TopicPartition]] = {}
        for topic, partition in partitions:
            state = self._needed(topic, partition, live)
            if state is None and not partition.moving:
                continue
            name = TopicPartition(topic.name, partition.index)
            if name in self._busy:
                continue
            if state is not None:
                (others if state.leader == partition.leader else leaderless).append(name)
            elif completed(partition.assignment, state_of(partition), live) is not None:
                ended.setdefault(topic.name, []).append(name)
        self._change(leaderless + others, self._plan_states)
        for names in ended.values():
            self._change(names, self._plan_ends)

    def _change(self, names: Sequence[TopicPartition], plan: PlanFor) -> None:
        """Have these partitions changed, a portion at a time."""
        self._busy.update(dict.fromkeys(names))
        size = self._portion_max
        self._portions += ((plan, names[start : start + size]) for start in range(0, len(names), size))
        self._propose()

    def _propose(self) -> None:
        """Keep the store busy, but not more: the first portion is sent before the last is planned."""
        if self._proposing:
            return  # a portion in which nothing was left to do was done at once, below
        self._proposing = True
        while self._portions and self._under_way < UNDER_WAY_MAX:
            plan, names = self._portions.popleft()
            self._under_way += 1
            self._broker.propose(partial(self._fenced_plan, plan, names), partial(self._changed, names))
        self._proposing = False

    def _fenced_plan(self, plan: PlanFor, names: Sequence[TopicPartition]) -> list[StoreOp]:
        """A plan that only the current controller can carry out."""
        image, path = self._broker.image, layout.CONTROLLER_EPOCH
        operations = plan(names) if self.active else []
        return [Check(path, image.versions[path]), *operations] if operations else []

    def _changed(self, names: Sequence[TopicPartition], refusal: Refused | None) -> None:
        self._under_way -= 1
        for name in names:
            del self._busy[name]
        if refusal is not None and not self._failing:
            self._broker.logger.warning("the controller could not change %d partition(s): %s", len(names), refusal)
        self._failing = refusal is not None
        self._portion_max = next_portion(self._portion_max, refusal)
        if refusal is not None:
            self._later()
        elif self.active:
            self._look(self._find(names))
        self._propose()

    def _find(self, names: Iterable[TopicPartition]) -> list[tuple[TopicInfo, PartitionInfo]]:
        topics = self._broker.image.topics
        return [
            (topic, topic.partitions[index])
            for name, index in names
            if (topic := topics.get(name)) is not None and index < len(topic.partitions)
        ]

    def _plan_states(self, names: Sequence[TopicPartition]) -> list[StoreOp]:
        image = self._broker.image
        live = Live.of(image)
        states = {
            TopicPartition(topic.name, partition.index): state
            for topic, partition in self._find(names)
            if (state := self._needed(topic, partition, live)) is not None
        }
        return write_states(image, states)

    def _needed(self, topic: TopicInfo, partition: PartitionInfo, live: Live) -> State | None:
        if partition.leader_epoch < 0 and is_damaged(self._broker.image, topic.name, partition.index):
            return None  # it has a state: which replica may lead it, and in which epoch, is for a person to decide
        return needed_state(topic, partition, live, self.unclean)

    def _plan_ends(self, names: Sequence[TopicPartition]) -> list[StoreOp]:
        """End the reassignments of one topic's partitions that have finished."""
        image = self._broker.image
        live = Live.of(image)
        moves: dict[int, Move] = {}
        found = self._find(names)
        for _, partition in found:
            move = completed(partition.assignment, state_of(partition), live)
            if move is not None:
                moves[partition.index] = move
        return write_moves(image, found[0][0], moves) if moves else []

    # ------------------------------------------------------------------ periodic work

    def _rebalance(self, now: Instant) -> None:
        """Give partitions back to their preferred leaders."""
        if self.active:
            image = self._broker.image
            names = (TopicPartition(topic.name, part.index) for topic, part in imbalanced(image, Live.of(image)))
            free = [name for name in names if name not in self._busy]
            self._change(free[:ELECTIONS_MAX], self._plan_preferred)

    def _plan_preferred(self, names: Sequence[TopicPartition]) -> list[StoreOp]:
        image = self._broker.image
        live = Live.of(image)
        states = {
            TopicPartition(topic.name, partition.index): state
            for topic, partition in self._find(names)
            if (state := preferred_state(partition, live)) is not None
        }
        return write_states(image, states)

    def _purge(self, now: Instant) -> None:
        if self.active:
            self._broker.effects.append(PurgeChanges())

    # ------------------------------------------------------------------ deaths of other brokers

    def process_is_gone(self, node: NodeId) -> None:
        """Nothing listens at a broker's address any more. The controller acts; or everybody, if it was the controller.

        If the broker is alive after all, it finds its registration gone and registers again.
        """
        broker = self._broker
        image = broker.image
        if node not in image.brokers or broker.membership.fenced or not (self.active or image.controller == node):
            return
        epoch = image.broker_epoch(node)
        broker.logger.info("broker %d is gone: its process does not listen any more", node)
        broker.propose(lambda: remove_broker(image, node, epoch), _ignore)


def _ignore(_: Refused | None) -> None:
    """If this fails, the end of the broker's session has the same effect."""
