"""A broker that was stopped for a while must know that it is nobody any more before it answers anybody."""

from math import inf

from cordwood.broker.timers import NEVER
from cordwood.run.lease import Lease


class Session:
    """A session with a store, as a lease sees it."""

    def __init__(self) -> None:
        self.until_s = 10.0
        self.looks = 0
        self.ends = 0
        self.lease = Lease(self._certain_until_s, self._ended)

    def _certain_until_s(self) -> float:
        self.looks += 1
        return self.until_s

    def _ended(self) -> None:
        self.ends += 1

    def serve(self, now_ms: int) -> None:
        """As the driver does before each request."""
        if now_ms >= self.lease.due_ms:
            self.lease.look(now_ms)


def test_the_store_is_asked_only_when_the_lease_may_be_over() -> None:
    session = Session()
    for now_ms in range(0, 10_000, 1000):
        session.serve(now_ms)
    assert (session.looks, session.ends) == (1, 0)
    session.until_s = 20.0
    session.serve(10_000)
    session.serve(19_999)
    assert (session.looks, session.ends) == (2, 0)


def test_the_end_is_told_before_the_first_request_after_it_and_once() -> None:
    session = Session()
    session.serve(0)
    session.serve(60_000)
    assert session.ends == 1
    session.serve(60_001)
    assert (session.looks, session.ends) == (2, 1)


def test_a_session_that_is_lost_is_no_lease() -> None:
    session = Session()
    session.until_s = -inf
    session.serve(0)
    assert session.ends == 1


def test_the_next_session_has_a_lease_of_its_own() -> None:
    session = Session()
    session.serve(60_000)
    session.until_s = 70.0
    session.lease.renew()
    session.serve(60_001)
    session.serve(69_999)
    assert session.ends == 1
    session.serve(70_000)
    assert session.ends == 2


def test_nothing_is_told_while_everybody_knows() -> None:
    session = Session()
    session.lease.rest()
    session.serve(60_000)
    assert (session.looks, session.ends) == (0, 0)


def test_a_session_without_end_is_looked_at_once() -> None:
    session = Session()
    session.until_s = inf
    session.serve(0)
    assert session.lease.due_ms == NEVER
    assert session.ends == 0
