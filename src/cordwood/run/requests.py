"""What happens for every request, and nothing else: from a client's socket to the broker, and back.

It is separate from the driver's other work because it is compiled where speed matters (``setup.py``), and must not
contain inner functions.
"""

from collections.abc import Callable

from cordwood.broker.broker import Broker
from cordwood.broker.timers import NEVER
from cordwood.effects import Effect, Send
from cordwood.ids import ConnectionId
from cordwood.ports import Instant
from cordwood.run.client_socket import ClientSocket
from cordwood.run.lease import Lease


class Requests:
    """The sockets of all clients, and the broker that serves them."""

    __slots__ = (
        "_broker",
        "_execute_other",
        "_fail",
        "_set_timer",
        "_timers",
        "clients",
        "is_over",
        "lease",
        "timer_ms",
    )

    def __init__(
        self,
        broker: Broker,
        *,
        execute_other: Callable[[Effect], None],
        set_timer: Callable[[int], None],
        fail: Callable[[Exception], None],
    ) -> None:
        self._broker = broker
        self._timers = broker.timers
        self._execute_other = execute_other
        self._set_timer = set_timer
        self._fail = fail
        self.clients: dict[ConnectionId, ClientSocket] = {}
        self.timer_ms = NEVER
        """When the broker will next be told the time."""
        self.is_over = False
        """Has a bug been met? Then the broker gets no more events."""
        self.lease: Lease | None = None
        """None for a broker that does not share its metadata."""

    def received(self, client: ClientSocket, frame: memoryview, moment: Instant) -> None:
        if self.is_over:
            return
        self.look_at_lease(moment)
        try:
            effects = self._broker.received(client.connection, frame, moment)
        except Exception as error:
            self._fail(error)
            return
        self.execute(effects)

    def look_at_lease(self, moment: Instant) -> None:
        """Call this before the broker does anything that only a leader may do."""
        lease = self.lease
        if lease is not None and moment.mono_ms >= lease.due_ms:
            lease.look(moment.mono_ms)

    def execute(self, effects: list[Effect]) -> None:
        for effect in effects:
            if type(effect) is Send:  # tested first, and not by match: nearly all effects are of this type
                client = self.clients.get(effect.connection)
                if client is not None:
                    client.send(effect.chunks)
                    client.go_on()
            else:
                self._execute_other(effect)
        due_ms = self._timers.due_ms
        if due_ms < self.timer_ms:
            self._set_timer(due_ms)
