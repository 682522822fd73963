"""The checker can fail: one broken history for each promise."""

from collections.abc import Callable

import pytest

from cordwood.ids import TopicName, TopicPartition
from cordwood.sim.checker import violations
from cordwood.sim.history import Acknowledged, Era, History, LogDump, Reading, Seen, Stored

SAFE, FAST = TopicPartition(TopicName("safe"), 0), TopicPartition(TopicName("fast"), 0)
A, B, C, D = b"p/0", b"p/1", b"p/2", b"p/3"


def log(*values: bytes) -> LogDump:
    return [Stored(offset, value) for offset, value in enumerate(values)]


def reading(partition: TopicPartition, *values: bytes, era: int = 0) -> Reading:
    return Reading("consumer", partition, 0, [Seen(offset, value, era) for offset, value in enumerate(values)])


def good() -> History:
    """Two eras. *safe* kept everything; *fast* lost its last two records with the power, one of them acknowledged."""
    history = History(safe_topics=frozenset({SAFE.topic}), producer_ids=[1, 2])
    history.sent = {("producer", SAFE): [A, B, C], ("producer", FAST): [A, B, C, D]}
    history.eras = [
        Era(logs={SAFE: log(A, B), FAST: log(A, B, C)}),
        Era(logs={SAFE: log(A, B, C), FAST: log(A, D)}, kept={SAFE: log(A, B), FAST: log(A)}),
    ]
    history.acknowledged = [
        Acknowledged("producer", SAFE, 0, (A, B), 0),
        Acknowledged("producer", SAFE, 2, (C,), 1),
        Acknowledged("producer", FAST, 1, (B,), 0),
        Acknowledged("producer", FAST, 1, (D,), 1),
    ]
    history.readings = [
        reading(SAFE, A, B),
        reading(FAST, A, B, C),
        reading(FAST, A, D, era=1),
    ]
    return history


def test_a_good_history_has_no_violations() -> None:
    assert violations(good()) == []


def lost_acknowledgement(history: History) -> None:
    history.eras[1].logs[SAFE] = log(A, B)


def acknowledged_elsewhere(history: History) -> None:
    history.acknowledged[0] = Acknowledged("producer", SAFE, 1, (A,), 0)


def half_a_batch(history: History) -> None:
    history.acknowledged[2] = Acknowledged("producer", FAST, 1, (B, D), 0)


def synced_and_lost(history: History) -> None:
    history.eras[1].kept[SAFE] = log(A)


def duplicate(history: History) -> None:
    history.eras[1].logs[FAST] = log(A, D, D)


def reordered(history: History) -> None:
    history.eras[1].logs[FAST] = log(B, D, A)
    history.eras[1].kept[FAST] = []


def gap_in_the_log(history: History) -> None:
    history.eras[1].logs[FAST] = [Stored(0, A), Stored(2, D)]


def changed_by_the_loss_of_power(history: History) -> None:
    history.eras[1].kept[FAST] = log(B)


def longer_after_the_loss_of_power(history: History) -> None:
    history.eras[1].kept[FAST] = log(A, B, C, D)


def consumer_skips(history: History) -> None:
    del history.readings[1].seen[1]


def consumer_sees_twice(history: History) -> None:
    history.readings[1].seen.insert(1, history.readings[1].seen[0])


def consumer_begins_late(history: History) -> None:
    del history.readings[1].seen[0]


def consumer_sees_what_is_not_there(history: History) -> None:
    history.readings[2].seen[1] = Seen(1, B, 1)


def consumer_sees_beyond_the_end(history: History) -> None:
    history.readings[2].seen.append(Seen(2, C, 1))


def consumer_sees_what_was_not_synced(history: History) -> None:
    history.eras[0].logs[SAFE] = log(A, B, D)
    history.readings[0].seen.append(Seen(2, D, 0))


def producer_id_twice(history: History) -> None:
    history.producer_ids.append(1)


def complaint(history: History) -> None:
    history.complain("a client was told what is not so")


@pytest.mark.parametrize(
    ("breaking", "text"),
    [
        (lost_acknowledgement, "is at offset 2, and it was not"),
        (acknowledged_elsewhere, "is at offset 1, and it was not"),
        (half_a_batch, "is at offset 1, and it was not"),
        (synced_and_lost, "synced, and loss of power 1 took it"),
        (duplicate, "is in the log 2 times"),
        (reordered, "and the log has them after"),
        (gap_in_the_log, "2 where 1 belongs"),
        (changed_by_the_loss_of_power, "not a first part of what it was"),
        (longer_after_the_loss_of_power, "not a first part of what it was"),
        (consumer_skips, "saw offset 2 where 1 was next"),
        (consumer_sees_twice, "saw offset 0 where 1 was next"),
        (consumer_begins_late, "saw offset 1 where 0 was next"),
        (consumer_sees_what_is_not_there, "and the log has something else there"),
        (consumer_sees_beyond_the_end, "and the log has something else there"),
        (consumer_sees_what_was_not_synced, "before it was synced, and then it was lost"),
        (producer_id_twice, "producer id 1 was given 2 times"),
        (complaint, "a client was told what is not so"),
    ],
)
def test_a_broken_promise_is_seen(breaking: Callable[[History], None], text: str) -> None:
    history = good()
    breaking(history)
    found = violations(history)
    assert any(text in violation for violation in found), found
