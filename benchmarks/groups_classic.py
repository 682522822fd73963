"""A group of the classic protocol, as its members see it: they join, the first one assigns, they sync.

The members do as little as possible, so that the time of a rebalance is the broker's.
"""

import struct
import time
from dataclasses import dataclass, field
from typing import Final

from cordwood.wire import messages as m
from cordwood.wire.client_frame import read_response

from .groups_wires import CLIENT, Wires, body, check, pause, request
from .raw import RawError

JOIN_VERSION: Final = 9
SYNC_VERSION: Final = 5
LEAVE_VERSION: Final = 5
SUBSCRIPTION_VERSION: Final = 3
MEMBER_ID_REQUIRED: Final = 79
SESSION_TIMEOUT_MS: Final = 30_000
REBALANCE_TIMEOUT_MS: Final = 60_000
PROTOCOL: Final = "range"

# Where an answer has its error code, and a JoinGroup's its generation: after the header and the throttle time.
JOINED: Final = struct.Struct(">4xx4xhi")
SYNCED: Final = struct.Struct(">4xx4xh")
GENERATION_MARK: Final = 0x5A5A5A5A

# A pause that lets all joins but the last arrive: they are not answered yet, so there is no event to wait for.
SETTLE_S: Final = 0.01
SETTLE_S_PER_MEMBER: Final = 0.0002


@dataclass(slots=True)
class ClassicGroup:
    """Members of one group, one per connection. The first joins before the others and stays the leader."""

    wires: Wires
    name: str
    topic: str
    numbers: range
    generation: int = -1
    ids: list[str] = field(default_factory=list)
    _turn: int = 0
    _assignments: list[bytes] = field(default_factory=list)
    _syncs: dict[int, bytearray] = field(default_factory=dict)

    def form(self) -> None:
        """Let the first member in, then all others, and have them assigned."""
        self._assignments = [self._assignment(partition) for partition in range(len(self.numbers))]
        self._enter(self.numbers[:1])
        self.wires.send(self.numbers[0], self._join(0))
        self._answer_until_assigned()
        if len(self.numbers) > 1:
            self._enter(self.numbers[1:])
            self.rebalance(last=0)

    def rebalance(self, *, last: int | None = None) -> float:
        """All join again, with changed metadata; return the seconds from the last join to the last assignment."""
        self._turn += 1
        count = len(self.ids)
        joins = [self._join(member) for member in range(count)]
        last = count - 1 if last is None else last
        for member in range(count):
            if member != last:
                self.wires.send(self.numbers[member], joins[member])
        pause(SETTLE_S + SETTLE_S_PER_MEMBER * count)
        begin = time.perf_counter()
        self.wires.send(self.numbers[last], joins[last])
        self._answer_until_assigned()
        return time.perf_counter() - begin

    def leave(self) -> None:
        gone = [m.LeaveGroupRequestMember(member_id=member) for member in self.ids]
        frame = request(m.LeaveGroupRequest(group_id=self.name, members=gone), LEAVE_VERSION)
        check(self.wires.ask(self.numbers[0], frame, m.LeaveGroupResponse, LEAVE_VERSION).error_code, "LeaveGroup")

    def _enter(self, numbers: range) -> None:
        """Have the members given their ids, which is the only purpose of the first JoinGroup."""
        ids: dict[int, str] = {}
        for number in numbers:
            self.wires.send(number, self._join(None))
        for number, frame in self.wires.frames():
            answer = read_response(m.JoinGroupResponse, JOIN_VERSION, frame)
            if answer.error_code != MEMBER_ID_REQUIRED:
                raise RawError(f"a JoinGroup without a member id was answered with error {answer.error_code}")
            ids[number] = answer.member_id
            if len(ids) == len(numbers):
                break
        for number in numbers:
            self.ids.append(ids[number])
            self._syncs[number] = bytearray(self._sync(ids[number], GENERATION_MARK, []))
            assert self._syncs[number].index(GENERATION_MARK.to_bytes(4, "big")) == self._generation_at

    def _join(self, member: int | None) -> bytes:
        said = m.ConsumerProtocolSubscription(topics=[self.topic], user_data=self._turn.to_bytes(4, "big"))
        offer = m.JoinGroupRequestProtocol(name=PROTOCOL, metadata=body(said, SUBSCRIPTION_VERSION))
        wanted = m.JoinGroupRequest(
            group_id=self.name,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id="" if member is None else self.ids[member],
            protocol_type="consumer",
            protocols=[offer],
        )
        return request(wanted, JOIN_VERSION)

    def _answer_until_assigned(self) -> None:
        """Each member syncs as soon as it has joined, the leader with the assignments of all."""
        joined: set[int] = set()
        assigned = 0
        for number, frame in self.wires.frames():
            if number in joined:
                check(SYNCED.unpack_from(frame)[0], "SyncGroup")
                assigned += 1
                if assigned == len(self.ids):
                    return
            else:
                joined.add(number)
                self.wires.send(number, self._sync_after(number, frame))

    def _sync_after(self, number: int, frame: memoryview) -> bytes | bytearray:
        """The SyncGroup that follows a JoinGroup. A follower's was made before and lacks only the generation."""
        error, self.generation = JOINED.unpack_from(frame)
        check(error, "JoinGroup")
        if number == self.numbers[0]:
            return self._leaders_sync(read_response(m.JoinGroupResponse, JOIN_VERSION, frame))
        sync = self._syncs[number]
        struct.pack_into(">i", sync, self._generation_at, self.generation)
        return sync

    def _leaders_sync(self, joined: m.JoinGroupResponse) -> bytes:
        assert joined.leader == joined.member_id
        assignments = [
            m.SyncGroupRequestAssignment(member_id=member.member_id, assignment=assignment)
            for member, assignment in zip(joined.members, self._assignments, strict=False)
        ]
        return self._sync(joined.member_id, joined.generation_id, assignments)

    def _sync(self, member_id: str, generation: int, assignments: list[m.SyncGroupRequestAssignment]) -> bytes:
        wanted = m.SyncGroupRequest(
            group_id=self.name,
            generation_id=generation,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name=PROTOCOL,
            assignments=assignments,
        )
        return request(wanted, SYNC_VERSION)

    @property
    def _generation_at(self) -> int:
        """After the header of the frame (size, key, version, id, client) and the group's name."""
        return 14 + len(CLIENT) + 1 + 1 + len(self.name)

    def _assignment(self, partition: int) -> bytes:
        held = m.ConsumerProtocolAssignmentAssignedPartition(topic=self.topic, partitions=[partition])
        return body(m.ConsumerProtocolAssignment(assigned_partitions=[held]), SUBSCRIPTION_VERSION)
