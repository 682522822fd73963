"""The in-sync replicas of the partitions that this broker leads: who may come in, and who must go.

A follower comes in when it has all that is committed and all that earlier leaders left. It goes when for
``replica.lag.time.max.ms`` it did not have what there was. Either is a compare-and-set on the partition's state in the
metadata, so it fails if anybody else changed that state, and it fails if a follower that is to come in has another life
by now. What came of a proposal only the metadata tells: until it does, whoever was to come in counts.

One proposal for a partition at a time; those that come up in one event go together.
"""

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from cordwood.broker.fetch_sessions import Waiter
from cordwood.broker.portions import next_portion
from cordwood.cluster.image import Delta
from cordwood.cluster.states import STATES_MAX, State, same_life, same_topics, write_state
from cordwood.errors import Refused
from cordwood.ids import NodeId
from cordwood.partition.partition import Partition
from cordwood.ports import Instant, StoreOp

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

UNDER_WAY_MAX: Final = 2
"""So many proposals at a time, while they have to be small ones."""
REST_MS: Final = 100
"""After a proposal that failed: what stood against it is on its way here, or the store has trouble of its own."""


class InSync:
    """Proposals for in-sync replicas."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._wanted: dict[Partition, frozenset[NodeId]] = {}
        """What is to be proposed, with those who must go."""
        self._rest_until_ms = 0
        self._under_way = 0
        self._portion_max = STATES_MAX
        """How many partitions are changed at once: fewer while that fails, or one that cannot be would keep others."""
        self._failed: dict[Partition, None] = {}
        """What was proposed last and failed. That, and how it ends, is said once."""
        self._end_of_event: Waiter | None = None

    def start(self) -> None:
        broker = self._broker
        self._end_of_event = Waiter(0, broker.ready, self._propose)
        broker.timers.every(max(broker.config.replica_lag_time_max_ms // 2, 1), self._look_for_laggards, now=broker.now)

    # ------------------------------------------------------------------ what followers say

    def is_eligible(self, replica: NodeId, epoch: int) -> bool:
        """Is this broker registered, not about to stop, and in the life that *epoch* names (-1 names none)?"""
        image = self._broker.image
        registration = image.brokers.get(replica)
        if registration is None or registration.shutting_down:
            return False
        return epoch in (-1, image.broker_epoch(replica))

    def fetched(
        self, partition: Partition, replica: NodeId, offset: int, start_offset: int, *, epoch: int, eligible: bool
    ) -> None:
        """A follower has all before *offset*."""
        now_ms = self._broker.now.mono_ms
        if partition.fetched_by(replica, offset, start_offset, epoch=epoch, eligible=eligible, now_ms=now_ms):
            self._want(partition)

    def brokers_changed(self, delta: Delta) -> None:
        """Followers that are gone, or live anew, have nothing as far as anybody knows until they fetch again.

        One that has fetched in a life that this broker has not heard of yet has said what it has.
        """
        image = self._broker.image
        for node in delta.brokers:
            epoch = image.broker_epoch(node)
            for partition in self._led():
                follower = partition.followers.get(node)
                if follower is None:
                    continue
                if follower.epoch < epoch or (follower.epoch == epoch and node not in image.brokers):
                    follower.forget()
                else:
                    follower.eligible = self.is_eligible(node, follower.epoch)
                self.reconsider(partition)
                partition.start_moved()

    def reconsider(self, partition: Partition) -> None:
        """Something has changed for a partition: who could not come in before may now be able to."""
        if not partition.leading or partition.proposing:
            return
        if partition.let_in(self._broker.now.mono_ms) or _has_lost(partition):
            self._want(partition)

    def _led(self) -> list[Partition]:
        return [partition for partition in self._broker.replicas.all() if partition.followers]

    def _look_for_laggards(self, now: Instant) -> None:
        for partition in self._led():
            self._look_for_laggards_of(partition, now)

    def _look_for_laggards_of(self, partition: Partition, now: Instant) -> None:
        lagging = partition.lagging(now.mono_ms)
        if lagging and partition.leading and not partition.proposing:
            self._want(partition, frozenset(lagging))

    # ------------------------------------------------------------------ proposals

    def _want(self, partition: Partition, leaving: frozenset[NodeId] = frozenset()) -> None:
        self._wanted[partition] = leaving | self._wanted.get(partition, frozenset())
        self._at_the_end_of_the_event()

    def _at_the_end_of_the_event(self) -> None:
        assert self._end_of_event is not None
        self._end_of_event.arrived(0)

    def _propose(self) -> None:
        now_ms = self._broker.now.mono_ms
        if now_ms < self._rest_until_ms:
            return  # ``_rested`` comes back to it
        while self._wanted and (self._portion_max == STATES_MAX or self._under_way < UNDER_WAY_MAX):
            some = dict(islice(self._wanted.items(), self._portion_max))
            for partition in some:
                del self._wanted[partition]
            self._propose_some(some)

    def _rested(self, now: Instant) -> None:
        for partition in self._failed:
            self._look_for_laggards_of(partition, now)
        if not self._wanted:
            self._failed.clear()  # nobody wants it any more
        self._at_the_end_of_the_event()

    def _propose_some(self, wanted: dict[Partition, frozenset[NodeId]]) -> None:
        epochs = {partition: partition.leader_epoch for partition in wanted}
        for partition in wanted:
            partition.proposing = True
        self._under_way += 1
        self._broker.propose(partial(self._plan, wanted, epochs), partial(self._done, epochs))

    def _plan(self, wanted: dict[Partition, frozenset[NodeId]], epochs: dict[Partition, int]) -> list[StoreOp]:
        image = self._broker.image
        operations: list[StoreOp] = []
        joining: dict[NodeId, int] = {}
        for partition, leaving in wanted.items():
            epoch = epochs[partition]
            if partition.leading and partition.leader_epoch == epoch and not partition.gone:
                isr = self._in_sync(partition, leaving, joining)
                if isr is not None:
                    state = State(partition.node, epoch, isr)
                    operations.append(write_state(image, partition.name.topic, partition.name.partition, state))
        if not operations:
            return []
        # Whoever comes in is the one that has fetched: still in the same life (KIP-903).
        return [*same_topics(image), *(same_life(image, *entry) for entry in joining.items()), *operations]

    def _in_sync(
        self, partition: Partition, leaving: frozenset[NodeId], joining: dict[NodeId, int]
    ) -> tuple[NodeId, ...] | None:
        """Who should be in sync; None if it is so already, and nothing is uncertain."""
        isr = [node for node in partition.isr if node not in leaving]
        uncertain = False
        for node, follower in partition.followers.items():
            uncertain |= follower.joining
            if follower.joining and partition.may_join(follower) and node not in leaving and node not in isr:
                isr.append(node)
                joining[node] = self._broker.image.broker_epoch(node)
        if tuple(isr) == partition.isr and not uncertain:
            return None
        if partition not in self._failed:
            self._say(partition, isr)
        return tuple(isr)

    def _say(self, partition: Partition, isr: Sequence[NodeId]) -> None:
        before, log = partition.isr, partition.log
        self._broker.logger.info(
            "%s: in-sync replicas %s should be %s (epoch %d, high watermark %d, end %d)",
            partition.name,
            list(before),
            list(isr),
            partition.leader_epoch,
            partition.high_watermark,
            log.end_offset,
        )

    def _done(self, epochs: dict[Partition, int], refusal: Refused | None) -> None:
        now_ms = self._broker.now.mono_ms
        self._under_way -= 1
        self._portion_max = next_portion(self._portion_max, refusal)
        if refusal is not None:
            if not self._failed:
                self._broker.logger.warning("a change of in-sync replicas failed, it is tried again: %s", refusal)
            self._failed.update(dict.fromkeys(epochs))
            self._rest_until_ms = now_ms + REST_MS
            self._broker.timers.at(self._rest_until_ms, self._rested)
        elif self._failed:
            self._broker.logger.info("in-sync replicas are changed again")
            self._failed.clear()
        for partition, epoch in epochs.items():
            if partition.leader_epoch == epoch:
                partition.proposing = False
                self.reconsider(partition)
        if self._wanted:
            self._at_the_end_of_the_event()

    def check(self) -> None:
        for partition in self._wanted:
            assert self._rest_until_ms or not partition.leading, "what is wanted is proposed when the event ends"


def _has_lost(partition: Partition) -> bool:
    """Was a follower proposed that must not come in any more? What became of that must be known."""
    return any(follower.joining and not partition.may_join(follower) for follower in partition.followers.values())
