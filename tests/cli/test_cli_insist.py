"""What a cluster could not do just now is asked for again, and who gives up says what is known."""

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from cordwood.client.insist import Outcome, insist


class Answers:
    """A cluster that gives these answers, one after the other: error codes, or None for success."""

    def __init__(self, *codes: int | None) -> None:
        self._codes = list(codes)

    def __call__(self) -> "Future[None]":
        answer: Future[None] = Future()
        code = self._codes.pop(0)
        if code is None:
            answer.set_result(None)
        else:
            answer.set_exception(KafkaException(KafkaError(code, "as the test wants it.")))
        return answer

    @property
    def left(self) -> int:
        return len(self._codes)


def code_of(outcome: Outcome) -> int | None:
    return None if outcome.error is None else outcome.error.code()


@pytest.mark.parametrize(
    ("code", "in_doubt"),
    [
        (KafkaError.NOT_CONTROLLER, False),
        (KafkaError.NETWORK_EXCEPTION, True),
        (KafkaError.REQUEST_TIMED_OUT, True),
        (KafkaError._TIMED_OUT, True),
        (KafkaError._TRANSPORT, True),
    ],
)
def test_what_may_go_away_is_asked_again(code: int, in_doubt: bool) -> None:
    outcome = insist(Answers(code, None))
    assert (outcome.error, outcome.in_doubt) == (None, in_doubt)


def test_a_no_is_a_no() -> None:
    answers = Answers(KafkaError.INVALID_CONFIG, None)
    outcome = insist(answers)
    assert (code_of(outcome), outcome.in_doubt, answers.left) == (KafkaError.INVALID_CONFIG, False, 1)
    assert outcome.text == "as the test wants it."


def test_a_doubt_stays_when_the_next_answer_has_none() -> None:
    outcome = insist(Answers(KafkaError.NETWORK_EXCEPTION, KafkaError.TOPIC_ALREADY_EXISTS))
    assert (code_of(outcome), outcome.in_doubt) == (KafkaError.TOPIC_ALREADY_EXISTS, True)


def test_what_was_asked_already_is_not_asked_first() -> None:
    answers = Answers(None)
    assert insist(answers, Answers(None)()).error is None
    assert answers.left == 1


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (KafkaError.NOT_CONTROLLER, "Nothing was changed: run this again when the cluster is well"),
        (
            KafkaError.NETWORK_EXCEPTION,
            "It may have been done all the same: look, and run this again when the cluster is well",
        ),
    ],
)
def test_who_gives_up_says_what_is_known_and_what_to_do(code: int, advice: str) -> None:
    outcome = insist(Answers(code), patience_s=0)
    assert outcome.text == f"as the test wants it. It was tried for 0 s. {advice}"
