"""This broker as a member of a cluster: registered, or fenced.

A broker leads only while it is registered and its session with the metadata store lives. Otherwise it is *fenced*: it
acknowledges nothing any more, and tells those who are waiting for that at once. It registers at start, and again
whenever its registration is gone: because its session ended, or because others took it for dead. See
``cluster/registration`` for the steps.

While its session hangs, or it is fenced, it is not *steady*: the metadata that it knows may be old. Nor is it steady
right after the end of a session: if the store was away for one broker it was away for the others, and they have not all
registered again yet. Clients' changes to the metadata wait for that, for a while.

A broker on its own is never fenced, and nothing here happens to it.
"""

from typing import TYPE_CHECKING

from cordwood.broker.timers import Timer
from cordwood.cluster.image import Delta
from cordwood.cluster.registration import (
    Applicant,
    Loss,
    announce_end,
    begin,
    led_by,
    loss_of,
    register,
    remove_broker,
    retreat,
    step_down,
)
from cordwood.cluster.states import Live
from cordwood.errors import Refused
from cordwood.ids import NodeId, TopicPartition
from cordwood.ports import Instant, SessionState, StoreOp

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

RETRY_MS, RETRY_MS_MAX = 100, 5000
HANDOVER_MS_MAX = 30_000
"""How long a broker that is about to stop waits for others to take over; Kafka's asks three times, 5 seconds apart."""
REUNION_MS = 2000
"""How long a broker that is back waits for those that were there when its session ended."""
NO_EPOCH = -1


class Membership:
    """Whether this broker counts as a member of the cluster."""

    def __init__(self, broker: "Broker", applicant: Applicant | None) -> None:
        self._broker = broker
        self._applicant = applicant
        self.fenced = broker.clustered
        self._session = SessionState.ALIVE
        self._outdated = False
        """Has the session ended since the metadata was read?"""
        self._lapsed = False
        """Has it ended since this broker registered? The store may not know yet, and still show the registration."""
        self._life = NO_EPOCH
        """The epoch of a life that has begun, but has not been registered yet."""
        self.epoch = NO_EPOCH
        """The broker epoch with which it last registered: the version that its incarnation node got."""
        self._early: dict[TopicPartition, int] = {}
        """What it was given to lead before it had registered, and in which epochs."""
        self._registering = False
        self._retry: Timer | None = None
        self._retry_ms = RETRY_MS
        self._missed: set[NodeId] = set()
        """Brokers that were there when the session ended, and have not been seen since."""
        self._reunion: Timer | None = None
        """When to stop waiting for them."""
        self.steady = not broker.clustered
        """Is it registered, is its session alive, and are the others back?"""
        self._leaving = False
        self.stopping = False
        """Is it about to stop?"""
        self.may_stop = not broker.clustered
        """Once it is ``stopping``: others have taken over all that they can."""
        self.has_left = not broker.clustered
        """Once it was told to ``leave``: it has left, or cannot tell the cluster."""

    def start(self) -> None:
        if self._broker.clustered:
            assert self._applicant is not None
            self._step()

    # ------------------------------------------------------------------ events of the session and the metadata

    def session_changed(self, state: SessionState) -> None:
        """The session is alive, hangs, or has ended."""
        if not self._broker.clustered:
            return
        self._session = state
        if state is SessionState.LOST:
            self._missed |= self._broker.image.brokers.keys() - {self._broker.node}
            self._outdated = self._lapsed = True
            if self._reunion is not None:
                self._reunion.cancel()
                self._reunion = None
        self._match()

    def apply(self, delta: Delta) -> None:
        """Notice that this broker is registered, or no longer is."""
        if not self._broker.clustered:
            return
        if delta.reloaded:
            self._outdated = False
        if not self._outdated:
            self._missed -= self._broker.image.brokers.keys()
        if delta.reloaded or self._broker.node in delta.brokers:
            self._cancel_retry()  # what stood in the way may be gone
            self._match()
        else:
            self._match_steadiness()
        if self.stopping and (delta.reloaded or delta.brokers or delta.topics):
            self._look_for_heirs()

    def _match(self) -> None:
        """Become fenced, or stop being so; if fenced, do something about it."""
        fenced = not self._counts()
        if fenced != self.fenced:
            self.fenced = fenced
            self._broker.logger.info(
                "broker %d is %s", self._broker.node, "fenced: it leads nothing now" if fenced else "registered"
            )
            self._broker.replication.fenced_changed()
            self._broker.groups.fenced_changed()
            self._broker.controllership.fenced_changed()
        if fenced:
            self._step()
            if self.stopping:
                self.may_stop = True
        self._match_steadiness()

    def _match_steadiness(self) -> None:
        is_back = self._session is SessionState.ALIVE and not self.fenced
        if is_back and self._missed and self._reunion is None:
            self._reunion = self._broker.timers.at(self._broker.now.mono_ms + REUNION_MS, self._miss_nobody)
        steady = is_back and not self._missed
        if steady and not self.steady:
            self._broker.proposals.store_is_back(self._broker.now)
        self.steady = steady

    def _miss_nobody(self, now: Instant) -> None:
        self._reunion = None
        self._missed.clear()
        self._match_steadiness()

    def _counts(self) -> bool:
        image, node = self._broker.image, self._broker.node
        if self._session is SessionState.LOST or self._outdated or self._lapsed or self._leaving:
            return False
        return self.epoch != NO_EPOCH and node in image.brokers and image.broker_epoch(node) == self.epoch

    # ------------------------------------------------------------------ registering

    def _step(self) -> None:
        """Take the next step towards being registered, unless one is in progress or it would be pointless."""
        if self._registering or self._retry is not None or self._leaving or self.stopping:
            return
        if self._session is SessionState.LOST or self._outdated:
            return
        self._registering = True
        self._broker.propose(self._plan, self._stepped)

    def _plan(self) -> list[StoreOp]:
        assert self._applicant is not None
        image = self._broker.image
        if self._life == NO_EPOCH or self._life != image.broker_epoch(self._broker.node):
            self._life = NO_EPOCH
            return begin(image, self._applicant)
        return retreat(image, self._applicant, self._loss()) or register(image, self._applicant)

    def _loss(self) -> Loss:
        """What the logs may have lost. They lose nothing while the process lives."""
        assert self._applicant is not None
        if self.epoch != NO_EPOCH:
            return Loss.NOTHING
        loss = loss_of(self._broker.image, self._applicant)
        return Loss.ENDS if loss is Loss.NOTHING and self._broker.replicas.lacks_records else loss

    def _stepped(self, refusal: Refused | None) -> None:
        self._registering = False
        image, node = self._broker.image, self._broker.node
        if refusal is not None:
            self._broker.logger.warning("broker %d cannot register yet: %s", node, refusal)
            self._retry = self._broker.timers.at(self._broker.now.mono_ms + self._retry_ms, self._again)
            self._retry_ms = min(2 * self._retry_ms, RETRY_MS_MAX)
            return
        self._retry_ms = RETRY_MS
        if self._life == NO_EPOCH:
            self._life = image.broker_epoch(node)
        elif node in image.brokers and image.broker_epoch(node) == self._life + 1:
            if self.epoch == NO_EPOCH:
                self._early = led_by(image, node)
            self.epoch, self._life = self._life + 1, NO_EPOCH
            self._lapsed = self._outdated  # if the metadata is outdated, it was the former session that registered
        self._match()
        self._step_down()

    def _step_down(self) -> None:
        """Give up the leaderships that it was given before it had registered: it never took them up."""
        if self._early:
            image, node = self._broker.image, self._broker.node
            self._broker.propose(lambda: step_down(image, node, self._early), self._stepped_down)

    def _stepped_down(self, refusal: Refused | None) -> None:
        if refusal is None:
            led = led_by(self._broker.image, self._broker.node)
            self._early = {name: epoch for name, epoch in self._early.items() if led.get(name) == epoch}
            self._step_down()
        else:
            self._broker.timers.at(self._broker.now.mono_ms + RETRY_MS_MAX, lambda _: self._step_down())

    def _again(self, now: Instant) -> None:
        self._retry = None
        self._match()

    def _cancel_retry(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    # ------------------------------------------------------------------ the end

    def stop_leading(self) -> None:
        """Have others take over. ``may_stop`` tells when there is nothing more to wait for."""
        self.stopping = True
        if self.fenced or not self._broker.clustered or not self._broker.config.controlled_shutdown_enable:
            self.may_stop = True
            return
        assert self._applicant is not None
        applicant = self._applicant
        self._broker.timers.at(self._broker.now.mono_ms + HANDOVER_MS_MAX, self._enough)
        self._broker.propose(lambda: announce_end(self._broker.image, applicant), self._announced)

    def _announced(self, refusal: Refused | None) -> None:
        if refusal is not None:
            self._broker.logger.warning("others cannot be told that this broker stops: %s", refusal)
            self.may_stop = True

    def _enough(self, now: Instant) -> None:
        if not self.may_stop:
            self._broker.logger.warning("nobody took over everything that broker %d leads", self._broker.node)
            self.may_stop = True

    def _look_for_heirs(self) -> None:
        """Is there still a partition for which this broker is in sync, and which another broker could take over?"""
        image, node = self._broker.image, self._broker.node
        registration = image.brokers.get(node)
        if registration is None or not registration.shutting_down or self.may_stop:
            return
        able = Live.of(image).able
        self.may_stop = all(
            node not in partition.isr or able.isdisjoint(partition.isr)
            for topic in image.topics.values()
            for partition in topic.partitions
        )

    def leave(self) -> None:
        """Leave the cluster, as far as it can still be told. ``has_left`` tells when that is done."""
        if not self._broker.clustered or self._leaving:
            return
        self._leaving = True
        self._match()
        image, node, epoch = self._broker.image, self._broker.node, self.epoch
        self._broker.propose(lambda: remove_broker(image, node, epoch), self._left)

    def _left(self, refusal: Refused | None) -> None:
        self.has_left = True

    def check(self) -> None:
        assert self.fenced == (self._broker.clustered and not self._counts())
        assert not (self.steady and self.fenced)
