"""Changes of the metadata on their way to the store.

A change is a *plan*: a function that checks it against the image as it is now and returns store operations. If the
store refuses them because something else changed first, the plan is made again from the newer image; so a plan must
have no memory of its earlier attempts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cordwood.effects import Effect, WriteMetadata
from cordwood.errors import CordwoodError, Error, Refused, StoreConflict
from cordwood.ports import StoreOp

ATTEMPTS_MAX = 5

Plan = Callable[[], Sequence[StoreOp]]
Done = Callable[[Refused | None], None]


@dataclass(slots=True)
class Proposal:
    """A change that the store is working on."""

    plan: Plan
    done: Done
    operations: Sequence[StoreOp]
    attempts: int = 1


class Proposals:
    """The changes under way, by the token that the store's answer will carry."""

    def __init__(self) -> None:
        self._pending: dict[int, Proposal] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._pending)

    def submit(self, plan: Plan, done: Done, effects: list[Effect]) -> None:
        """Plan a change and send it off. *done* is called with None once it is in the image, or with the refusal."""
        try:
            operations = plan()
        except Refused as refusal:
            done(refusal)
            return
        if not operations:
            done(None)
            return
        self._send(Proposal(plan, done, operations), effects)

    def _send(self, proposal: Proposal, effects: list[Effect]) -> None:
        self._count += 1
        self._pending[self._count] = proposal
        effects.append(WriteMetadata(self._count, proposal.operations))

    def accepted(self, token: int) -> None:
        self._pending.pop(token).done(None)

    def refused(self, token: int, reason: CordwoodError, effects: list[Effect]) -> None:
        proposal = self._pending.pop(token)
        if not isinstance(reason, StoreConflict):
            proposal.done(Refused(Error.UNKNOWN_SERVER_ERROR, str(reason)))
        elif proposal.attempts == ATTEMPTS_MAX:
            proposal.done(Refused(Error.REQUEST_TIMED_OUT, f"The metadata kept changing: {reason}. Try again."))
        else:
            self._again(proposal, effects)

    def _again(self, proposal: Proposal, effects: list[Effect]) -> None:
        try:
            proposal.operations = proposal.plan()
        except Refused as refusal:
            proposal.done(refusal)
            return
        if not proposal.operations:
            proposal.done(None)
            return
        proposal.attempts += 1
        self._send(proposal, effects)
