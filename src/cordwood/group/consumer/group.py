"""A group of the consumer protocol: all that the records say about it, and what follows from that.

Only ``apply`` changes anything here, and everything follows from the records alone, so that a group is the same after a
reload. Two marks are not stored: they say that the topics' metadata should be looked at again.

A group begins at epoch 1 with a target assignment of epoch 1 in which nobody has anything: a member that has to wait
for the first real one has an epoch to wait in.

Invariants (``check``): the member that has a partition is its owner, and no other member has it; all counts agree with
the members.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from cordwood.coordinator.deadlines import Deadlines
from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import Error, Refused
from cordwood.group.groups import CONSUMER, CheckPartition
from cordwood.ports import Instant

from . import commits
from .member import Current, Description, Member
from .owners import Owners
from .records import Target, no_group_records
from .subscriptions import Subscriptions, count
from .weight import current_bytes, member_bytes, pattern_bytes, target_bytes

PROTOCOL_TYPE: Final = "consumer"
FIRST_EPOCH: Final = 1
NO_TARGET: Final[Target] = {}


class Resolved(NamedTuple):
    """The topics that a pattern matched, and when that was."""

    topics: frozenset[str]
    timestamp: int


class ConsumerGroup:
    """A ``Group`` whose assignments are made by the broker."""

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp = 0
        """0: no assignment has been made yet."""
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Target] = {}
        self.patterns: dict[str, Resolved] = {}

        # The following is derived from the above.
        self.owners = Owners()
        self.subscriptions = Subscriptions()
        self.static_members: dict[str, str] = {}
        self.matched: dict[str, int] = {}
        """The topics that patterns match, each with the number of those patterns."""
        self.patterns_timestamp = 0
        """When the patterns were last looked at."""
        self.kept_bytes = 0
        """Roughly the memory that members, targets and patterns take."""

        # Marks that are not stored: look at the topics' metadata; look for more topics that match the patterns.
        self.topics_changed = False
        self.new_topics = False
        self.patterns_to_refresh: list[str] = []
        """Those that are still to be looked at in the current round."""

    def copy(self) -> "ConsumerGroup":
        """A copy that can be changed independently."""
        other = ConsumerGroup(self.id)
        other.epoch, other.metadata_hash = self.epoch, self.metadata_hash
        other.assignment_epoch, other.assignment_timestamp = self.assignment_epoch, self.assignment_timestamp
        other.members, other.targets, other.patterns = self.members.copy(), self.targets.copy(), self.patterns.copy()
        other.owners, other.subscriptions = self.owners.copy(), self.subscriptions.copy()
        other.static_members, other.matched = self.static_members.copy(), self.matched.copy()
        other.patterns_timestamp, other.kept_bytes = self.patterns_timestamp, self.kept_bytes
        other.take_marks(self)
        return other

    def take_marks(self, other: "ConsumerGroup") -> None:
        self.topics_changed, self.new_topics = other.topics_changed, other.new_topics
        self.patterns_to_refresh = other.patterns_to_refresh

    # ------------------------------------------------------------------ the interface of every group

    @property
    def type(self) -> str:
        return CONSUMER

    @property
    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        epoch = self.assignment_epoch
        stable = all(member.current.is_reconciled_to(epoch) for member in self.members.values())
        return "Stable" if stable else "Reconciling"

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def weight_bytes(self) -> int:
        return self.kept_bytes + self.subscriptions.names_bytes

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool, api_version: int
    ) -> CheckPartition | None:
        if epoch < 0 and not self.members:
            return None
        if transactional and epoch == -1 and member_id == "" and instance_id is None:
            return None
        return commits.check_commit(self.member(member_id), epoch, transactional=transactional, api_version=api_version)

    def touched(self, member_id: str, deadlines: Deadlines[object], now: Instant) -> None:
        pass

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        if member_id is not None or epoch >= 0:
            commits.check_epoch(self.member(member_id or ""), epoch)

    def check_offset_delete(self) -> None:
        pass

    def check_delete(self) -> None:
        if self.members:
            raise Refused(Error.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscriptions.names or topic in self.matched

    def offset_expires_from(self, commit_timestamp: int, topic: str) -> int | None:
        return commit_timestamp

    def tombstones(self) -> list[StateRecord]:
        return no_group_records(self.id, self.members, self.patterns)

    # ------------------------------------------------------------------ looking things up

    def member(self, member_id: str) -> Member:
        """Raises ``Refused`` if there is no such member."""
        member = self.members.get(member_id)
        if member is None:
            raise Refused(Error.UNKNOWN_MEMBER_ID, f"Group {self.id} has no member {member_id}.")
        return member

    def static_member(self, instance_id: str | None) -> Member | None:
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target(self, member_id: str) -> Target:
        return self.targets.get(member_id, NO_TARGET)

    def topics_of(self, description: Description) -> frozenset[str]:
        """The topics that a member subscribes to, by name or by pattern."""
        resolved = self.patterns.get(description.pattern) if description.pattern else None
        return description.topics if resolved is None else description.topics | resolved.topics

    @property
    def topics(self) -> set[str]:
        """All topics that some member subscribes to."""
        return {*self.subscriptions.names, *self.matched}

    # ------------------------------------------------------------------ what records change

    def describe(self, member_id: str, description: Description | None) -> None:
        """A member has joined, has described itself anew, or is gone."""
        old = self.members.get(member_id)
        if old is not None:
            self._forget(old)
        if description is not None:
            description = replace(description, topics=self.subscriptions.same(description.topics))
            self._remember(Member(member_id, description, old.current if old is not None else Current()))
        elif old is not None:
            self._release(old)
            del self.members[member_id]

    def hold(self, member_id: str, current: Current) -> None:
        """What a member has is different now."""
        old = self.members.get(member_id)
        if old is None:
            self._remember(Member(member_id, current=current))
        else:
            self._release(old)
            self.members[member_id] = Member(member_id, old.description, current)
        self.owners.take(member_id, current.assigned)
        self.owners.take(member_id, current.revoking)
        self.kept_bytes += current_bytes(current)

    def _release(self, member: Member) -> None:
        self.owners.release(member.id, member.current.assigned)
        self.owners.release(member.id, member.current.revoking)
        self.kept_bytes -= current_bytes(member.current)

    def aim(self, member_id: str, target: Target | None) -> None:
        """What a member should have is different now."""
        self.kept_bytes -= target_bytes(self.targets.pop(member_id, NO_TARGET))
        if target is not None:
            self.targets[member_id] = target
            self.kept_bytes += target_bytes(target)

    def resolve(self, pattern: str, resolved: Resolved | None) -> None:
        """A pattern matches other topics than before, or is not used any more."""
        old = self.patterns.pop(pattern, None)
        if old is not None:
            count(self.matched, old.topics, -1)
            self.kept_bytes -= pattern_bytes(pattern, old.topics)
            self.patterns_timestamp = max((each.timestamp for each in self.patterns.values()), default=0)
        if resolved is not None:
            self.patterns[pattern] = resolved
            count(self.matched, resolved.topics, 1)
            self.kept_bytes += pattern_bytes(pattern, resolved.topics)
            self.patterns_timestamp = max(self.patterns_timestamp, resolved.timestamp)

    def _remember(self, member: Member) -> None:
        self.members[member.id] = member
        self.kept_bytes += member_bytes(member)
        self.subscriptions.add(member.description)
        if member.description.instance_id is not None:
            self.static_members[member.description.instance_id] = member.id

    def _forget(self, member: Member) -> None:
        self.kept_bytes -= member_bytes(member)
        self.subscriptions.remove(member.description)
        instance_id = member.description.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.id:
            del self.static_members[instance_id]

    # ------------------------------------------------------------------ invariants

    def check(self) -> None:
        again = ConsumerGroup(self.id)
        for member in self.members.values():
            again.describe(member.id, member.description)
            again.hold(member.id, member.current)
            self._check_held(member)
        for pattern, resolved in self.patterns.items():
            again.resolve(pattern, resolved)
        for member_id, target in self.targets.items():
            again.aim(member_id, target)
        for name in ("owners", "subscriptions", "static_members", "matched", "patterns_timestamp", "kept_bytes"):
            assert getattr(self, name) == getattr(again, name), name
        assert self.targets.keys() <= self.members.keys()
        assert self.patterns.keys() <= self.subscriptions.patterns.keys()
        assert self.epoch >= self.assignment_epoch

    def _check_held(self, member: Member) -> None:
        for held in (member.current.assigned, member.current.revoking):
            for topic_id, partitions in held.items():
                assert partitions, "a topic of which a member has nothing is not among what it has"
                for partition in partitions:
                    assert self.owners.of(topic_id, partition) == member.id
