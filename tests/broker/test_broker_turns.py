"""Requests that are worked out in several turns of the loop."""

from collections.abc import Iterator

from cordwood.broker.connection import Call, Connection, Peer
from cordwood.broker.timers import Timers
from cordwood.broker.turns import Turns
from cordwood.ids import ConnectionId
from cordwood.ports import Instant


class Loop:
    """Notes what each turn brings."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.turns = Turns(self.timers)
        self.now_ms = 0
        self.seen: list[str] = []

    def ask(self, name: str, *, steps: int) -> Connection:
        connection = Connection(ConnectionId(len(name)), Peer("here", 1, "there", 2), 0)
        call = Call(connection, 2, 0, 0, None)
        self.turns.wait(call, self._steps(name, steps), lambda: self.seen.append(f"{name} is done"), self._now())
        return connection

    def _steps(self, name: str, count: int) -> Iterator[None]:
        for _ in range(count):
            self.seen.append(name)
            yield

    def turn(self) -> list[str]:
        self.now_ms += 1
        self.seen = []
        self.timers.run_due(self._now())
        self.turns.check()
        return self.seen

    def _now(self) -> Instant:
        return Instant(mono_ms=self.now_ms, wall_ms=self.now_ms)


def test_all_requests_together_have_one_step_in_a_turn() -> None:
    loop = Loop()
    loop.ask("a", steps=2)
    loop.ask("b", steps=1)
    assert [loop.turn() for _ in range(6)] == [["a"], ["b"], ["a"], ["b is done"], ["a is done"], []]
    assert not len(loop.timers)


def test_a_client_begins_nothing_else_until_its_request_is_done() -> None:
    loop = Loop()
    connection = loop.ask("a", steps=1)
    loop.turn()
    assert connection.takes_turns
    loop.turn()
    assert not connection.takes_turns


def test_for_a_client_that_is_gone_no_more_steps_are_taken() -> None:
    loop = Loop()
    loop.ask("a", steps=5).closed = True
    loop.ask("b", steps=1)
    assert [loop.turn() for _ in range(4)] == [[], ["b"], ["b is done"], []]
