"""The members of a group, with what every join must know about all of them without looking at each.

Invariants (``check``): instance ids and members agree; counts are what counting would give; if there are members, one
of them leads, and at least one protocol is known to all.
"""

from collections import Counter
from collections.abc import Iterable

from cordwood.coordinator.outcome import Caller

from .member import Member


class Roster:
    """Members by id, in the order in which they joined. The leader is one of them, or None if there are none."""

    __slots__ = ("_static_ids", "_supporters", "joining_count", "leader", "members", "weight_bytes")

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.leader: str | None = None
        self.joining_count = 0
        self.weight_bytes = 0
        self._static_ids: dict[str, str] = {}
        self._supporters: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.members)

    def static_member_id(self, instance_id: str) -> str | None:
        return self._static_ids.get(instance_id)

    @property
    def rebalance_timeout_ms(self) -> int:
        """As long as the most patient member needs."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # ------------------------------------------------------------------ who is in

    def add(self, member: Member) -> None:
        """The first member to join leads."""
        assert member.id not in self.members
        self.members[member.id] = member
        if member.instance_id is not None:
            assert member.instance_id not in self._static_ids
            self._static_ids[member.instance_id] = member.id
        self._count(member, 1)
        self.leader = self.leader or member.id

    def remove(self, member_id: str) -> Member:
        """If it led, the longest-standing of the remaining members does."""
        member = self.members.pop(member_id)
        if member.instance_id is not None:
            del self._static_ids[member.instance_id]
        self._count(member, -1)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def rename(self, member: Member, member_id: str) -> None:
        """A static member has come back under a new id. It keeps everything else, including the lead."""
        assert member.instance_id is not None
        assert member_id not in self.members
        if self.leader == member.id:
            self.leader = member_id
        member.id = self._static_ids[member.instance_id] = member_id
        member.session = None
        self.members = {known.id: known for known in self.members.values()}  # in its old place

    def update(
        self, member: Member, protocols: dict[str, bytes], rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        """A member joins again, perhaps with other metadata than before."""
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def park_join(self, member: Member, caller: Caller | None) -> Caller | None:
        """Keep a member's call, or (None) keep none any more. Returns the one that was kept so far."""
        earlier, member.joining = member.joining, caller
        self.joining_count += (caller is not None) - (earlier is not None)
        return earlier

    def _count(self, member: Member, by: int) -> None:
        self.joining_count += by * (member.joining is not None)
        self.weight_bytes += by * member.weight_bytes
        supporters = self._supporters
        for name in member.protocols:
            supporters[name] = supporters.get(name, 0) + by
            if not supporters[name]:
                del supporters[name]

    # ------------------------------------------------------------------ what they agree on

    def all_know_one_of(self, protocols: Iterable[str]) -> bool:
        count = len(self.members)
        return any(self._supporters.get(name, 0) == count for name in protocols)

    def choose_protocol(self) -> str:
        """Each member votes for its preferred one of those that all know; the one with the most votes wins."""
        candidates = {name for name, count in self._supporters.items() if count == len(self.members)}
        if len(candidates) == 1:
            return candidates.pop()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def choose_leader(self) -> bool:
        """Make sure that a member that has joined leads. False if none has joined."""
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.joining is not None:
            return True
        joined = next((member.id for member in self.members.values() if member.joining is not None), None)
        self.leader = joined or self.leader
        return joined is not None

    def check(self) -> None:
        members = self.members
        assert all(member.id == key for key, member in members.items())
        assert all(member.session is None or member.session.member_id == member.id for member in members.values())
        assert self._static_ids == {m.instance_id: m.id for m in members.values() if m.instance_id is not None}
        assert self.joining_count == sum(member.joining is not None for member in members.values())
        assert self.weight_bytes == sum(member.weight_bytes for member in members.values())
        assert self._supporters == Counter(name for member in members.values() for name in member.protocols)
        if members:
            assert self.leader in members, "one of the members leads"
            assert self.all_know_one_of(self._supporters), "some protocol is known to all"
        else:
            assert self.leader is None
