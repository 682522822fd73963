"""One session after the other: which is ours now, how it stands, and when the next one begins.

Everything here runs in the store's thread. Invariant: after ``LOST`` comes a new session or nothing. An old client that
reaches a server again says good-bye there, so whatever was ephemeral is gone, and none of its events counts any more.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from cordwood.ports import SessionState

from .zookeeper_client import ConnectionEvent, ZooKeeperClient

PAUSE_S: Final = 1.0
"""Between the beginnings of two sessions, so that a server that breaks every one is not asked all the time."""

MakeClient = Callable[[Callable[[ConnectionEvent], None]], ZooKeeperClient]


class Session:
    """How this broker stands with ZooKeeper."""

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
            put: lets the store's thread call something; events come from another.
            broken: called when watches are gone with a connection, or more with a session.
            told: called when the state is another.
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
        """Can ZooKeeper be asked something?"""
        return self._next_s is None and self.client.connected

    @property
    def certain_until_s(self) -> float:
        """Until when, on the monotonic clock, the session is sure to live. Any thread may ask."""
        return float("-inf") if self.state is SessionState.LOST else self.client.lease_end_s

    @property
    def due_s(self) -> float:
        """When ``tick`` has something to do."""
        if self._next_s is not None:
            return self._next_s
        return float("inf") if self.state is SessionState.LOST else self.client.lease_end_s

    def tick(self) -> None:
        """Time goes by: the lease may be over, the next session may be due."""
        now_s = time.monotonic()
        if self.state is not SessionState.LOST and now_s >= self.client.lease_end_s:
            self.lose(f"ZooKeeper was not heard for {self.client.session_timeout_ms} ms")
        if self._next_s is not None and now_s >= self._next_s:
            self._next_s = None
            self.client = self._begin()

    def alive(self) -> None:
        """Everything that happened up to now is known."""
        if self.state is not SessionState.ALIVE:
            self._logger.info("connected to ZooKeeper")
            self._become(SessionState.ALIVE)

    def lose(self, reason: str) -> None:
        """The session is over, or must be taken for it. The next one is another client's."""
        if self._next_s is not None:
            return
        if self.state is SessionState.LOST:
            self._logger.debug("no session with ZooKeeper yet: %s", reason)
        else:
            self._logger.warning("the session with ZooKeeper is lost: %s", reason)
            self._become(SessionState.LOST)
        # To say good-bye may take a while, and nobody waits for it.
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
        """End it at once."""
        self._generation += 1
        self.client.stop()
