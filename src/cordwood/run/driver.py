"""Drives one broker on an asyncio loop: events go in, effects are carried out.

Everything that touches the broker happens on the loop's thread. Four kinds of work have a thread each, because the disk
may take its time: writing metadata, syncing files, removing files, and compacting logs. Within each kind, work is done
in order.
"""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar, assert_never

from cordwood.broker.broker import Broker
from cordwood.broker.connection import Peer
from cordwood.broker.timers import NEVER
from cordwood.effects import (
    Close,
    Compact,
    Dial,
    Effect,
    HangUp,
    Linger,
    PurgeChanges,
    Remove,
    Send,
    Sync,
    Transmit,
    WriteMetadata,
)
from cordwood.errors import CorruptData, StorageError, StoreConflict
from cordwood.ids import ConnectionId, LinkId
from cordwood.ports import Disk, LinkLoss, MetadataChange, MetadataStore, Node, SessionState, Syncable
from cordwood.run.client_socket import ClientSocket
from cordwood.run.clock import now
from cordwood.run.descriptors import descriptors
from cordwood.run.lease import Lease
from cordwood.run.listener import plain_address
from cordwood.run.peer_link import PeerLink
from cordwood.run.receive_buffers import ReceiveBuffers
from cordwood.run.requests import Requests

ACCEPTS_MAX = 64  # at once: a storm of new connections must not keep the existing ones waiting
ACCEPT_PAUSE_S = 1.0  # after the system had no descriptor for another connection
HAND_OVER_LOOK_S = 0.01  # how often to check whether others have taken over
LEAVE_S_MAX = 2.0  # if the metadata store does not answer by then, the end of the session tells the others
COMPACTION_PAUSE_S = 0.0002  # between two steps, so that threads waiting for the interpreter get it

T = TypeVar("T")


class Driver:
    """One broker and its surroundings."""

    def __init__(
        self,
        broker: Broker,
        disk: Disk,
        store: MetadataStore,
        logger: logging.Logger,
        *,
        on_failure: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._disk = disk
        self._store = store
        self._logger = logger
        self._loop = asyncio.get_running_loop()
        self._buffers = ReceiveBuffers(broker.config.queued_max_request_bytes)
        self._link_buffers = ReceiveBuffers()  # responses to this broker are limited only by what it has requested
        self._requests = Requests(broker, execute_other=self._execute_other, set_timer=self._set_timer, fail=self._fail)
        self._clients = self._requests.clients
        self._links: dict[LinkId, PeerLink] = {}
        self._connection_count = 0
        self._listeners: dict[str, socket.socket] = {}
        self._accepting = False
        self._pauses: dict[str, asyncio.TimerHandle] = {}
        """Listeners, by name, that do not accept connections for the moment."""
        self._timer: asyncio.TimerHandle | None = None
        self._metadata_thread = ThreadPoolExecutor(1, "cordwood-metadata")
        self._disk_thread = ThreadPoolExecutor(1, "cordwood-disk")
        self._removal_thread = ThreadPoolExecutor(1, "cordwood-removal")
        self._compaction_thread = ThreadPoolExecutor(1, "cordwood-compaction")
        self._stopping = threading.Event()
        self._in_flight = 0
        # The system assigns the lowest free descriptor: a socket with a higher one would leave too few for files.
        self._descriptors_max = descriptors() * 7 // 8
        self._on_failure = on_failure
        self.failure: Exception | None = None
        """Why the broker cannot continue."""

    # ------------------------------------------------------------------ start and end

    def start(self, listeners: Mapping[str, socket.socket]) -> None:
        """Start, with the listening sockets by the names of their listeners.

        Clients that connect before this broker has joined its cluster must wait: otherwise they would be told of a
        cluster without brokers.
        """
        self._listeners = dict(listeners)
        self._act(self._broker.start, now())

    def _begin_to_accept(self) -> None:
        self._accepting = True
        for name, listener in self._listeners.items():
            listener.setblocking(False)
            self._loop.add_reader(listener.fileno(), self._accept, name, listener)

    async def stop(self) -> None:
        """Let others take over, stop serving requests, sync everything to the disk, close."""
        await self._hand_over()
        self._stopping.set()
        self._accepting = True  # so that accepting does not begin now
        for listener in self._listeners.values():
            self._loop.remove_reader(listener.fileno())
            listener.close()
        self._lingered()  # answer the requests that are waiting only for this
        for client in list(self._clients.values()):
            self._drop(client)
        if self._timer is not None:
            self._timer.cancel()
        while self._in_flight:
            await self._settled()
        for link in self._links.values():
            link.close()
        self._metadata_thread.shutdown()
        self._disk_thread.shutdown()
        self._removal_thread.shutdown()
        self._compaction_thread.shutdown()
        if self.failure is None:
            self._broker.shut_down(now())
        self._store.close()

    async def _hand_over(self) -> None:
        """In a cluster, others take over leadership before this broker stops; it serves until they have."""
        membership = self._broker.membership
        self._act(self._broker.stop_leading, now())
        while not membership.may_stop and self.failure is None:  # noqa: ASYNC110  # needed once, so there is no event
            await asyncio.sleep(HAND_OVER_LOOK_S)
        self._act(self._broker.leave, now())
        left_by = self._loop.time() + LEAVE_S_MAX
        while not membership.has_left and self.failure is None and self._loop.time() < left_by:  # noqa: ASYNC110
            await asyncio.sleep(HAND_OVER_LOOK_S)

    async def _settled(self) -> None:
        """Wait until the threads have finished and handed back their results."""
        for executor in (self._metadata_thread, self._disk_thread, self._removal_thread, self._compaction_thread):
            await self._loop.run_in_executor(executor, _nothing)
        await asyncio.sleep(0)

    # ------------------------------------------------------------------ events

    def _accept(self, name: str, listener: socket.socket) -> None:
        for _ in range(ACCEPTS_MAX):
            wait_ms = self._broker.wait_to_accept_ms(name, now())
            if wait_ms:
                self._pause_accepting(name, listener, wait_ms / 1000)
                return
            try:
                sock, address = listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:  # macOS reports a client that has gone again; Linux returns the connection
                continue
            except OSError as error:
                self._logger.warning("a connection could not be accepted: %s", error.strerror)
                # The connection is still waiting, so the loop would try again and again in vain.
                self._pause_accepting(name, listener, ACCEPT_PAUSE_S)
                return
            self._connected(name, sock, address)

    def _pause_accepting(self, name: str, listener: socket.socket, pause_s: float) -> None:
        self._loop.remove_reader(listener.fileno())
        self._pauses[name] = self._loop.call_later(pause_s, self._accept_again, name)

    def _accept_again(self, name: str) -> None:
        self._pauses.pop(name).cancel()
        listener = self._listeners[name]
        if listener.fileno() >= 0:
            self._loop.add_reader(listener.fileno(), self._accept, name, listener)

    def _connected(self, name: str, sock: socket.socket, address: tuple[str, int]) -> None:
        host = plain_address(address[0])
        if sock.fileno() >= self._descriptors_max:
            self._broker.refused(host, "the last descriptors are for files", now())
            sock.close()
            return
        sock.setblocking(False)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            local = sock.getsockname()
        except OSError:  # the client is gone already
            sock.close()
            return
        peer = Peer(host, address[1], plain_address(local[0]), local[1], name)
        self._connection_count += 1
        connection = self._broker.connected(ConnectionId(self._connection_count), peer, now())
        if connection is None:
            sock.close()
            return
        config = self._broker.config
        self._clients[connection.id] = ClientSocket(
            sock,
            connection,
            self._loop,
            self._buffers,
            on_frame=self._requests.received,
            on_lost=self._lost,
            request_bytes_max=config.socket_request_max_bytes,
            requests_max=config.max_in_flight_requests_per_connection,
            unsent_bytes_max=config.max_unsent_response_bytes,
        )

    def _lost(self, client: ClientSocket, reason: str, broke_protocol: bool) -> None:
        connection = client.connection
        if broke_protocol:
            self._logger.info("closing connection %s: %s", connection, reason)
        else:
            self._logger.debug("connection %s ended: %s", connection, reason)
        del self._clients[client.connection.id]
        self._act(self._broker.disconnected, client.connection, now())
        for name in list(self._pauses):  # there is room for another connection, and a descriptor
            self._accept_again(name)

    def _drop(self, client: ClientSocket) -> None:
        client.close()
        self._lost(client, "closed by this broker", False)

    def _tick(self) -> None:
        self._timer = None
        self._requests.timer_ms = NEVER
        moment = now()
        self._requests.look_at_lease(moment)
        self._act(self._broker.tick, moment)

    def metadata_changed(self, changes: Sequence[MetadataChange]) -> None:
        """A shared store reports changes, other brokers' or this broker's own."""
        self._act(self._broker.metadata_changed, changes, now())

    def metadata_reloaded(self, nodes: Sequence[Node]) -> None:
        self._act(self._broker.metadata_reloaded, nodes, now())

    def session_changed(self, state: SessionState) -> None:
        self._act(self._broker.session_changed, state, now())

    def trust(self, lease: Lease) -> None:
        """From now on, check *lease* before acting as if its session still existed."""
        self._requests.lease = lease

    def _lingered(self) -> None:
        moment = now()
        self._requests.look_at_lease(moment)
        self._act(self._broker.lingered, moment)

    # ------------------------------------------------------------------ effects

    def _act(self, event: Callable[..., list[Effect]], *arguments: object) -> None:
        """Give the broker an event and do what it asks for. A bug stops the broker: wrong data would be worse."""
        if self.failure is not None:
            return
        try:
            effects = event(*arguments)
        except Exception as error:
            self._fail(error)
            return
        self._requests.execute(effects)
        if not (self._accepting or self._broker.membership.fenced):
            self._begin_to_accept()

    def _fail(self, error: Exception) -> None:
        if self.failure is None:
            self._logger.critical("the broker stops: it met a condition that its code rules out", exc_info=error)
            self.failure = error
            self._requests.is_over = True
            self._on_failure()

    def _execute_other(self, effect: Effect) -> None:
        match effect:
            case Send():
                raise AssertionError("dealt with already")
            case Close(connection, reason):
                client = self._clients.get(connection)
                if client is not None:
                    self._logger.info("closing connection %s: %s", client.connection, reason)
                    self._drop(client)
            case WriteMetadata(token, operations):
                self._in_thread(
                    self._metadata_thread,
                    lambda: self._store.multi(operations),
                    lambda outcome: self._written(token, outcome),
                )
            case Sync(token, to_sync):
                self._in_thread(
                    self._disk_thread,
                    lambda: _sync(to_sync),
                    lambda outcome: self._synced(token, outcome),
                )
            case Remove(token, files, directories):
                self._in_thread(
                    self._removal_thread,
                    lambda: self._remove(files, directories),
                    lambda outcome: self._removed(token, outcome),
                )
            case Compact(token, work):
                self._in_thread(
                    self._compaction_thread,
                    lambda: self._compact(work),
                    lambda outcome: self._compacted(token, outcome),
                )
            case Linger():
                # The loop calls this once it has handled every socket that it knows to be readable.
                self._loop.call_soon(self._lingered)
            case PurgeChanges():
                self._in_thread(self._metadata_thread, self._store.purge, self._purged)
            case Dial(link, host, port):
                self._dial(link, host, port)
            case Transmit(link, chunks):
                if link in self._links:
                    self._links[link].send(chunks)
            case HangUp(link):
                if link in self._links:
                    self._links.pop(link).close()
            case _:
                assert_never(effect)

    # ------------------------------------------------------------------ links to other brokers

    def _dial(self, link: LinkId, host: str, port: int) -> None:
        self._links[link] = PeerLink(
            link,
            host,
            port,
            self._loop,
            self._link_buffers,
            on_up=lambda link: self._act(self._broker.link_up, link, now()),
            on_frame=lambda link, frame, moment: self._act(self._broker.link_received, link, frame, moment),
            on_lost=self._link_lost,
        )

    def _link_lost(self, link: LinkId, loss: LinkLoss, reason: str) -> None:
        if self._links.pop(link, None) is not None:
            self._act(self._broker.link_lost, link, loss, reason, now())

    def _set_timer(self, deadline_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._requests.timer_ms = deadline_ms
        # One millisecond more than necessary: a timer that fires early would find nothing to do, and spin.
        delay_ms = max(deadline_ms - now().mono_ms, 0) + 1
        self._timer = self._loop.call_later(delay_ms / 1000, self._tick)

    # ------------------------------------------------------------------ threads

    def _in_thread(
        self, executor: ThreadPoolExecutor, work: Callable[[], T], done: Callable[["T | Exception"], None]
    ) -> None:
        self._in_flight += 1

        def finish(future: "Future[T]") -> None:
            error = future.exception()
            assert error is None or isinstance(error, Exception)
            outcome = error if error is not None else future.result()
            self._loop.call_soon_threadsafe(returned, outcome)

        def returned(outcome: "T | Exception") -> None:
            self._in_flight -= 1
            done(outcome)

        executor.submit(work).add_done_callback(finish)

    def _written(self, token: int, outcome: MetadataChange | Exception) -> None:
        if isinstance(outcome, StoreConflict | StorageError):
            self._act(self._broker.metadata_refused, token, outcome, now())
        elif isinstance(outcome, Exception):
            self._fail(outcome)
        else:
            self._act(self._broker.metadata_written, token, outcome, now())

    def _purged(self, outcome: Exception | None) -> None:
        if isinstance(outcome, StorageError):
            self._logger.debug("old changes of the metadata stay for now: %s", outcome)
        elif outcome is not None:
            self._fail(outcome)

    def _synced(self, token: int, outcome: Exception | None) -> None:
        if outcome is not None:
            # After a failed fsync, nobody knows what is on the disk: any further acknowledgement would be a lie.
            self._fail(outcome)
        else:
            self._act(self._broker.synced, token, now())

    def _remove(self, files: Sequence[str], directories: Sequence[str]) -> None:
        for path in files:
            self._disk.remove(path)
        for path in directories:
            self._disk.remove_tree(path)

    def _removed(self, token: int, outcome: Exception | None) -> None:
        if isinstance(outcome, StorageError):
            self._logger.warning("files could not be removed, the next start tries again: %s", outcome)
        elif outcome is not None:
            self._fail(outcome)
        else:
            self._act(self._broker.removed, token, now())

    def _compact(self, work: Iterator[int]) -> bool:
        """Do all of the work, no faster than allowed; False if the broker stopped first."""
        began_s = time.monotonic()
        for size in work:
            bytes_per_second = max(self._broker.config.log_cleaner_io_max_bytes_per_second, 1)
            rest_s = size / bytes_per_second - (time.monotonic() - began_s)
            if self._stopping.wait(max(rest_s, COMPACTION_PAUSE_S)):
                return False
            began_s = time.monotonic()
        return True

    def _compacted(self, token: int, outcome: bool | Exception) -> None:
        if isinstance(outcome, StorageError | CorruptData):
            self._act(self._broker.compacted, token, outcome, now())
        elif isinstance(outcome, Exception):
            self._fail(outcome)
        elif outcome:
            self._act(self._broker.compacted, token, None, now())


def _sync(files: Sequence[Syncable]) -> None:
    for file in files:
        file.sync()


def _nothing() -> None:
    pass
