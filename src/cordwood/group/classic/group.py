"""A group of the classic protocol: what the log holds of it, and what it is doing now.

``stored`` is the newest record of the group, or None if it has none (a group that only commits offsets). The rest is
the group as its members see it. During a rebalance this is ahead of the record, and a restart forgets it: members then
join again. Code that changes a settled group *proposes* a record; applying that record confirms what is in memory, and
a record from elsewhere (the log, while it is loaded) replaces it.

Invariants (``check``): in Stable and Empty the group is what its record says; joins are parked only while it prepares a
rebalance, syncs only while it completes one; an empty group has no members, and a group in any other state is not
without members for long.
"""

from typing import Final

from cordwood.coordinator.deadlines import Deadlines
from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import CorruptData, Error, Refused
from cordwood.group.groups import CLASSIC
from cordwood.group.stored import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue
from cordwood.group.timers import ClassicSession
from cordwood.ports import Instant

from .answers import Answers
from .member import Member
from .roster import Roster
from .states import FOLLOWING, State
from .subscribed import CONSUMER_PROTOCOL_TYPE, NOTHING_KNOWN, Subscribed

NO_TIMESTAMP: Final = -1
PENDING_BYTES: Final = 500
"""The memory that an id takes which was given out, with its deadline."""

GENERATION_MAX: Final = (1 << 31) - 1
"""After it comes 0."""

# Every commit compares with it, and looking up a member of an enumeration takes five times as long.
_DEAD: Final = State.DEAD
_EMPTY: Final = State.EMPTY
_COMPLETING: Final = State.COMPLETING
_STABLE: Final = State.STABLE
_PREPARING: Final = State.PREPARING


class ClassicGroup:
    """A new one is empty and has no record: so is a group that commits offsets and has no members."""

    __slots__ = (
        "_answers",
        "_subscribed",
        "delay",
        "generation",
        "id",
        "is_initial",
        "pending",
        "pending_sync",
        "proposed",
        "protocol",
        "protocol_type",
        "rests_until_ms",
        "roster",
        "state",
        "state_timestamp",
        "stored",
    )

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.stored: GroupMetadataValue | None = None
        self.proposed: GroupMetadataValue | None = None
        self.state = State.EMPTY
        self.state_timestamp = NO_TIMESTAMP
        self.generation = 0
        self.protocol_type = ""
        self.protocol: str | None = None
        self.roster = Roster()
        self.pending: dict[str, None] = {}
        """Ids that were given out, but have not been used to join yet (KIP-394), oldest first."""
        self.pending_sync: dict[str, None] = {}
        """Members of this generation that have not asked for their assignments."""
        self.is_initial = False
        """The current rebalance, or the last one, began with an empty group."""
        self.delay: InitialDelay | None = None
        self.rests_until_ms = 0
        """On the monotonic clock: no generation begins earlier, because the last one could not be written."""
        self._subscribed = NOTHING_KNOWN
        self._answers: tuple[tuple[object, ...], Answers] | None = None

    # ------------------------------------------------------------------ what the log holds

    @classmethod
    def from_stored(cls, group_id: str, value: GroupMetadataValue) -> "ClassicGroup":
        group = cls(group_id)
        group.stored = value
        group.state = State.STABLE if value.members else State.EMPTY
        group.state_timestamp = value.current_state_timestamp
        group.generation = value.generation
        group.protocol_type = value.protocol_type
        group.protocol = (value.protocol or "") if value.members else value.protocol
        _check_stored(value)
        for member in value.members:
            group.roster.add(_from_stored(member, value.protocol))
        group.roster.leader = value.leader if value.leader in group.roster.members else group.roster.leader
        group.look_at_subscriptions()
        return group

    @classmethod
    def of_members(
        cls, group_id: str, generation: int, members: list[Member], now: Instant, protocol_type: str
    ) -> "ClassicGroup":
        """A stable group of members that share some protocol, such as a consumer group that is being downgraded."""
        assert members
        group = cls(group_id)
        group.state, group.state_timestamp = State.STABLE, now.wall_ms
        group.generation = generation
        group.protocol_type = protocol_type
        for member in members:
            group.roster.add(member)
        group.settle_protocol()
        return group

    def propose(self) -> StateRecord:
        """A record of the group as it is now, to be written."""
        self.proposed = GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol=self.protocol,
            leader=self.roster.leader,
            current_state_timestamp=self.state_timestamp,
            members=[_to_stored(member, self.protocol) for member in self.roster.members.values()],
        )
        return StateRecord(GroupMetadataKey(group=self.id), self.proposed)

    def propose_new(self, now: Instant) -> StateRecord:
        """A record that the group exists, whatever its first member is already doing."""
        self.proposed = GroupMetadataValue(current_state_timestamp=now.wall_ms)
        return StateRecord(GroupMetadataKey(group=self.id), self.proposed)

    def confirm(self) -> None:
        """What was proposed has been written."""
        self.stored, self.proposed = self.proposed, None

    def withdraw(self, record: StateRecord) -> bool:
        """A proposal has failed. False if it was written, and a later step failed: then there is nothing to undo."""
        if self.proposed is not record.value:
            return False
        self.proposed = None
        return True

    def tombstones(self) -> list[StateRecord]:
        return [StateRecord(GroupMetadataKey(group=self.id), None)]

    # ------------------------------------------------------------------ from state to state

    def move(self, state: State, now: Instant) -> None:
        assert state in FOLLOWING[self.state], f"{self.state} is not followed by {state}"
        self.is_initial = self.state is State.EMPTY if state is State.PREPARING else self.is_initial
        self.state = state
        if state is not State.STABLE:  # its record was made before, and a reload should find the same
            self.state_timestamp = now.wall_ms

    def begin_generation(self, now: Instant) -> None:
        """All members that should join have done so."""
        self.generation = (self.generation + 1) & GENERATION_MAX
        self.pending_sync.clear()
        if self.roster.members:
            self.settle_protocol()
            self.move(State.COMPLETING, now)
        else:
            self.protocol = None
            self.look_at_subscriptions()
            self.move(State.EMPTY, now)

    def settle_protocol(self) -> None:
        self.protocol = self.roster.choose_protocol()
        self.look_at_subscriptions()

    def look_at_subscriptions(self) -> None:
        """Remember which topics the members of this generation say they want."""
        protocol = self.protocol
        if not self.is_of_consumers or (protocol is None and self.roster.members):
            self._subscribed = NOTHING_KNOWN
        else:
            self._subscribed = Subscribed([m.metadata(protocol) for m in self.roster.members.values()])

    @property
    def answers(self) -> Answers:
        """To the members of this generation."""
        leader = self.roster.leader or ""
        facts = (self.generation, leader, self.protocol_type, self.protocol)
        if self._answers is None or self._answers[0] != facts:
            made = Answers(
                generation=self.generation, leader=leader, protocol_type=self.protocol_type, protocol=self.protocol
            )
            self._answers = facts, made
        return self._answers[1]

    @property
    def can_rebalance(self) -> bool:
        return State.PREPARING in FOLLOWING[self.state]

    @property
    def all_joined(self) -> bool:
        return self.roster.joining_count == len(self.roster) and not self.pending

    def supports(self, protocol_type: str, protocols: dict[str, bytes]) -> bool:
        """Can a member with these protocols join the group? An empty group takes the type of its first member."""
        if self.state is State.EMPTY:
            return bool(protocol_type and protocols)
        return protocol_type == self.protocol_type and self.roster.all_know_one_of(protocols)

    # ------------------------------------------------------------------ the interface of groups.Group

    @property
    def type(self) -> str:
        return CLASSIC

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    @property
    def weight_bytes(self) -> int:
        assigned = sum(len(member.assignment) for member in self.roster.members.values())
        return self.roster.weight_bytes + assigned + sum(PENDING_BYTES + 2 * len(name) for name in self.pending)

    @property
    def is_of_consumers(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def check_member(self, member_id: str, instance_id: str | None) -> Member:
        """The member with this id, if it is who it claims to be."""
        if instance_id is not None:
            known_id = self.roster.static_member_id(instance_id)
            if known_id is not None and known_id != member_id:
                raise Refused(Error.FENCED_INSTANCE_ID, f"{instance_id} is another member by now.")
            if known_id is None:
                raise Refused(Error.UNKNOWN_MEMBER_ID)
        member = self.roster.members.get(member_id)
        if member is None:
            raise Refused(Error.UNKNOWN_MEMBER_ID)
        return member

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool, api_version: int
    ) -> None:
        if self.state is _DEAD:
            raise Refused(Error.COORDINATOR_NOT_AVAILABLE)
        if epoch < 0 and self.state is _EMPTY:
            return  # an administrator, or a consumer that assigns itself partitions
        if epoch >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if epoch != self.generation:
                raise Refused(Error.ILLEGAL_GENERATION)
        elif not transactional and self.state is not _EMPTY:
            raise Refused(Error.UNKNOWN_MEMBER_ID)
        if not transactional and self.state is _COMPLETING:
            raise Refused(Error.REBALANCE_IN_PROGRESS)

    def touched(self, member_id: str, deadlines: Deadlines[object], now: Instant) -> None:
        member = self.roster.members.get(member_id)
        if member is None or member.heard_ms == now.mono_ms:
            return
        if self.state is _STABLE or self.state is _PREPARING:
            deadlines.set(ClassicSession(self.id, member_id), now.mono_ms + member.session_timeout_ms)
            member.heard_ms = now.mono_ms

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        self._check_alive()

    def check_offset_delete(self) -> None:
        self._check_alive()
        if self.state is not State.EMPTY and not self.is_of_consumers:
            raise Refused(Error.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        self._check_alive()
        if self.state is not State.EMPTY:
            raise Refused(Error.NON_EMPTY_GROUP)

    def _check_alive(self) -> None:
        if self.state is State.DEAD:
            raise Refused(Error.GROUP_ID_NOT_FOUND, f"Group {self.id} is in dead state.")

    def is_subscribed_to(self, topic: str) -> bool:
        """Consumers whose subscriptions are not known may want any topic."""
        topics = self._subscribed.topics
        return topic in topics if topics is not None else self.is_of_consumers

    def offset_expires_from(self, commit_timestamp: int, topic: str) -> int | None:
        if not self.protocol_type:
            return commit_timestamp
        if self.state is State.EMPTY:
            return commit_timestamp if self.state_timestamp == NO_TIMESTAMP else self.state_timestamp
        known = self.is_of_consumers and self._subscribed.topics is not None
        return commit_timestamp if known and self.state is State.STABLE else None

    # ------------------------------------------------------------------ invariants

    def check(self) -> None:
        roster = self.roster
        roster.check()
        assert self.state is not State.DEAD, "a dead group is not kept"
        assert (self.state is State.EMPTY) <= (not roster.members)
        assert self.state in (State.EMPTY, State.PREPARING) or roster.members
        assert self.state is State.PREPARING or not roster.joining_count
        assert self.state is State.PREPARING or self.delay is None
        assert self.pending_sync.keys() <= roster.members.keys()
        assert not self.pending.keys() & roster.members.keys()
        for member in roster.members.values():
            assert member.syncing is None or self.state is State.COMPLETING
            assert member.syncing is None or member.id not in self.pending_sync
        if self.state is State.COMPLETING:
            assert roster.leader in self.pending_sync, "its sync would have ended the phase"
        if self.state in (State.EMPTY, State.STABLE):
            self._check_stored()

    def _check_stored(self) -> None:
        """In a settled group, nothing differs from what a reload would find."""
        stored = self.stored or GroupMetadataValue()
        assert stored.generation <= self.generation
        if self.state is State.EMPTY and stored.generation < self.generation:
            return  # the record of its emptiness could not be written; members of the earlier generation will time out
        assert stored.generation == self.generation
        assert stored.protocol_type == self.protocol_type
        assert stored.protocol == self.protocol
        assert stored.leader == self.roster.leader
        assert stored.current_state_timestamp == self.state_timestamp
        assert stored.members == [_to_stored(member, self.protocol) for member in self.roster.members.values()]


class InitialDelay:
    """How long a group that was empty waits for more members (KIP-134)."""

    __slots__ = ("delay_ms", "has_grown", "left_ms")

    def __init__(self, delay_ms: int, left_ms: int) -> None:
        self.delay_ms = delay_ms
        self.left_ms = left_ms
        self.has_grown = False


def _to_stored(member: Member, protocol: str | None) -> GroupMetadataMember:
    return GroupMetadataMember(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol),
        assignment=member.assignment,
    )


def _check_stored(value: GroupMetadataValue) -> None:
    if value.generation >= GENERATION_MAX:
        raise CorruptData(f"no group gets to generation {value.generation}")
    ids = {member.member_id for member in value.members}
    static = [member.group_instance_id for member in value.members if member.group_instance_id is not None]
    if len(ids) < len(value.members) or len(set(static)) < len(static):
        raise CorruptData("a member is twice in one group")


def _from_stored(stored: GroupMetadataMember, protocol: str | None) -> Member:
    return Member(
        id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        rebalance_timeout_ms=stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout,
        session_timeout_ms=stored.session_timeout,
        protocols={protocol or "": stored.subscription},
        assignment=stored.assignment,
    )
