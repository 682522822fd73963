"""The in-sync replicas of the partitions that this broker leads: who may join the set, and who must leave.

A follower joins when it has everything that is committed, and everything that earlier leaders left. It leaves when it
has not been caught up for ``replica.lag.time.max.ms``. Either is a compare-and-set on the partition's state in the
metadata, so it fails if anybody else has changed that state, and it fails if a follower that should join has begun
another life by now. Only the metadata tells what became of a proposal: until it does, a follower that was to join
counts.

There is one proposal at a time for a partition; those that come up in one event are sent together.
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
"""How many proposals may be in flight, while they have to be small."""
REST_MS: Final = 100
"""After a failed proposal: the change that got in its way is on its way here, or the store has trouble of its own."""


class InSync:
    """Proposals for in-sync replicas."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._wanted: dict[Partition, frozenset[NodeId]] = {}
        """The partitions whose in-sync set should be proposed, each with the replicas that must leave."""
        self._rest_until_ms = 0
        self._under_way = 0
        self._portion_max = STATES_MAX
        """How many partitions are changed at once: fewer after failures, so that a bad one does not block others."""
        self._failed: dict[Partition, None] = {}
        """What was proposed last and failed. The failure and its end are each logged once."""
        self._end_of_event: Waiter | None = None

    def start(self) -> None:
        broker = self._broker
        self._end_of_event = Waiter(0, broker.ready, self._propose)
        broker.timers.every(max(broker.config.replica_lag_time_max_ms // 2, 1), self._look_for_laggards, now=broker.now)

    # ------------------------------------------------------------------ what followers say

    def is_eligible(self, replica: NodeId, epoch: int) -> bool:
        """Is this follower registered, not about to stop, and in the life that *epoch* names (-1 names none)?"""
        image = self._broker.image
        registration = image.brokers.get(replica)
        if registration is None or registration.shutting_down:
            return False
        return epoch in (-1, image.broker_epoch(replica))

    def fetched(
        self, partition: Partition, replica: NodeId, offset: int, start_offset: int, *, epoch: int, eligible: bool
    ) -> None:
        """A follower has everything before *offset*."""
        now_ms = self._broker.now.mono_ms
        if partition.fetched_by(replica, offset, start_offset, epoch=epoch, eligible=eligible, now_ms=now_ms):
            self._want(partition)

    def brokers_changed(self, delta: Delta) -> None:
        """Followers that are gone, or have begun a new life, count as having nothing until they fetch again.

        An exception is one that has already fetched in a life that this broker had not heard of yet: that fetch said
        what it has.
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
        """Something has changed for a partition: a follower that could not join before may be able to now."""
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
            return  # ``_rested`` will try again
        while self._wanted and (self._portion_max == STATES_MAX or self._under_way < UNDER_WAY_MAX):
            some = dict(islice(self._wanted.items(), self._portion_max))
            for partition in some:
                del self._wanted[partition]
            self._propose_some(some)

    def _rested(self, now: Instant) -> None:
        for partition in self._failed:
            self._look_for_laggards_of(partition, now)
        if not self._wanted:
            self._failed.clear()  # it is no longer wanted
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
        # A follower that joins must be the one that has fetched: still in the same life (KIP-903).
        return [*same_topics(image), *(same_life(image, *entry) for entry in joining.items()), *operations]

    def _in_sync(
        self, partition: Partition, leaving: frozenset[NodeId], joining: dict[NodeId, int]
    ) -> tuple[NodeId, ...] | None:
        """Who should be in sync; None if that is already so, and nothing is uncertain."""
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
    """Was a follower proposed that may no longer join? The outcome of that proposal must be known."""
    return any(follower.joining and not partition.may_join(follower) for follower in partition.followers.values())
