"""Changes of the metadata on their way to the store.

A change is a *plan*: a function that checks it against the image as it is now and returns store operations. If the
store refuses them because something else changed first, the plan is made again from the newer image; so a plan must not
remember its earlier attempts.

A change with *patience* does not fail while the store is away: it rests, is planned again when the store is back, and
is refused when the patience runs out. Such changes wait in one queue, in the order in which they were asked for, and
only the first of them is with the store: a retry is never carried out after a change that was asked for later. If the
outcome of a change leads at once to another, that one takes its predecessor's place in the queue: so large changes,
which come in portions, are not overtaken either. If the store cannot say whether a change was done, it is not retried:
others may have undone it since. A change whose client is gone does not rest. A refusal says what is known:

- nothing was done: NOT_CONTROLLER. Clients take it to mean that the cluster is busy with itself, and Java's retry;
- it may have been done: NETWORK_EXCEPTION, which is what happened, though not between the client and this broker.

REQUEST_TIMED_OUT, which Kafka uses for both, is used for neither: librdkafka takes it for success if the application
did not ask to wait until a topic exists, because brokers once answered so when they had begun.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cordwood.broker.connection import Connection
from cordwood.broker.timers import Timer, Timers
from cordwood.effects import WriteMetadata
from cordwood.errors import CordwoodError, Error, PerhapsDone, Refused, StoreAway, StoreConflict
from cordwood.ports import Instant, StoreOp

ATTEMPTS_MAX: Final = 5
"""How often to try if others' changes come first."""
PATIENCE_MS: Final = 5_000
"""A ZooKeeper that elects its leader is back by then. A client that waits longer can ask again."""
REST_MS: Final = 100
REST_MS_MAX: Final = 800

UNSTEADY: Final = StoreAway("this broker is not in touch with it, or others of the cluster were not either")

Plan = Callable[[], Sequence[StoreOp]]
Done = Callable[[Refused | None], None]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a store that is away."""

    until_ms: int
    """On the monotonic clock. A change that is with the store by then has ``PATIENCE_MS`` from when it was sent."""
    client: Connection | None = None
    """The client that waits, if it is one: once it is gone, its change no longer rests."""
    answer_until_ms: int = 0
    """For a change that is with the store, if later: the store may be slow, and nobody else knows the outcome."""


IMPATIENT: Final = Patience(0)
"""For those that retry on their own."""


@dataclass(slots=True, eq=False)
class Proposal:
    """A change that the store is working on, or that waits for its turn."""

    plan: Plan
    done: Done
    patience: Patience
    conflicts: int = 0
    deadline: Timer | None = None
    """When its patience runs out, if it has any."""
    answered: bool = False
    """Has the outcome been reported before the store has given it?"""


class Proposals:
    """The changes in progress, by the token that the store's answer will carry, and the queue of the patient ones.

    Invariants (``check``): of the queue, only the first is with the store, unless the queue rests.
    """

    def __init__(self, timers: Timers, write: Callable[[WriteMetadata], None], is_steady: Callable[[], bool]) -> None:
        """*is_steady*: can one plan with what the metadata says of the cluster's brokers?"""
        self._timers = timers
        self._write = write
        self._is_steady = is_steady
        self._pending: dict[int, Proposal] = {}
        self._count = 0
        self._line: deque[Proposal] = deque()
        self._answer_due: Timer | None = None
        """When the store should have answered the first of the queue, if that is with the store."""
        self._silent = False
        """Has it failed to, for so long that the others are not kept waiting for it?"""
        self._rest: Timer | None = None
        """When the queue goes on, if it rests."""
        self._rest_ms = REST_MS
        self._why = UNSTEADY
        """Why it rests."""
        self._place: int | None = None
        """While an outcome is being reported: the place in the queue for the next change."""

    def __len__(self) -> int:
        return len(self._pending) + len(self._line) - (self._answer_due is not None)

    def submit(self, plan: Plan, done: Done, now: Instant, patience: Patience = IMPATIENT) -> None:
        """Plan a change and send it off. *done* is called with None once it is in the image, or with the refusal."""
        proposal = Proposal(plan, done, patience)
        if patience is IMPATIENT:
            self._try(proposal)
        elif patience.client is None or not (patience.client.closed and self._is_stuck):
            proposal.deadline = self._timers.at(patience.until_ms, self._lose_patience)
            if self._place is None:
                self._line.append(proposal)
                self._go_on(now)
            else:  # the queue goes on when all follow-up changes are in it
                self._line.insert(self._place, proposal)
                self._place += 1

    def _try(self, proposal: Proposal) -> bool:
        """Try to send it to the store. False: there was nothing to send, or it was refused, and *done* was called."""
        try:
            operations = proposal.plan()
        except Refused as refusal:
            self._end(proposal, refusal)
            return False
        if not operations:
            self._end(proposal, None)
            return False
        self._count += 1
        self._pending[self._count] = proposal
        self._write(WriteMetadata(self._count, operations))
        return True

    def _end(self, proposal: Proposal, refusal: Refused | None) -> None:
        if proposal.deadline is None:
            proposal.done(refusal)
            return
        proposal.deadline.cancel()
        place = self._line.index(proposal)
        del self._line[place]
        if not proposal.answered:
            self._tell(proposal, refusal, place)
        if not self._line and self._rest is not None:
            self._rest.cancel()
            self._rest = None

    def _tell(self, proposal: Proposal, refusal: Refused | None, place: int) -> None:
        """*place*: where follow-up changes go in the queue."""
        self._place = place
        proposal.done(refusal)
        self._place = None

    # ------------------------------------------------------------------ what the store says

    def accepted(self, token: int, now: Instant) -> None:
        proposal = self._returned(token)
        if proposal.deadline is not None:
            self._rest_ms = REST_MS
        self._end(proposal, None)
        self._go_on(now)

    def refused(self, token: int, reason: CordwoodError, now: Instant) -> None:
        proposal = self._returned(token)
        proposal.conflicts += isinstance(reason, StoreConflict)
        patient = proposal.deadline is not None
        if proposal.answered:
            self._end(proposal, None)
        elif isinstance(reason, StoreConflict) and proposal.conflicts < ATTEMPTS_MAX:
            if not patient:
                self._try(proposal)
        elif patient and isinstance(reason, StoreAway) and not isinstance(reason, PerhapsDone):
            self._begin_rest(reason, now)
        else:
            self._end(proposal, _refusal(reason))
        self._go_on(now)

    def _returned(self, token: int) -> Proposal:
        proposal = self._pending.pop(token)
        if proposal.deadline is not None:
            assert self._answer_due is not None
            self._answer_due.cancel()
            self._answer_due = None
            self._silent = False
        return proposal

    # ------------------------------------------------------------------ the queue of patient changes

    def _go_on(self, now: Instant) -> None:
        """Send off the first in the queue; if there was nothing to send, the next."""
        while self._line and self._answer_due is None and self._rest is None:
            first = self._line[0]
            if not self._is_steady():
                self._begin_rest(UNSTEADY, now)
            elif self._try(first):
                self._answer_due = self._timers.at(now.mono_ms + PATIENCE_MS, self._miss_answer)

    @property
    def _is_stuck(self) -> bool:
        """Is the store away, as far as one can see?"""
        return self._rest is not None or self._silent

    def _begin_rest(self, why: StoreAway, now: Instant) -> None:
        self._why = why
        self._rest = self._timers.at(now.mono_ms + self._rest_ms, self._rested)
        self._rest_ms = min(2 * self._rest_ms, REST_MS_MAX)
        self._lose_patience(now)

    def _rested(self, now: Instant) -> None:
        self._rest = None
        self._go_on(now)

    def store_is_back(self, now: Instant) -> None:
        """There is no reason to rest any more. The queue goes on in an event of its own, after this one."""
        self._rest_ms = REST_MS
        if self._rest is not None:
            self._rest.cancel()
            self._rest = self._timers.at(now.mono_ms, self._rested)

    def _miss_answer(self, now: Instant) -> None:
        """The store does not answer. The first client may wait on; after that, the store's answer is of no use to it.

        The others wait for it, too, but no longer than for a store that is away.
        """
        first = self._line[0]
        self._silent = True
        self._why = StoreAway("it does not answer")
        if now.mono_ms < first.patience.answer_until_ms:
            self._answer_due = self._timers.at(first.patience.answer_until_ms, self._miss_answer)
        else:
            first.answered = True
            self._tell(first, _refusal(PerhapsDone(str(self._why))), place=1)
        self._lose_patience(now)

    def _lose_patience(self, now: Instant) -> None:
        """Refuse the changes whose patience has run out, if the store is what holds them up."""
        if not self._is_stuck:
            return
        with_store = self._answer_due is not None
        for proposal in list(self._line)[with_store:]:
            patience = proposal.patience
            if patience.client is not None and patience.client.closed:
                proposal.answered = True  # there is nobody to tell
                self._end(proposal, None)
            elif patience.until_ms <= now.mono_ms:
                self._end(proposal, _refusal(self._why))

    def client_left(self, now: Instant) -> None:
        """A client is gone. Its changes that rest are dropped, and so are those that would have to rest later.

        Those that are only queued, or with the store, are done all the same if the store does them at once.
        """
        self._lose_patience(now)

    def check(self) -> None:
        waiting = list(self._line)[self._answer_due is not None :]
        assert not any(proposal in waiting for proposal in self._pending.values()), "it is with the store, or it waits"
        assert self._answer_due is None or self._line[0] in self._pending.values(), "the store knows nothing of it"
        assert self._answer_due is None or self._rest is None, "it is with the store, or it rests"
        assert not waiting or self._answer_due or self._rest, "nobody comes for those who wait"
        assert self._answer_due is not None or not self._silent, "nothing was asked of it"
        assert self._place is None, "somebody is being told"


def _refusal(reason: CordwoodError) -> Refused:
    """What a client is told; see the module's docstring."""
    match reason:
        case StoreConflict():
            refusal = Refused(Error.NOT_CONTROLLER, f"The metadata kept changing: {reason}. Try again.")
        case PerhapsDone():
            text = f"The metadata store is away, and this may have been done or not: {reason}. Look, and try again."
            refusal = Refused(Error.NETWORK_EXCEPTION, text)
        case StoreAway():
            refusal = Refused(Error.NOT_CONTROLLER, f"The metadata store is away: {reason}. Try again.")
        case _:
            refusal = Refused(Error.UNKNOWN_SERVER_ERROR, str(reason))
    refusal.__cause__ = reason
    return refusal
