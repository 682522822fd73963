"""Successive sessions: which one is ours now, what state it is in, and when the next one begins.

Everything here runs in the store's thread. Invariant: after ``LOST`` comes a new session or nothing. An old client that
reaches a server again ends its session there, so all its ephemeral nodes go, and its events no longer count.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from cordwood.ports import SessionState

from .zookeeper_client import ConnectionEvent, ZooKeeperClient

PAUSE_S: Final = 1.0
"""Between the beginnings of two sessions, so that a server that breaks every session is not asked all the time."""

MakeClient = Callable[[Callable[[ConnectionEvent], None]], ZooKeeperClient]


class Session:
    """The state of this broker's session with ZooKeeper."""

    def __init__(
        self,
        make_client: MakeClient,
        *,
        put: Callable[[Callable[[], None]], None],
        broken: Callable[[], None],
        told: Callable[[SessionState], None],
        logger: logging.Logger,
    ) -> None:
        """
        Args:
            put: has the store's thread call something; events come from another thread.
            broken: called when the connection was lost, and its watches with it, or even the session.
            told: called when the state has changed.
        """
        self._make_client = make_client
        self._put = put
        self._broken = broken
        self._told = told
        self._logger = logger
        self.state = SessionState.LOST
        self._generation = 0
        self._began_s = 0.0
        self._next_s: float | None = None
        self.client = self._begin()

    def _begin(self) -> ZooKeeperClient:
        self._generation += 1
        self._began_s = time.monotonic()
        generation = self._generation
        client = self._make_client(lambda event: self._put(lambda: self._on_event(generation, event)))
        client.start()
        return client

    @property
    def usable(self) -> bool:
        """Can ZooKeeper be asked anything at the moment?"""
        return self._next_s is None and self.client.connected

    @property
    def certain_until_s(self) -> float:
        """The time on the monotonic clock until which the session certainly lives. Any thread may ask."""
        return float("-inf") if self.state is SessionState.LOST else self.client.lease_end_s

    @property
    def due_s(self) -> float:
        """When ``tick`` has something to do."""
        if self._next_s is not None:
            return self._next_s
        return float("inf") if self.state is SessionState.LOST else self.client.lease_end_s

    def tick(self) -> None:
        """Time has passed: the lease may be over, or the next session due."""
        now_s = time.monotonic()
        if self.state is not SessionState.LOST and now_s >= self.client.lease_end_s:
            self.lose(f"ZooKeeper was not heard for {self.client.session_timeout_ms} ms")
        if self._next_s is not None and now_s >= self._next_s:
            self._next_s = None
            self.client = self._begin()

    def alive(self) -> None:
        """Everything that has happened up to now is known: the session counts as alive."""
        if self.state is not SessionState.ALIVE:
            self._logger.info("connected to ZooKeeper")
            self._become(SessionState.ALIVE)

    def lose(self, reason: str) -> None:
        """The session is over, or must be regarded as over. The next one gets a new client."""
        if self._next_s is not None:
            return
        if self.state is SessionState.LOST:
            self._logger.debug("no session with ZooKeeper yet: %s", reason)
        else:
            self._logger.warning("the session with ZooKeeper is lost: %s", reason)
            self._become(SessionState.LOST)
        # Ending the old session may take a while, and nobody waits for that.
        threading.Thread(target=self.client.stop, name="cordwood-zookeeper-old", daemon=True).start()
        self._generation += 1
        self._next_s = max(time.monotonic(), self._began_s + PAUSE_S)
        self._broken()

    def _on_event(self, generation: int, event: ConnectionEvent) -> None:
        if generation != self._generation:
            return
        if event is ConnectionEvent.ENDED:
            self.lose("ZooKeeper has ended it")
        elif event is ConnectionEvent.SUSPENDED:
            if self.state is SessionState.ALIVE:
                self._logger.warning("the connection to ZooKeeper is lost")
                self._become(SessionState.SUSPENDED)
            self._broken()

    def _become(self, state: SessionState) -> None:
        self.state = state
        self._told(state)

    def close(self) -> None:
        """End the session at once."""
        self._generation += 1
        self.client.stop()
