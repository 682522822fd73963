"""A member's next step towards its target assignment. Pure: values in, a value out.

A member first gives up partitions and then gets others, and keeps reading what stays its own all the while:

- It is told to give up what it has and should not have, and stays at its epoch until it says that it has done so
  (UNREVOKED_PARTITIONS).
- Then it moves to the target's epoch and gets what is free. As long as something is not free, because its last owner
  has not given it up, this is repeated at each heartbeat (UNRELEASED_PARTITIONS).
- When it has everything it is STABLE, until there is a newer target.

A member that changes its subscription stops reading what it no longer subscribes to, even before there is a target that
takes this into account.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final
from uuid import UUID

from cordwood.errors import Error, Refused

from .member import Current, Held, MemberState
from .records import Target

STABLE: Final = MemberState.STABLE
UNREVOKED: Final = MemberState.UNREVOKED_PARTITIONS
UNRELEASED: Final = MemberState.UNRELEASED_PARTITIONS


class Step(Enum):
    """What can be done with a member."""

    STAY = "it stays as it is"
    DROP = "it gives up what it does not subscribe to any more"
    ADVANCE = "it goes on to the target"


# (state, may it go on?, has it changed its subscription?) -> what is done
STEPS: Final[Mapping[tuple[MemberState, bool, bool], Step]] = {
    (STABLE, False, False): Step.STAY,
    (STABLE, False, True): Step.DROP,
    (STABLE, True, False): Step.ADVANCE,
    (STABLE, True, True): Step.ADVANCE,
    (UNREVOKED, False, False): Step.STAY,
    (UNREVOKED, False, True): Step.DROP,
    (UNREVOKED, True, False): Step.ADVANCE,
    (UNREVOKED, True, True): Step.ADVANCE,
    (UNRELEASED, True, False): Step.ADVANCE,
    (UNRELEASED, True, True): Step.ADVANCE,
}

# (must it give something up first?, is something that it should have not free?) -> the state it is in then
NEXT_STATES: Final[Mapping[tuple[bool, bool], MemberState]] = {
    (True, False): UNREVOKED,
    (True, True): UNREVOKED,
    (False, True): UNRELEASED,
    (False, False): STABLE,
}

Owned = Mapping[UUID, Collection[int]]
"""Partitions that a member says it has."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member should get to."""

    epoch: int
    target: Target
    subscribed: Collection[UUID]
    """The topics that the member subscribes to. Whatever the target says, it gets no others."""
    subscription_changed: bool = False


def reconcile(current: Current, goal: Goal, owned: Owned | None, is_free: Callable[[UUID, int], bool]) -> Current:
    """What the member has next; *current* itself if nothing changes.

    *owned* is what the member says it has, None if it does not say. *is_free* tells whether a partition has no owner.
    """
    if current.state is MemberState.UNKNOWN:
        return _start_over(current, goal, owned, is_free)
    step = STEPS[current.state, _may_go_on(current, goal, owned), goal.subscription_changed]
    if step is Step.STAY:
        return current
    following = _drop(current, goal, owned) if step is Step.DROP else _advance(current, goal, owned, is_free)
    return current if following == current else following


def _may_go_on(current: Current, goal: Goal, owned: Owned | None) -> bool:
    match current.state:
        case MemberState.STABLE:
            return current.epoch != goal.epoch
        case MemberState.UNREVOKED_PARTITIONS:
            return not _still_has(current.revoking, owned)
        case _:
            return True


def _start_over(current: Current, goal: Goal, owned: Owned | None, is_free: Callable[[UUID, int], bool]) -> Current:
    if owned is None or owned:
        raise Refused(Error.FENCED_MEMBER_EPOCH, "The state of the member is not known here: it has to join again.")
    return _advance(current, goal, owned, is_free)


def _advance(current: Current, goal: Goal, owned: Owned | None, is_free: Callable[[UUID, int], bool]) -> Current:
    kept: dict[UUID, dict[int, int]] = {}
    revoking: dict[UUID, dict[int, int]] = {}
    for topic_id, partitions in current.assigned.items():
        wanted = _wanted(goal, topic_id)
        for partition, since in partitions.items():
            part = kept if partition in wanted else revoking
            part.setdefault(topic_id, {})[partition] = since
    if _still_has(revoking, owned):
        return Current(current.epoch, current.epoch, NEXT_STATES[True, False], kept, revoking)
    complete = _take_free(kept, current, goal, is_free)
    return Current(goal.epoch, current.epoch, NEXT_STATES[False, not complete], kept)


def _wanted(goal: Goal, topic_id: UUID) -> Collection[int]:
    return goal.target.get(topic_id, ()) if topic_id in goal.subscribed else ()


def _take_free(
    held: dict[UUID, dict[int, int]], current: Current, goal: Goal, is_free: Callable[[UUID, int], bool]
) -> bool:
    """Add what the member lacks and no other member has. Was that all it lacked?"""
    complete = True
    for topic_id in goal.target:
        has = held.get(topic_id, {})
        for partition in _wanted(goal, topic_id):
            if partition in has:
                continue
            # What it was just giving up is still its own: no other member can have got it in between.
            if is_free(topic_id, partition) or partition in current.revoking.get(topic_id, ()):
                has = held.setdefault(topic_id, has)
                has[partition] = goal.epoch
            else:
                complete = False
    return complete


def _drop(current: Current, goal: Goal, owned: Owned | None) -> Current:
    kept = {topic_id: held for topic_id, held in current.assigned.items() if topic_id in goal.subscribed}
    if len(kept) == len(current.assigned):
        return current
    revoking = dict(current.revoking)
    for topic_id, held in current.assigned.items():
        if topic_id not in kept:
            revoking[topic_id] = {**revoking.get(topic_id, {}), **held}
    if _still_has(revoking, owned):
        return Current(current.epoch, current.epoch, UNREVOKED, kept, revoking)
    return Current(current.epoch, current.epoch, current.state, kept, current.revoking)


def _still_has(revoking: Held, owned: Owned | None) -> bool:
    """Does the member still have anything that it must give up? If it does not say, it does."""
    if not revoking or owned is None:
        return bool(revoking)
    return any(partition in revoking.get(topic_id, ()) for topic_id, held in owned.items() for partition in held)
