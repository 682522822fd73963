"""Consumers of the classic protocol for tests of groups that have members of both. They are eager ones."""

from dataclasses import dataclass, field
from struct import pack

from cordwood.errors import Error, Refused
from cordwood.group import routing
from cordwood.group.consumer.embedded import decode_assignment
from cordwood.ids import TopicName
from cordwood.wire import encode
from cordwood.wire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentAssignedPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionOwnedPartition,
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
from group.consumer_members import GROUP, Partitions
from group.group_harness import Asker, GroupHarness

VERSION = pack(">h", 3)


@dataclass(slots=True)
class ClassicClient:
    """A client that gives up everything before it joins. If it leads, it shares out by turns."""

    harness: GroupHarness
    topics: list[str] = field(default_factory=lambda: ["t"])
    instance_id: str | None = None
    id: str = ""
    generation: int = -1
    owned: Partitions = field(default_factory=set)
    joining: Asker | None = None
    syncing: Asker | None = None
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 20_000
    assignor: str = "range"

    # ------------------------------------------------------------------ requests

    def send_join(self, owned: dict[str, list[int]] | None = None) -> Asker:
        said = ConsumerProtocolSubscription(
            topics=self.topics,
            owned_partitions=[
                ConsumerProtocolSubscriptionOwnedPartition(topic=topic, partitions=partitions)
                for topic, partitions in (owned or {}).items()
            ],
        )
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=self.assignor, metadata=VERSION + encode(said, 3))],
        )
        return self.harness.call(routing.join, request, 9)

    def send_sync(self, assignments: dict[str, bytes] | None = None) -> Asker:
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name=self.assignor,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in (assignments or {}).items()
            ],
        )
        return self.harness.call(routing.sync, request, 5)

    def beat(self) -> Error:
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=self.generation, member_id=self.id, group_instance_id=self.instance_id
        )
        (answer,) = self.harness.call(routing.heartbeat, request, 4).answers
        return error_of(answer)

    def leave(self) -> Error:
        named = LeaveGroupRequestMember(member_id=self.id, group_instance_id=self.instance_id)
        (answer,) = self.harness.call(routing.leave, LeaveGroupRequest(group_id=GROUP, members=[named]), 5).answers
        self.owned = set()
        return error_of(answer)

    # ------------------------------------------------------------------ as a client goes on by itself

    def step(self) -> None:
        """What a client does next: go on with a join or a sync, or say that it is alive."""
        if self.joining is not None:
            self._go_on_joining(self.joining)
        elif self.syncing is not None:
            self._go_on_syncing(self.syncing)
        elif self.generation < 0 or self.beat() is not Error.NONE:
            self.join()

    def join(self) -> None:
        self.owned = set()
        self.joining = self.send_join()
        self._go_on_joining(self.joining)

    def _go_on_joining(self, asker: Asker) -> None:
        if asker.waits:
            return
        self.joining = None
        (answer,) = asker.answers
        error = error_of(answer)
        if error is Error.MEMBER_ID_REQUIRED:
            assert isinstance(answer, JoinGroupResponse)
            self.id = answer.member_id
            self.join()
        elif error is not Error.NONE:
            self._start_again(error)
        else:
            assert isinstance(answer, JoinGroupResponse)
            self.id, self.generation = answer.member_id, answer.generation_id
            self.syncing = self.send_sync(self._shares(answer) if answer.leader == self.id else None)
            self._go_on_syncing(self.syncing)

    def _shares(self, answer: JoinGroupResponse) -> dict[str, bytes]:
        """One partition after another to one member after another, whatever they subscribe to."""
        known = [self.harness.image.topics.get(TopicName(name)) for name in self.topics]
        partitions = [
            (str(topic.name), each.index) for topic in known if topic is not None for each in topic.partitions
        ]
        shares: dict[str, bytes] = {}
        for place, member in enumerate(answer.members):
            named: dict[str, list[int]] = {}
            for topic, partition in partitions[place :: len(answer.members)]:
                named.setdefault(topic, []).append(partition)
            shares[member.member_id] = assignment(named)
        return shares

    def _go_on_syncing(self, asker: Asker) -> None:
        if asker.waits:
            return
        self.syncing = None
        (answer,) = asker.answers
        if (error := error_of(answer)) is not Error.NONE:
            self._start_again(error)
            return
        assert isinstance(answer, SyncGroupResponse)
        self.owned = self._partitions(answer.assignment)

    def _start_again(self, error: Error) -> None:
        self.generation = -1
        if error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
            self.id = ""

    def _partitions(self, data: bytes) -> Partitions:
        found = decoded(data)
        ids = {str(topic.name): topic.id for topic in self.harness.image.topics.values()}
        return {(ids[topic], each) for topic, partitions in found.items() if topic in ids for each in partitions}

    @property
    def numbers(self) -> list[int]:
        return sorted(partition for _, partition in self.owned)


def assignment(named: dict[str, list[int]]) -> bytes:
    parts = [
        ConsumerProtocolAssignmentAssignedPartition(topic=topic, partitions=partitions)
        for topic, partitions in named.items()
    ]
    return VERSION + encode(ConsumerProtocolAssignment(assigned_partitions=parts), 3)


def decoded(data: bytes) -> dict[str, list[int]]:
    return {each.topic: each.partitions for each in decode_assignment(data).assigned_partitions}


def error_of(answer: object) -> Error:
    if isinstance(answer, Refused):
        return answer.error
    assert isinstance(answer, HeartbeatResponse | JoinGroupResponse | SyncGroupResponse | LeaveGroupResponse)
    if isinstance(answer, LeaveGroupResponse) and answer.members:
        return Error(answer.members[0].error_code)
    return Error(answer.error_code)
