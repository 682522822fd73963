"""Offsets that are no longer needed are deleted, and so are groups that have nothing else (KIP-211).

Every ``offsets.retention.check.interval.ms`` a round goes through all groups, some at a time. A group says from when on
the retention of its offsets counts: for one without members, from the moment when the last one left, or from each
commit if it never had any; for one with members, only in topics that they are not subscribed to. An offset is deleted
``offsets.retention.minutes`` after that time, or at the time that its client chose. A group without members and offsets
is deleted too.
"""

from cordwood.coordinator.outcome import Outcome
from cordwood.group.committed import NEVER_CHOSEN, CommittedOffset
from cordwood.group.groups import Group
from cordwood.group.state import GroupState
from cordwood.group.stored_offsets import OffsetCommitKey
from cordwood.group.tables import Expired
from cordwood.group.timers import OffsetsExpiry, OffsetsExpiryGoesOn
from cordwood.ports import Instant

from .pending import has_pending
from .slices import NEXT_SLICE_MS, RETRY_MS, Slice
from .topics import forget_stale

MINUTE_MS = 60_000


def loaded(state: GroupState, now: Instant) -> Outcome:
    """Schedule the rounds; and delete the offsets of topics that were deleted while nobody here was told."""
    forget_stale(state, now)
    state.deadlines.set(OffsetsExpiry(), now.mono_ms + state.config.offsets_retention_check_interval_ms)
    return Outcome()


def _begin(state: GroupState, key: OffsetsExpiry, now: Instant) -> Outcome:
    """Begin a new round, unless the last one has not ended yet."""
    state.deadlines.set(key, now.mono_ms + state.config.offsets_retention_check_interval_ms)
    if state.groups_to_expire:
        assert OffsetsExpiryGoesOn() in state.deadlines
        return Outcome()
    state.groups_to_expire = list(state.groups)
    return _go_on(state, OffsetsExpiryGoesOn(), now)


def _go_on(state: GroupState, key: OffsetsExpiryGoesOn, now: Instant) -> Outcome:
    """Look at the next groups."""
    found, waiting = Slice(state), state.groups_to_expire
    while waiting and not found.is_long:
        group = state.groups.get(waiting[-1])
        if group is None or _expire(state, group, found, now):
            waiting.pop()
        found.look()
    if waiting:
        state.deadlines.set(key, now.mono_ms + NEXT_SLICE_MS)
    return Outcome(found.records, failed=lambda refusal: _wait(state, key, now))


def _wait(state: GroupState, key: OffsetsExpiryGoesOn, now: Instant) -> None:
    """It could not be written. What was left out is found again in the next round."""
    if key in state.deadlines:
        state.deadlines.set(key, now.mono_ms + RETRY_MS)


def _expire(state: GroupState, group: Group, found: Slice, now: Instant) -> bool:
    """Remove the offsets of a group that have expired; False if there are more of them."""
    retention_ms = state.config.offsets_retention_minutes * MINUTE_MS
    is_bare = True
    for topic, partitions in state.offsets.topics(group.id).items():
        if group.is_subscribed_to(topic):
            is_bare = False
            continue
        for partition, committed in partitions.items():
            if found.is_full:
                return False
            if _is_over(group, topic, committed, now.wall_ms, retention_ms) and not has_pending(
                state, group.id, topic, partition
            ):
                found.remove(OffsetCommitKey(group.id, topic, partition))
            else:
                found.look()
                is_bare = False
    if is_bare and group.is_empty:
        found.add(group.tombstones())
    return True


def _is_over(group: Group, topic: str, committed: CommittedOffset, wall_ms: int, retention_ms: int) -> bool:
    since_ms = group.offset_expires_from(committed.commit_timestamp, topic)
    if since_ms is None:
        return False
    if committed.expire_timestamp != NEVER_CHOSEN:
        return wall_ms >= committed.expire_timestamp
    return wall_ms - since_ms >= retention_ms


EXPIRED: Expired = {OffsetsExpiry: _begin, OffsetsExpiryGoesOn: _go_on}
