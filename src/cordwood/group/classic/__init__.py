"""The classic group protocol: members join, one of them assigns, all are told (JoinGroup, SyncGroup, …).

``group`` and ``roster`` hold the state, ``rebalance`` leads from one generation to the next, and each request has a
module. A ``Turn`` is one event with its outcome.
"""

from cordwood.group.stored import GroupMetadataKey
from cordwood.group.tables import Apply, Expired
from cordwood.group.timers import ClassicSession, JoinPhase, PendingMember, SyncPhase

from .describing import describe
from .group import ClassicGroup
from .heartbeats import heartbeat, pending_over, session_over
from .joining import join
from .leaving import leave
from .loading import apply_metadata, loaded, start_sessions, unloaded
from .member import Member
from .rebalance import join_phase_over, prepare, sync_phase_over
from .states import State
from .syncing import sync
from .turn import Turn

APPLY: Apply = {GroupMetadataKey: apply_metadata}

EXPIRED: Expired = {
    ClassicSession: session_over,
    PendingMember: pending_over,
    JoinPhase: join_phase_over,
    SyncPhase: sync_phase_over,
}

__all__ = [
    "APPLY",
    "EXPIRED",
    "ClassicGroup",
    "Member",
    "State",
    "Turn",
    "describe",
    "heartbeat",
    "join",
    "leave",
    "loaded",
    "prepare",
    "start_sessions",
    "sync",
    "unloaded",
]
