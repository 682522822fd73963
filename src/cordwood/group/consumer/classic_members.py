"""Members of a consumer group that speak the classic protocol."""

from cordwood.coordinator.outcome import Caller, Outcome
from cordwood.errors import Error, Refused
from cordwood.group.state import GroupState
from cordwood.ports import Instant
from cordwood.wire.messages import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest


def classic_join(state: GroupState, request: JoinGroupRequest, caller: Caller, now: Instant) -> Outcome:
    raise Refused(Error.INCONSISTENT_GROUP_PROTOCOL)


def classic_sync(state: GroupState, request: SyncGroupRequest, caller: Caller, now: Instant) -> Outcome:
    raise Refused(Error.UNKNOWN_MEMBER_ID)


def classic_heartbeat(state: GroupState, request: HeartbeatRequest, caller: Caller, now: Instant) -> Outcome:
    raise Refused(Error.UNKNOWN_MEMBER_ID)


def classic_leave(state: GroupState, request: LeaveGroupRequest, caller: Caller, now: Instant) -> Outcome:
    raise Refused(Error.UNKNOWN_MEMBER_ID)
