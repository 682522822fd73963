"""A classic group under test: each request in one call, with defaults that fit most tests."""

from collections.abc import Mapping, Sequence

from cordwood.errors import Error
from cordwood.group import classic
from cordwood.group.classic import ClassicGroup, State
from cordwood.wire.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupRequestMember,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from group.group_harness import Asker, GroupHarness

GROUP = "g"
DELAY_MS = 3000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
RANGE = {"range": b"topics"}

Protocols = Mapping[str, bytes]


class ClassicDriver(GroupHarness):
    """The group is ``GROUP``."""

    @property
    def group(self) -> ClassicGroup:
        found = self.state.groups[GROUP]
        assert isinstance(found, ClassicGroup)
        return found

    @property
    def in_state(self) -> State:
        return self.group.state

    @property
    def members(self) -> list[str]:
        return list(self.group.roster.members)

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: Protocols = RANGE,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        version: int = 9,
        group_id: str = GROUP,
        client_id: str = "client",
    ) -> Asker:
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=said) for name, said in protocols.items()],
        )
        return self.call(classic.join, request, version, client_id)

    def refused(self, asker: Asker) -> Error:
        return Error(asker.take(JoinGroupResponse).error_code)

    def new_id(self, protocols: Protocols = RANGE, session_ms: int = SESSION_MS) -> str:
        """An id that was given out, to come back with."""
        response = self.join(protocols=protocols, session_ms=session_ms).take(JoinGroupResponse)
        assert response.error_code == Error.MEMBER_ID_REQUIRED
        return response.member_id

    def enter(
        self, protocols: Protocols = RANGE, session_ms: int = SESSION_MS, rebalance_ms: int = REBALANCE_MS
    ) -> tuple[str, Asker]:
        """A new dynamic member joins, in both its steps."""
        member_id = self.new_id(protocols, session_ms)
        return member_id, self.join(member_id, protocols=protocols, session_ms=session_ms, rebalance_ms=rebalance_ms)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol_type: str | None = "consumer",
        protocol: str | None = "range",
        version: int = 5,
        group_id: str = GROUP,
    ) -> Asker:
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=given)
                for name, given in (assignments or {}).items()
            ],
        )
        return self.call(classic.sync, request, version)

    def beat(self, member_id: str, generation: int, instance: str | None = None, group_id: str = GROUP) -> Error:
        request = HeartbeatRequest(
            group_id=group_id, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        return Error(self.ask(classic.heartbeat, request, 4, HeartbeatResponse).error_code)

    def leave(self, *leavers: str | tuple[str, str]) -> list[Error]:
        """Each is a member id, or a member id and an instance id."""
        pairs = [(leaver, None) if isinstance(leaver, str) else leaver for leaver in leavers]
        members = [LeaveGroupRequestMember(member_id=first, group_instance_id=second) for first, second in pairs]
        request = LeaveGroupRequest(group_id=GROUP, members=members)
        response = self.ask(classic.leave, request, 5, LeaveGroupResponse)
        assert response.error_code == Error.NONE
        return [Error(member.error_code) for member in response.members]

    def completing(self, count: int) -> list[str]:
        """Dynamic members of generation 1 of a new group. The first leads."""
        entered = [self.enter() for _ in range(count)]
        self.advance(2 * DELAY_MS)
        for _, asker in entered:
            assert asker.take(JoinGroupResponse).generation_id == 1
        return [member_id for member_id, _ in entered]

    def stable(self, count: int) -> list[str]:
        """The same, and all have their assignments."""
        members = self.completing(count)
        self.assign(members, generation=1)
        return members

    def assign(self, members: Sequence[str], generation: int) -> None:
        """The first leads and hands over ``of <member>`` to each."""
        askers = [self.sync(member, generation) for member in members[1:]]
        given = {member: f"of {member}".encode() for member in members}
        askers.insert(0, self.sync(members[0], generation, given))
        for member, asker in zip(members, askers, strict=True):
            assert asker.take(SyncGroupResponse).assignment == given[member]
