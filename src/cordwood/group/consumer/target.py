"""The target assignment: which member should have which partition. Each new one has the group's epoch.

Between two of them there must be ``group.consumer.assignment.interval.ms``, so that a group that many members join or
leave at once does not get a new one for each of them. The first one is made at once. None is made without members,
because it takes a heartbeat.
"""

from collections.abc import Sequence
from uuid import UUID

from cordwood.cluster.image import MetadataImage
from cordwood.group.assignors import ASSIGNORS, GroupSpec, MemberSpec

from .draft import Draft
from .group import ConsumerGroup
from .records import Target, assignment_epoch_record, target_record
from .topics import existing


def is_due(group: ConsumerGroup, interval_ms: int, now_ms: int) -> bool:
    """Should there be a new target assignment now? A clock that went back must not delay it."""
    if group.epoch <= group.assignment_epoch:
        return False
    made_at_ms = group.assignment_timestamp
    return made_at_ms == 0 or not made_at_ms <= now_ms < made_at_ms + interval_ms


def assign(draft: Draft, image: MetadataImage, assignors: Sequence[str], now_ms: int) -> None:
    """Make a new target assignment, and write the differences. *assignors* are those that are served."""
    group = draft.group
    assignor = ASSIGNORS[group.subscriptions.preferred_assignor(assignors)]
    targets: dict[str, dict[UUID, frozenset[int]]] = assignor.assign(_spec(group, image))
    changed: list[tuple[str, Target]] = [
        (member_id, targets.get(member_id, {}))
        for member_id in group.members
        if member_id not in group.targets or group.targets[member_id] != targets.get(member_id, {})
    ]
    draft.write(
        *(target_record(group.id, member_id, target) for member_id, target in changed),
        assignment_epoch_record(group.id, group.epoch, now_ms),
    )


def _spec(group: ConsumerGroup, image: MetadataImage) -> GroupSpec:
    topics = existing(image, group.topics)
    ids = {str(topic.name): topic.id for topic in topics}
    known: dict[frozenset[str], frozenset[UUID]] = {}
    members = {}
    for member in group.members.values():
        names = group.topics_of(member.description)
        if names not in known:
            known[names] = frozenset(ids[name] for name in names if name in ids)
        members[member.id] = MemberSpec(known[names], group.target(member.id), member.description.instance_id)
    return GroupSpec(members, {topic.id: len(topic.partitions) for topic in topics})
