"""Timers, proposals and fetch sessions by themselves: what no request can bring about, or only by luck."""

from random import Random

import pytest

from broker.harness import START, Harness
from cordwood.broker.fetch_sessions import FetchSessions, Reader, Waiter
from cordwood.broker.producer_ids import ProducerIds
from cordwood.broker.proposals import IMPATIENT, PATIENCE_MS, Patience, Proposals
from cordwood.broker.syncs import Syncs
from cordwood.broker.timers import CANCELLED_MAX, NEVER, Timers
from cordwood.cluster.layout import PRODUCER_ID_BLOCK_SIZE
from cordwood.effects import Effect, WriteMetadata
from cordwood.errors import CordwoodError, Error, PerhapsDone, Refused, StoreAway, StoreConflict
from cordwood.ids import TopicName
from cordwood.ports import Create, Delete, Instant, StoreOp


def at(ms: int) -> Instant:
    return Instant(0, ms)


# ---------------------------------------------------------------------- timers


def test_timers_run_in_the_order_of_their_deadlines() -> None:
    timers, ran = Timers(), []
    for deadline, name in ((30, "c"), (10, "a"), (20, "b"), (10, "a, set later")):
        timers.at(deadline, lambda _, name=name: ran.append(name))  # type: ignore[misc]
    assert timers.due_ms == 10
    timers.run_due(at(20))
    assert ran == ["a", "a, set later", "b"]
    assert timers.due_ms == 30
    assert len(timers) == 1


def test_a_cancelled_timer_does_nothing_and_goes() -> None:
    timers, ran = Timers(), []
    timers.at(10, lambda _: ran.append("cancelled")).cancel()
    timers.at(20, lambda _: ran.append("kept"))
    timers.run_due(at(5))
    assert (timers.due_ms, len(timers)) == (20, 1)
    timers.run_due(at(20))
    assert ran == ["kept"]
    assert timers.due_ms == NEVER


def test_a_timer_may_set_another_that_is_due_too() -> None:
    timers, ran = Timers(), []

    def outer(now: Instant) -> None:
        timers.at(now.mono_ms, lambda _: ran.append("inner"))

    timers.at(10, outer)
    timers.run_due(at(10))
    assert ran == ["inner"]


def test_a_repeated_timer_counts_from_when_it_ran() -> None:
    timers, ran = Timers(), []
    timers.every(10, lambda now: ran.append(now.mono_ms), now=at(0))
    timers.run_due(at(9))
    timers.run_due(at(37))
    timers.run_due(at(46))
    timers.run_due(at(47))
    assert ran == [37, 47]


def test_cancelled_timers_do_not_pile_up() -> None:
    timers, ran = Timers(), []
    timers.at(50, lambda _: ran.append("kept"))
    for number in range(5 * CANCELLED_MAX):
        timers.at(1_000_000 + number, lambda _: ran.append("cancelled")).cancel()
        assert len(timers) <= CANCELLED_MAX + 2
    timers.run_due(at(2_000_000))
    assert ran == ["kept"]
    assert len(timers) == 0


def test_timers_may_be_thrown_out_while_they_run() -> None:
    timers, ran = Timers(), []
    later = [timers.at(100 + number, lambda _: ran.append("cancelled")) for number in range(3 * CANCELLED_MAX)]

    def cancel_all(_: Instant) -> None:
        for timer in later:
            timer.cancel()
            timer.cancel()

    timers.at(10, cancel_all)
    timers.at(10_000, lambda _: ran.append("kept"))
    timers.run_due(at(20_000))
    assert ran == ["kept"]


# ---------------------------------------------------------------------- proposals


class Proposed:
    """A proposal whose plan does what the test wants."""

    def __init__(self, *plans: list[StoreOp] | Refused, patience: Patience = IMPATIENT) -> None:
        self.timers = Timers()
        self.effects: list[Effect] = []
        self.proposals = Proposals(self.timers, self.effects.append, lambda: True)
        self.outcome: list[Refused | None] = []
        self._plans = iter(plans)
        self.proposals.submit(self._plan, self.outcome.append, at(0), patience)

    def _plan(self) -> list[StoreOp]:
        planned = next(self._plans)
        if isinstance(planned, Refused):
            raise planned
        return planned


def test_a_plan_that_refuses_is_done() -> None:
    refusal = Refused(Error.INVALID_REQUEST)
    proposed = Proposed(refusal)
    assert proposed.outcome == [refusal]
    assert proposed.effects == []


def test_a_plan_of_nothing_is_done() -> None:
    assert Proposed([]).outcome == [None]


def test_a_plan_made_again_may_refuse_or_be_needless() -> None:
    refusal = Refused(Error.INVALID_REQUEST)
    for second, outcome in ((refusal, refusal), ([], None)):
        proposed = Proposed([Create("/a", b"")], second)
        proposed.proposals.refused(1, StoreConflict("changed"), at(0))
        assert proposed.outcome == [outcome]
        assert len(proposed.proposals) == 0


def test_every_attempt_has_a_token_of_its_own() -> None:
    operations: list[StoreOp] = [Create("/a", b""), Delete("/b")]
    proposed = Proposed(operations, operations)
    proposed.proposals.refused(1, StoreConflict("changed"), at(0))
    assert proposed.effects == [WriteMetadata(1, operations), WriteMetadata(2, operations)]
    proposed.proposals.accepted(2, at(0))
    assert proposed.outcome == [None]


@pytest.mark.parametrize("late", [None, StoreConflict("changed"), StoreAway("lost"), PerhapsDone("lost")])
def test_what_the_store_says_too_late_is_told_to_nobody(late: CordwoodError | None) -> None:
    proposed = Proposed([Create("/a", b"")], patience=Patience(700))
    proposed.timers.run_due(at(PATIENCE_MS))
    (refusal,) = proposed.outcome
    assert refusal is not None
    assert refusal.error is Error.NETWORK_EXCEPTION
    proposals = proposed.proposals
    proposals.submit(lambda: [Create("/b", b"")], proposed.outcome.append, at(PATIENCE_MS), Patience(9_000))
    assert len(proposed.effects) == 1
    if late is None:
        proposals.accepted(1, at(PATIENCE_MS))
    else:
        proposals.refused(1, late, at(PATIENCE_MS))
    assert len(proposed.effects) == 2, "the next in line had to wait for that"
    proposals.accepted(2, at(PATIENCE_MS))
    assert proposed.outcome == [refusal, None]
    proposals.check()


# ---------------------------------------------------------------------- producer ids


def test_ids_are_handed_out_in_the_order_of_asking() -> None:
    ids, got = ProducerIds(), []
    assert not ids.take(lambda outcome: got.append(("first", outcome)))
    assert not ids.take(lambda outcome: got.append(("second", outcome)))
    assert ids.wanted
    ids.granted(5_000)
    assert not ids.wanted
    assert ids.take(lambda outcome: got.append(("third", outcome)))
    assert got == [("first", 5_000), ("second", 5_001), ("third", 5_002)]


def test_a_block_that_is_too_small_leaves_the_last_waiting() -> None:
    ids = ProducerIds()
    got: list[int | Refused] = []
    for _ in range(PRODUCER_ID_BLOCK_SIZE + 1):
        ids.take(got.append)
    ids.granted(0)
    assert ids.wanted
    assert len(got) == PRODUCER_ID_BLOCK_SIZE


# ---------------------------------------------------------------------- fetch sessions


def test_a_session_removed_twice_is_removed() -> None:
    sessions = FetchSessions(2, 1000, Random(1))
    reader = Reader()
    reader.want(TopicName("t"), "t", 0)
    assert sessions.add(reader, START.mono_ms)
    sessions.check()
    sessions.remove(reader.id)
    sessions.remove(reader.id)
    assert len(sessions) == 0
    assert reader.partitions == {}


def test_a_waiter_is_ready_when_enough_came_or_something_else_happened() -> None:
    ready: dict[Waiter, None] = {}
    waiter = Waiter(10, ready, lambda: None)
    waiter.arrived(9)
    assert not ready
    waiter.arrived(1)
    assert list(ready) == [waiter]
    ready.clear()
    other = Waiter(10, ready, lambda: None)
    other.arrived(0)
    assert list(ready) == [other]


def test_check_sees_news_of_a_partition_that_nobody_reads() -> None:
    reader = Reader()
    entry = reader.want(TopicName("t"), "t", 0)
    reader.check()
    reader.partitions.clear()
    reader.news[entry] = None
    with pytest.raises(AssertionError):
        reader.check()


# ---------------------------------------------------------------------- syncs


def test_who_waits_for_what_was_cut_off_does_not_wait_for_ever() -> None:
    """So a follower would, with all partitions of the leader that it had the records from."""
    harness = Harness()
    harness.topic("t")
    partition, syncs = harness.partition("t"), Syncs()
    effects: list[Effect] = []
    told: list[str] = []
    harness.append("t", b"a")
    syncs.start(partition, effects)
    harness.append("t", b"b")
    syncs.wait([partition], lambda: told.append("synced"), effects)
    partition.log.truncate(1, START)
    for token in (1, 2):
        assert told == []
        syncs.done(token, effects, START)
    assert told == ["synced"]
    assert (len(effects), len(syncs)) == (2, 0)


def test_what_comes_in_the_place_of_what_was_cut_off_is_not_safe_with_it() -> None:
    harness = Harness()
    harness.topic("t")
    partition, syncs = harness.partition("t"), Syncs()
    effects: list[Effect] = []
    told: list[str] = []
    for value in (b"a", b"b", b"c"):
        harness.append("t", value)
    syncs.start(partition, effects)
    partition.log.truncate(1, START)
    partition.high_watermark = 1
    harness.append("t", b"other")
    syncs.wait([partition], lambda: told.append("synced"), effects)
    syncs.done(1, effects, START)
    assert told == []
    syncs.done(2, effects, START)
    assert told == ["synced"]
