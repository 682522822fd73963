"""One event in the life of a group, while it is handled: the group, the time, and the outcome so far."""

from dataclasses import dataclass, field

from cordwood.coordinator.outcome import Caller, Outcome
from cordwood.errors import Error
from cordwood.group.state import GroupState
from cordwood.group.timers import ClassicSession, JoinPhase, PendingMember, SyncPhase
from cordwood.ports import Instant
from cordwood.wire.frame import Encoded
from cordwood.wire.messages import JoinGroupResponse, SyncGroupResponse

from .group import ClassicGroup
from .member import Member


@dataclass(slots=True)
class Turn:
    """Each function of a turn adds to its outcome."""

    state: GroupState
    group: ClassicGroup
    now: Instant
    outcome: Outcome = field(default_factory=Outcome)

    def reply(self, caller: Caller | None, response: object) -> None:
        """There may be no caller."""
        if caller is not None:
            self.outcome.replies.append((caller, response))

    def refuse_join(self, caller: Caller | None, error: Error, member_id: str = "") -> None:
        if caller is not None:
            self.outcome.replies.append((caller, not_joined(caller, error, member_id)))

    # ------------------------------------------------------------------ deadlines

    def expect_life(self, member: Member, timeout_ms: int | None = None) -> None:
        """Expect to hear from the member within its session timeout, or within *timeout_ms*."""
        wait_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        member.heard_ms = -1
        if member.session is None:
            member.session = ClassicSession(self.group.id, member.id)
        self.state.deadlines.set(member.session, self.now.mono_ms + wait_ms)

    def wait_for_joins(self, timeout_ms: int) -> None:
        self.state.deadlines.set(JoinPhase(self.group.id), self.now.mono_ms + timeout_ms)

    def wait_for_syncs(self, timeout_ms: int) -> None:
        self.state.deadlines.set(SyncPhase(self.group.id), self.now.mono_ms + timeout_ms)

    def end_sync_phase(self) -> None:
        self.group.pending_sync.clear()
        self.state.deadlines.cancel(SyncPhase(self.group.id))

    # ------------------------------------------------------------------ members go

    def drop(self, member_id: str) -> None:
        """A member is removed. If it still waits for an answer, it is told so, and may join anew."""
        group, deadlines = self.group, self.state.deadlines
        member = group.roster.remove(member_id)
        group.pending_sync.pop(member_id, None)
        deadlines.cancel(ClassicSession(group.id, member_id))
        self.refuse_join(member.joining, Error.UNKNOWN_MEMBER_ID)
        self.reply(member.syncing, SyncGroupResponse(error_code=Error.UNKNOWN_MEMBER_ID))

    def drop_pending(self, member_id: str) -> None:
        """An id that was given out is no longer valid. It may be gone already."""
        self.group.pending.pop(member_id, None)
        self.state.deadlines.cancel(PendingMember(self.group.id, member_id))

    def forget(self) -> None:
        """Cancel all deadlines of this group."""
        group, cancel = self.group, self.state.deadlines.cancel
        cancel(JoinPhase(group.id))
        cancel(SyncPhase(group.id))
        for member_id in group.roster.members:
            cancel(ClassicSession(group.id, member_id))
        for member_id in group.pending:
            cancel(PendingMember(group.id, member_id))

    def release(self, error: Error) -> None:
        """Answer everybody who waits."""
        for member in self.group.roster.members.values():
            parked = self.group.roster.park_join(member, None)
            self.refuse_join(parked, error, member.id)
            self.reply(member.syncing, SyncGroupResponse(error_code=error))
            member.syncing = None


def not_joined(caller: Caller, error: Error, member_id: str = "") -> JoinGroupResponse:
    """A refusal names no protocol, which only version 7 and later can express."""
    name = None if caller.api_version >= 7 else ""
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=name)


def joined_answer(group: ClassicGroup, member_id: str, version: int) -> Encoded:
    """The generation, as a member is told of it. The leader is told who else is in it."""
    if member_id == group.roster.leader:
        return group.answers.leads(version, member_id, group.roster.members.values(), group.protocol)
    return group.answers.joined(version, member_id)
