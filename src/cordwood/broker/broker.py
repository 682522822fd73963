"""One broker: the place where events come in and effects go out.

Every public method that takes ``now`` is an event. It changes what this broker knows, and returns what the driver must
do. Nothing here waits; a request that cannot be answered yet is parked and answered by a later event.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from cordwood.broker import dispatch
from cordwood.broker.compactor import Compactor
from cordwood.broker.connection import Call, Connection, Peer, memory_of
from cordwood.broker.controllership import Controllership
from cordwood.broker.coordinators import GroupCoordinator
from cordwood.broker.doubts import SUSPICION_MS, Doubts
from cordwood.broker.fetch_sessions import FetchSessions, Waiter, Waiters
from cordwood.broker.limits import ConnectionLimits
from cordwood.broker.membership import Membership
from cordwood.broker.peers import Peers
from cordwood.broker.producer_ids import ProducerIds
from cordwood.broker.proposals import IMPATIENT, Done, Patience, Plan, Proposals
from cordwood.broker.replicas import Replicas
from cordwood.broker.replication import Replication
from cordwood.broker.settings import Settings
from cordwood.broker.timers import NEVER, Timers
from cordwood.broker.turns import Turns
from cordwood.cluster.image import BrokerInfo, Delta, MetadataImage
from cordwood.cluster.registration import Applicant
from cordwood.config import BrokerConfig
from cordwood.effects import Close, Effect, Send, WriteMetadata
from cordwood.errors import CordwoodError, CorruptData, ProtocolError, StorageError
from cordwood.ids import ConnectionId, LinkId, NodeId, TopicPartition
from cordwood.ports import Entropy, Instant, LinkLoss, Logger, LogLevels, MetadataChange, Node, SessionState
from cordwood.wire.frame import response_frame

FETCH_SESSION_EVICTION_MS: Final = (
    120_000  # Kafka's min.incremental.fetch.session.eviction.ms, which cannot be set in Kafka either
)
REFUSAL_LOG_INTERVAL_MS: Final = 1000


class Broker:
    """The state of one broker, and its events."""

    def __init__(
        self,
        *,
        settings: Settings,
        image: MetadataImage,
        replicas: Replicas,
        entropy: Entropy,
        logger: Logger,
        log_levels: LogLevels,
        now: Instant,
        applicant: Applicant | None = None,
    ) -> None:
        """*applicant*: what this broker registers as, if it is to join a cluster."""
        self.settings = settings
        self.image = image
        self.replicas = replicas
        self.entropy = entropy
        self.logger = logger
        self.log_levels = log_levels
        self.now = now
        self.node = NodeId(settings.config.node_id)
        self.effects: list[Effect] = []
        self.timers = Timers()
        self.turns = Turns(self.timers)
        self.proposals = Proposals(self.timers, self._write_metadata, self._is_steady)
        self.producer_ids = ProducerIds()
        self.compactor = Compactor()
        self.peers = Peers(self)
        self.doubts = Doubts(self)
        self.membership = Membership(self, applicant)
        self.controllership = Controllership(self)
        self.replication = Replication(self)
        self.groups = GroupCoordinator(self)
        self.connections: dict[ConnectionId, Connection] = {}
        self._refused = 0
        self._refusal_logged_ms = now.mono_ms - REFUSAL_LOG_INTERVAL_MS
        self.limits = ConnectionLimits()
        self._clients_wait = False
        self._wait_logged_ms = self._refusal_logged_ms
        self.sessions = FetchSessions(
            self.config.max_incremental_fetch_session_cache_slots, FETCH_SESSION_EVICTION_MS, entropy
        )
        self.waiters = Waiters()
        self.ready: dict[Waiter, None] = {}
        """Parked fetches that have got what they waited for; they are answered at the end of the same event."""

    @property
    def clustered(self) -> bool:
        """Does it share its metadata with other brokers?"""
        return self.config.zookeeper_connect is not None

    @property
    def config(self) -> BrokerConfig:
        return self.settings.config

    # ------------------------------------------------------------------ events

    def start(self, now: Instant) -> list[Effect]:
        self.now = now
        self._say_what_is_damaged(self.image.damaged)
        self.replicas.start(self)
        self.compactor.start(self)
        self.groups.start()
        self.peers.start()
        self.replication.start()
        self.membership.start()
        self.controllership.start()
        idle_ms = self.config.connections_max_idle_ms
        if idle_ms >= 0:
            self.timers.every(max(min(idle_ms // 4, 30_000), 10), self._close_idle, now=now)
        return self._take_effects()

    def connected(self, connection_id: ConnectionId, peer: Peer, now: Instant) -> Connection | None:
        """A client has connected. Returns None if it must be disconnected at once."""
        reason = self.limits.admit(peer, self.config, now)
        if reason is not None:
            self.refused(peer.host, reason, now)
            return None
        connection = Connection(connection_id, peer, now.mono_ms)
        self.connections[connection_id] = connection
        return connection

    def wait_to_accept_ms(self, listener: str, now: Instant) -> int:
        """How long the next connection must wait, unless one ends in the meantime.

        This is logged when connections begin to wait, and as rarely as refusals are: each short-lived connection may
        take the last free place.
        """
        wait_ms, reason = self.limits.wait(listener, self.config, now)
        if wait_ms and not self._clients_wait and now.mono_ms >= self._wait_logged_ms + REFUSAL_LOG_INTERVAL_MS:
            self.logger.warning("new connections wait: %s", reason)
            self._wait_logged_ms = now.mono_ms
        self._clients_wait = wait_ms > 0
        return wait_ms

    def refused(self, host: str, reason: str, now: Instant) -> None:
        """A connection was refused. At most one line a second is logged: a storm of them must not fill the disk."""
        self._refused += 1
        if now.mono_ms >= self._refusal_logged_ms + REFUSAL_LOG_INTERVAL_MS:
            self.logger.warning("%d connection(s) refused, the last from %s: %s", self._refused, host, reason)
            self._refused = 0
            self._refusal_logged_ms = now.mono_ms

    def received(self, connection: Connection, frame: memoryview, now: Instant) -> list[Effect]:
        """A whole request, without its length prefix. *frame* belongs to the driver again when this returns."""
        self.now = now
        connection.active_ms = now.mono_ms
        try:
            dispatch.serve(self, connection, frame)
        except ProtocolError as error:
            self.close(connection, str(error))
        return self._take_effects()

    def disconnected(self, connection: Connection, now: Instant) -> list[Effect]:
        self.now = now
        connection.closed = True
        del self.connections[connection.id]
        self.limits.leave(connection.peer)
        for call in connection.waiting:
            if call.abandon is not None:
                call.abandon()
        connection.waiting.clear()
        self.proposals.client_left(now)
        if connection.replica is not None:
            self.doubts.begin(connection.replica, SUSPICION_MS)
        return self._take_effects()

    def tick(self, now: Instant) -> list[Effect]:
        self.now = now
        self.timers.run_due(now)
        return self._take_effects()

    def metadata_written(self, token: int, change: MetadataChange, now: Instant) -> list[Effect]:
        """The store has done what a proposal asked for. *change* is empty if ``metadata_changed`` has reported it.

        It always is if others write to the store, too: only the store's feed has all changes in their order.
        """
        self.now = now
        if change.nodes or change.deleted:
            assert not self.clustered, "a change of a shared store is told of among the others"
            self._changed(self.image.apply(*change))
        self.proposals.accepted(token, now)
        return self._take_effects()

    def metadata_changed(self, changes: Sequence[MetadataChange], now: Instant) -> list[Effect]:
        """A broker, perhaps this one, has changed the metadata; or an ephemeral node is gone with its owner's
        session."""
        self.now = now
        for change in changes:
            self._changed(self.image.apply(*change))
        return self._take_effects()

    def metadata_reloaded(self, nodes: Sequence[Node], now: Instant) -> list[Effect]:
        """The metadata was read afresh, because changes were missed."""
        self.now = now
        self._changed(self.image.replace(nodes))
        return self._take_effects()

    def session_changed(self, state: SessionState, now: Instant) -> list[Effect]:
        """The state of this broker's session with the metadata store has changed."""
        self.now = now
        self.membership.session_changed(state)
        return self._take_effects()

    def link_up(self, link: LinkId, now: Instant) -> list[Effect]:
        self.now = now
        self.peers.link_up(link)
        return self._take_effects()

    def link_received(self, link: LinkId, frame: memoryview, now: Instant) -> list[Effect]:
        """A whole response from another broker, without its length prefix; *frame* is lent as in ``received``."""
        self.now = now
        self.peers.received(link, frame)
        return self._take_effects()

    def link_lost(self, link: LinkId, loss: LinkLoss, reason: str, now: Instant) -> list[Effect]:
        """A link was lost, or could not be established."""
        self.now = now
        self.peers.link_lost(link, loss, reason)
        return self._take_effects()

    def metadata_refused(self, token: int, reason: CordwoodError, now: Instant) -> list[Effect]:
        self.now = now
        self.proposals.refused(token, reason, now)
        return self._take_effects()

    def synced(self, token: int, now: Instant) -> list[Effect]:
        """The files that a ``Sync`` named are on the disk."""
        self.now = now
        self.replicas.syncs.done(token, self.effects, now)
        return self._take_effects()

    def removed(self, token: int, now: Instant) -> list[Effect]:
        """The files that a ``Remove`` named are gone."""
        self.now = now
        self.replicas.removed(self, token)
        return self._take_effects()

    def compacted(self, token: int, error: StorageError | CorruptData | None, now: Instant) -> list[Effect]:
        """The work that a ``Compact`` named is done, or has failed."""
        self.now = now
        self.compactor.done(self, token, error)
        return self._take_effects()

    def lingered(self, now: Instant) -> list[Effect]:
        """Everything that had already arrived when a ``Linger`` was asked for has been received."""
        self.now = now
        self.groups.write_gathered(now)
        self.doubts.look_again()
        return self._take_effects()

    def stop_leading(self, now: Instant) -> list[Effect]:
        """This broker is about to stop: others should lead. ``membership.may_stop`` tells when to ``leave``."""
        self.now = now
        self.membership.stop_leading()
        return self._take_effects()

    def leave(self, now: Instant) -> list[Effect]:
        """Acknowledge nothing more, and leave the cluster; ``membership.has_left`` tells when that is done."""
        self.now = now
        self.membership.leave()
        return self._take_effects()

    def shut_down(self, now: Instant) -> None:
        """The last event: sync all logs, and note that they need no recovery."""
        self.now = now
        self.groups.write_gathered(now)
        self.replicas.close(now)

    def next_deadline(self) -> int | None:
        """When the next ``tick`` is due, on the monotonic clock."""
        return None if self.timers.due_ms == NEVER else self.timers.due_ms

    # ------------------------------------------------------------------ what handlers use

    def reply(self, call: Call, response: object) -> None:
        """Answer a call. The reply is sent once all earlier calls on the connection have been answered."""
        connection = call.connection
        if connection.closed:
            return
        frame = response_frame(
            correlation_id=call.correlation_id, api_key=call.api_key, api_version=call.api_version, message=response
        )
        call.frame = frame
        if connection.waiting[0] is call:
            self._send_finished(connection)
        else:
            connection.kept_bytes += memory_of(frame)

    def finish_silently(self, call: Call) -> None:
        """Finish a call that has no reply (Produce with acks=0)."""
        call.frame = []
        if call.connection.waiting[0] is call:
            self._send_finished(call.connection)

    def _send_finished(self, connection: Connection) -> None:
        """Send the first reply in the queue, and all behind it that were waiting only for their turn.

        What one event has for one client is sent at once: one system call, and one wake-up of the client.
        """
        waiting, effects = connection.waiting, self.effects
        frame = waiting.popleft().frame
        while frame is not None:
            last = effects[-1] if effects else None
            if type(last) is Send and last.connection == connection.id:
                last.chunks.extend(frame)
            elif frame:
                effects.append(Send(connection.id, frame))
            frame = waiting[0].frame if waiting else None
            if frame is not None:
                waiting.popleft()
                connection.kept_bytes -= memory_of(frame)
        connection.active_ms = self.now.mono_ms

    def _changed(self, delta: Delta) -> None:
        """Make everything follow the metadata: first what this broker is, then what it holds, then what it does."""
        self._say_what_is_damaged(delta.damaged)
        if delta.broker_configs:
            self.settings.reload(self.image)
        self.membership.apply(delta)
        self.replicas.apply(self, delta)
        self.peers.apply(delta)
        self.replication.apply(delta)
        self.groups.apply(delta)
        self.controllership.apply(delta)
        self.doubts.apply(delta)

    def look_again_at(self, partitions: Iterable[TopicPartition]) -> None:
        """What the metadata says of some partitions could not be acted on until now."""
        delta = Delta()
        for topic, index in partitions:
            delta.partition(topic, index)
        self._changed(delta)

    def _say_what_is_damaged(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.logger.error("the metadata at %s makes no sense and is left out; what was known of it stays", path)

    def close(self, connection: Connection, reason: str) -> None:
        self.effects.append(Close(connection.id, reason))

    def propose(self, plan: Plan, done: Done, patience: Patience = IMPATIENT) -> None:
        """Change the metadata; see ``proposals``."""
        self.proposals.submit(plan, done, self.now, patience)

    def _write_metadata(self, effect: WriteMetadata) -> None:
        self.effects.append(effect)

    def _is_steady(self) -> bool:
        return self.membership.steady

    def brokers(self, call: Call) -> list[BrokerInfo]:
        """The live brokers, with the addresses for this client: those of the listener that it connected to.

        A broker on its own that has no advertised address gives the one that the client dialled.
        """
        peer = call.connection.peer
        if self.clustered:
            return [
                BrokerInfo(node, *registration.endpoints[peer.listener], registration.rack)
                for node, registration in sorted(self.image.brokers.items())
                if peer.listener in registration.endpoints and not self.is_cut_off(node)
            ]
        host, port = self.settings.advertised.get(peer.listener, (peer.local_host, peer.local_port))
        return [BrokerInfo(self.node, host, port, self.config.broker_rack)]

    def is_cut_off(self, node: NodeId) -> bool:
        """Is this the broker itself while it is fenced, so that it may have missed changes to its partitions?

        A client that knows no other broker would be told again and again that this one leads, and then be refused by
        it. So a fenced broker does not name itself, and the client turns to those that it does name.
        """
        return node == self.node and self.membership.fenced and len(self.image.brokers) > 1

    def live_nodes(self) -> list[NodeId]:
        return sorted(self.image.brokers)

    # ------------------------------------------------------------------ the end of every event

    def _take_effects(self) -> list[Effect]:
        while self.ready:
            waiter = next(iter(self.ready))
            del self.ready[waiter]
            waiter.complete()
        effects, self.effects = self.effects, []
        return effects

    def _close_idle(self, now: Instant) -> None:
        oldest_ms = now.mono_ms - self.config.connections_max_idle_ms
        for connection in self.connections.values():
            if connection.active_ms < oldest_ms and not connection.waits_for_us:
                self.close(connection, f"nothing happened for {self.config.connections_max_idle_ms} ms")

    def check(self) -> None:
        """Check all invariants of the broker's state."""
        self.image.check()
        self.sessions.check()
        self.waiters.check()
        self.turns.check()
        self.replicas.check()
        self.compactor.check()
        self.membership.check()
        self.proposals.check()
        self.groups.check()
        self.peers.check()
        self.doubts.check()
        self.replication.check()
        for connection in self.connections.values():
            connection.check()
            assert not connection.closed
