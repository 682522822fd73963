"""Changes of the metadata on their way to the store.

A change is a *plan*: a function that checks it against the image as it is now and returns store operations. If the
store refuses them because something else changed first, the plan is made again from the newer image; so a plan must
have no memory of its earlier attempts, but for those of which nobody knows what became.

A store that is away does not fail a change that somebody has *patience* for: it rests, is planned again when the store
is back, and is refused when the patience is at its end. What is refused then says what is known:

- nothing was done: NOT_CONTROLLER. Clients take it for a cluster that is busy with itself, and Java's ask again;
- it may have been done: NETWORK_EXCEPTION, which is what happened, if not to the client itself.

REQUEST_TIMED_OUT, which Kafka has for both, is neither: librdkafka takes it for success where an application did not
ask to wait until a topic is there, because brokers once answered so when they had begun.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from cordwood.broker.timers import Timer, Timers
from cordwood.effects import WriteMetadata
from cordwood.errors import CordwoodError, Error, PerhapsDone, Refused, StoreAway, StoreConflict
from cordwood.ports import Instant, StoreOp

ATTEMPTS_MAX: Final = 5
"""That others come first."""
PATIENCE_MS: Final = 5_000
"""A ZooKeeper that elects its leader is back by then. A client that waits longer asks again."""
REST_MS: Final = 100
REST_MS_MAX: Final = 800

Plan = Callable[[], Sequence[StoreOp]]
Done = Callable[[Refused | None], None]


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Patience:
    """How long somebody waits for a store that is away."""

    until_ms: int
    """On the monotonic clock. The last attempt is then."""
    in_doubt: Callable[[], None] = _nothing
    """Called when nobody knows what became of the last plan, before the next one is made."""


IMPATIENT: Final = Patience(0)
"""For those who try again by themselves."""


@dataclass(slots=True, eq=False)
class Proposal:
    """A change that the store is working on, or that rests."""

    plan: Plan
    done: Done
    patience: Patience
    operations: Sequence[StoreOp] = ()
    conflicts: int = 0
    rest_ms: int = REST_MS
    in_doubt: bool = False
    """Was there an attempt that may have been done?"""


class Proposals:
    """The changes under way, by the token that the store's answer will carry, and those that rest."""

    def __init__(
        self, timers: Timers, write: Callable[[WriteMetadata], None], is_steady: Callable[[], bool] = lambda: True
    ) -> None:
        """*is_steady*: is what the metadata says of the cluster's brokers worth planning with?"""
        self._timers = timers
        self._write = write
        self._is_steady = is_steady
        self._pending: dict[int, Proposal] = {}
        self._resting: dict[Proposal, Timer] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._pending) + len(self._resting)

    def submit(self, plan: Plan, done: Done, now: Instant, patience: Patience = IMPATIENT) -> None:
        """Plan a change and send it off. *done* is called with None once it is in the image, or with the refusal."""
        self._try(Proposal(plan, done, patience), now)

    def _try(self, proposal: Proposal, now: Instant) -> None:
        if now.mono_ms < proposal.patience.until_ms and not self._is_steady():
            self._rest(proposal, now)
            return
        try:
            proposal.operations = proposal.plan()
        except Refused as refusal:
            proposal.done(refusal)
            return
        if not proposal.operations:
            proposal.done(None)
            return
        self._count += 1
        self._pending[self._count] = proposal
        self._write(WriteMetadata(self._count, proposal.operations))

    def accepted(self, token: int) -> None:
        self._pending.pop(token).done(None)

    def refused(self, token: int, reason: CordwoodError, now: Instant) -> None:
        proposal = self._pending.pop(token)
        if isinstance(reason, PerhapsDone):
            proposal.in_doubt = True
            proposal.patience.in_doubt()
        proposal.conflicts += isinstance(reason, StoreConflict)
        if isinstance(reason, StoreAway) and now.mono_ms < proposal.patience.until_ms:
            self._rest(proposal, now)
        elif isinstance(reason, StoreConflict) and proposal.conflicts < ATTEMPTS_MAX:
            self._try(proposal, now)
        else:
            proposal.done(_refusal(reason, in_doubt=proposal.in_doubt))

    # ------------------------------------------------------------------ while the store is away

    def _rest(self, proposal: Proposal, now: Instant) -> None:
        due_ms = min(now.mono_ms + proposal.rest_ms, proposal.patience.until_ms)
        proposal.rest_ms = min(2 * proposal.rest_ms, REST_MS_MAX)
        self._rest_until(due_ms, proposal)

    def _rest_until(self, due_ms: int, proposal: Proposal) -> None:
        self._resting[proposal] = self._timers.at(due_ms, partial(self._rested, proposal))

    def _rested(self, proposal: Proposal, now: Instant) -> None:
        del self._resting[proposal]
        self._try(proposal, now)

    def store_is_back(self, now: Instant) -> None:
        """Nothing needs to rest any more. It goes on in an event of its own, when this one is dealt with."""
        for proposal, timer in self._resting.items():
            timer.cancel()
            self._rest_until(now.mono_ms, proposal)

    def check(self) -> None:
        assert self._resting.keys().isdisjoint(self._pending.values()), "a change is with the store, or it rests"
        assert all(timer.action is not None for timer in self._resting.values()), "nobody comes for what rests"


def _refusal(reason: CordwoodError, *, in_doubt: bool) -> Refused:
    """What a client is told, see above."""
    match reason:
        case StoreConflict():
            refusal = Refused(Error.NOT_CONTROLLER, f"The metadata kept changing: {reason}. Try again.")
        case StoreAway() if in_doubt:
            text = f"The metadata store is away, and this may have been done or not: {reason}. Look, and try again."
            refusal = Refused(Error.NETWORK_EXCEPTION, text)
        case StoreAway():
            refusal = Refused(Error.NOT_CONTROLLER, f"The metadata store is away: {reason}. Try again.")
        case _:
            refusal = Refused(Error.UNKNOWN_SERVER_ERROR, str(reason))
    refusal.__cause__ = reason
    return refusal
