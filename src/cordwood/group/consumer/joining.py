"""Whose heartbeat is it? Members are found or created, and a static member takes the place of its predecessor."""

from base64 import urlsafe_b64encode
from dataclasses import replace
from typing import Final

from cordwood.errors import Error, Refused
from cordwood.group.state import GroupState
from cordwood.wire.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatRequestTopic

from .draft import Draft
from .group import ConsumerGroup
from .member import JOINING, LEFT_FOR_A_WHILE, Held, Member
from .patterns import forget_unused
from .records import current_record, description_record, no_member_records, target_record

MEMBER_BYTES_LEAST: Final = 100
"""The least that a member takes in the batch of a new assignment, with short names and one partition."""


def new_member_id(state: GroupState) -> str:
    """In the form of Kafka's random ids."""
    return urlsafe_b64encode(state.new_uuid().bytes).decode().rstrip("=")


def check_room(group: ConsumerGroup, member_id: str, state: GroupState) -> None:
    """All target assignments are written as one batch, so there cannot be more members than fit into one."""
    if member_id in group.members:
        return
    size_max = min(state.config.group_consumer_max_size, state.batch_bytes_max // MEMBER_BYTES_LEAST)
    if len(group.members) >= size_max:
        raise Refused(Error.GROUP_MAX_SIZE_REACHED, f"The group has {size_max} members, the most it may have.")


def find_member(draft: Draft, member_id: str, request: ConsumerGroupHeartbeatRequest) -> Member:
    """The member that a heartbeat is from; a new, still unknown one if it joins. Otherwise raises ``Refused``."""
    joins = request.member_epoch == JOINING
    if request.instance_id is not None:
        return _find_static(draft, member_id, request.instance_id, request)
    member = draft.group.members.get(member_id)
    if member is None and joins:
        return Member(member_id)
    member = draft.group.member(member_id)
    check_epoch(member, request.member_epoch, request.topic_partitions)
    return member


def _find_static(draft: Draft, member_id: str, instance_id: str, request: ConsumerGroupHeartbeatRequest) -> Member:
    holder = draft.group.static_member(instance_id)
    if request.member_epoch != JOINING:
        member = checked_static(draft.group, member_id, instance_id)
        check_epoch(member, request.member_epoch, request.topic_partitions)
        return member
    if holder is None:
        return draft.group.members.get(member_id) or Member(member_id)
    if not holder.is_classic and holder.current.epoch != LEFT_FOR_A_WHILE:
        raise Refused(
            Error.UNRELEASED_INSTANCE_ID, f"Member {holder.id} has instance id {instance_id} and has not left."
        )
    return replace_member(draft, holder, member_id)


def checked_static(group: ConsumerGroup, member_id: str, instance_id: str) -> Member:
    """The member with that instance id, which must have that member id too."""
    holder = group.static_member(instance_id)
    if holder is None:
        raise Refused(Error.UNKNOWN_MEMBER_ID, f"Group {group.id} has no instance id {instance_id}.")
    if holder.id != member_id:
        raise Refused(
            Error.FENCED_INSTANCE_ID, f"Instance id {instance_id} is now member {holder.id}'s, not {member_id}'s."
        )
    return holder


def replace_member(draft: Draft, old: Member, new_id: str) -> Member:
    """Let a static member that is back under another id take over what it had, and continue from there."""
    group_id = draft.group.id
    new = Member(new_id, old.description, replace(old.current, epoch=JOINING, previous_epoch=JOINING))
    target = draft.group.target(old.id)
    overwritten = draft.group.members.get(new_id)
    draft.write(
        *no_member_records(group_id, old.id),
        description_record(group_id, new_id, new.description),
        target_record(group_id, new_id, target),
        current_record(group_id, new_id, new.current),
    )
    if overwritten is not None:
        forget_unused(draft, overwritten.description.pattern)
    return new


def check_epoch(member: Member, epoch: int, owned: list[ConsumerGroupHeartbeatRequestTopic] | None) -> None:
    """A member is at the epoch it was last told, or at the one before if that answer may have been lost.

    In the latter case it must say what it has, and that must be no more than it has been assigned since.
    """
    current = member.current
    if epoch in (JOINING, current.epoch):
        return
    if epoch == current.previous_epoch and epoch < current.epoch and _is_part(owned, current.assigned):
        return
    raise Refused(
        Error.FENCED_MEMBER_EPOCH,
        f"The member is at epoch {current.epoch}, not {epoch}: it must give up its partitions and join again.",
    )


def _is_part(owned: list[ConsumerGroupHeartbeatRequestTopic] | None, held: Held) -> bool:
    return owned is not None and all(set(each.partitions) <= held.get(each.topic_id, {}).keys() for each in owned)
