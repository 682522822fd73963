"""Retrying what a cluster cannot do at the moment.

A cluster that cannot reach its metadata store, or has no controller, says so with its own error code, and recovers
soon. librdkafka leaves such errors to the application. If an answer was lost, the request may have been carried out all
the same: whoever retries must be prepared for that.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Event
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError

from .connect import error_of, sentence

INSIST_S: Final = 30.0
PAUSE_S: Final = 0.2
PERHAPS_DONE: Final = (
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,  # the connection broke before the answer
    KafkaError._DESTROY_BROKER,  # the broker that was asked is no longer registered, so librdkafka has forgotten it
)
FOR_NOW: Final = (KafkaError.NOT_CONTROLLER, *PERHAPS_DONE)

Ask = Callable[[], "Future[Any]"]


class Outcome(NamedTuple):
    """How it ended."""

    error: KafkaError | None
    in_doubt: bool
    """May an earlier attempt have succeeded without an answer?"""
    tried_s: float

    @property
    def text(self) -> str:
        """What went wrong and what to do, for users."""
        assert self.error is not None
        if self.error.code() not in FOR_NOW:
            return sentence(self.error)
        if self.in_doubt:
            advice = "It may have been done all the same: look, and run this again when the cluster is well"
        else:
            advice = "Nothing was changed: run this again when the cluster is well"
        return f"{sentence(self.error).rstrip('.')}. It was tried for {self.tried_s:.0f} s. {advice}"


def insist(ask: Ask, asked: "Future[Any] | None" = None, *, patience_s: float = INSIST_S) -> Outcome:
    """Ask until the cluster succeeds, refuses for good, or time is up. *asked* is a first attempt already under way."""
    start_s = time.monotonic()
    pause = Event()
    in_doubt = False
    while True:
        error = error_of(asked or ask())
        asked = None
        tried_s = time.monotonic() - start_s
        if error is None or error.code() not in FOR_NOW:
            return Outcome(error, in_doubt, tried_s)
        in_doubt |= error.code() in PERHAPS_DONE
        if tried_s >= patience_s:
            return Outcome(error, in_doubt, tried_s)
        pause.wait(PAUSE_S)
