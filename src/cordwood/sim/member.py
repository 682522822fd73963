"""Members of one consumer group (KIP-848), which share topics among themselves and commit offsets for what they have.

It must hold that no two members have a partition at the same time, and that a member that gets one finds an offset no
older than the last that was acknowledged. The group's topic is not synced, so a power failure may take both back: then
the members, too, begin anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from cordwood.errors import Error
from cordwood.sim.client import Caller, Surroundings
from cordwood.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopic,
    ConsumerGroupHeartbeatResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestGroupTopic,
    OffsetFetchResponse,
)

GROUP = "readers"
PAUSE_MAX_MS = 250
LEAVING_ODDS = 0.02
COMMITTING_ODDS = 0.5
ELSEWHERE = (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE)
START_AGAIN = (Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID, Error.GROUP_ID_NOT_FOUND, Error.STALE_MEMBER_EPOCH)

Partition = tuple[UUID, int]


@dataclass(slots=True)
class Shared:
    """What all members know together: who has what, and what was committed."""

    around: Surroundings
    session_timeout_ms: int
    owners: dict[Partition, str] = field(default_factory=dict)
    reported_ms: dict[str, int] = field(default_factory=dict)
    """When each member sent its last answered heartbeat. One session timeout later it must have stopped reading."""
    told: dict[Partition, int] = field(default_factory=dict)
    """The last acknowledged offset of each partition."""
    sent: int = 0
    """Every commit has a larger offset than all before it."""

    def take(self, partition: Partition, name: str) -> None:
        owner = self.owners.get(partition, name)
        session_end_ms = self.reported_ms.get(owner, 0) + self.session_timeout_ms
        if owner != name and self.around.clock.now.mono_ms < session_end_ms:
            self.around.history.complain(f"group: {name} was given {partition}, which {owner} has")
        self.owners[partition] = name

    def give_up(self, partition: Partition, name: str) -> None:
        if self.owners.get(partition) == name:
            del self.owners[partition]

    def found(self, partition: Partition, offset: int) -> None:
        """A member was told what is committed."""
        if offset < self.told.get(partition, -1):
            self.around.history.complain(
                f"group: {self.told[partition]} was committed for {partition}, acknowledged, and {offset} is found"
            )
        if offset > self.sent:
            self.around.history.complain(f"group: nobody committed {offset} for {partition}")


class Member:
    """One member: one heartbeat at a time, a commit now and then, and sometimes it leaves."""

    def __init__(self, around: Surroundings, shared: Shared, name: str, topics: Sequence[str], *, beats: int) -> None:
        self._around = around
        self._shared = shared
        self._name = name
        self._topics = list(topics)
        self._caller = Caller(around, name, self._connected)
        self._left = beats
        self._incarnation = 0
        self._epoch = 0
        self._owned: set[Partition] = set()
        self._is_full = True
        """The next heartbeat says everything, because the last answer may be lost."""

    @property
    def is_done(self) -> bool:
        return not self._left and not self._owned and not len(self._caller)

    def start(self) -> None:
        self._caller.connect()

    def begin_anew(self) -> None:
        """Forget everything, and join as a new member."""
        for partition in self._owned:
            self._shared.give_up(partition, self._name)
        self._owned = set()
        self._epoch = 0
        self._incarnation += 1

    def _connected(self) -> None:
        self._is_full = True
        self._caller.ask(FindCoordinatorRequest(coordinator_keys=[GROUP]), 4, FindCoordinatorResponse, self._found)

    def _found(self, response: FindCoordinatorResponse) -> None:
        (found,) = response.coordinators
        address = None if found.error_code else (found.host, found.port)
        if not (self._around.clustered and self._caller.move(address)):
            self._pause()

    def _pause(self) -> None:
        self._around.clock.after(self._around.random.randint(1, PAUSE_MAX_MS), f"{self._name} goes on", self._go_on)

    def _go_on(self) -> None:
        if not self._caller.is_connected:
            return
        if len(self._caller):
            self._pause()
            return
        if not self._left:
            self.begin_anew()  # it sends nothing any more, so it must not read either
            return
        self._left -= 1
        odds = self._around.random.random()
        if self._epoch > 0 and odds < LEAVING_ODDS:
            self._leave()
        elif self._owned and odds < COMMITTING_ODDS:
            self._commit(self._around.random.choice(sorted(self._owned)))
        else:
            self._beat()

    # ------------------------------------------------------------------ membership

    @property
    def _member_id(self) -> str:
        return f"{self._name}-{self._incarnation}"

    def _beat(self) -> None:
        joins = self._epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self._member_id,
            member_epoch=self._epoch,
            rebalance_timeout_ms=60_000 if joins or self._is_full else -1,
            subscribed_topic_names=self._topics if joins or self._is_full else None,
            topic_partitions=_topics(self._owned),
        )
        incarnation, sent_ms = self._incarnation, self._around.clock.now.mono_ms
        self._caller.ask(
            request, 1, ConsumerGroupHeartbeatResponse, lambda response: self._heard(incarnation, sent_ms, response)
        )

    def _heard(self, incarnation: int, sent_ms: int, response: ConsumerGroupHeartbeatResponse) -> None:
        if incarnation == self._incarnation:
            if response.error_code == Error.NONE:
                self._shared.reported_ms[self._name] = sent_ms
            self._follow(response)
        self._pause()

    def _follow(self, response: ConsumerGroupHeartbeatResponse) -> None:
        if response.error_code in START_AGAIN:
            self._around.trace.line(self._name, f"must join again: {Error(response.error_code).name}")
            self.begin_anew()
            return
        if response.error_code:
            self._go_elsewhere(response.error_code)
            return  # the coordinator is not ready, or its disk failed
        if response.member_epoch < self._epoch:
            self._around.history.complain(f"group: {self._name} went from epoch {self._epoch} to another before it")
        self._epoch = response.member_epoch
        self._is_full = False
        if response.assignment is not None:
            self._have({(t.topic_id, n) for t in response.assignment.topic_partitions for n in t.partitions})

    def _have(self, partitions: set[Partition]) -> None:
        for partition in sorted(self._owned - partitions):
            self._shared.give_up(partition, self._name)
        added = sorted(partitions - self._owned)
        for partition in added:
            self._shared.take(partition, self._name)
        self._owned = partitions
        if added:
            self._around.trace.line(self._name, f"was given {len(added)} partitions of its group")
            self._look_up(added[0])

    def _leave(self) -> None:
        """It stops reading before it says so."""
        member_id = self._member_id
        self.begin_anew()
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=-1)
        self._caller.ask(request, 1, ConsumerGroupHeartbeatResponse, lambda _: self._pause())

    # ------------------------------------------------------------------ offsets

    def _commit(self, partition: Partition) -> None:
        self._shared.sent += 1
        offset = self._shared.sent
        topic = OffsetCommitRequestTopic(
            topic_id=partition[0],
            partitions=[OffsetCommitRequestPartition(partition_index=partition[1], committed_offset=offset)],
        )
        request = OffsetCommitRequest(
            group_id=GROUP,
            member_id=self._member_id,
            generation_id_or_member_epoch=self._epoch,
            topics=[topic],
        )
        self._caller.ask(
            request, 10, OffsetCommitResponse, lambda response: self._committed(partition, offset, response)
        )

    def _committed(self, partition: Partition, offset: int, response: OffsetCommitResponse) -> None:
        error = response.topics[0].partitions[0].error_code
        if error == Error.NONE:
            self._shared.told[partition] = offset
        elif error in START_AGAIN:
            self._is_full = True
        else:
            self._go_elsewhere(error)
        self._pause()

    def _go_elsewhere(self, error: int) -> None:
        if error in ELSEWHERE:
            self._caller.move(None)

    def _look_up(self, partition: Partition) -> None:
        topic = OffsetFetchRequestGroupTopic(topic_id=partition[0], partition_indexes=[partition[1]])
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=[topic])])
        self._caller.ask(request, 10, OffsetFetchResponse, lambda response: self._looked_up(partition, response))

    def _looked_up(self, partition: Partition, response: OffsetFetchResponse) -> None:
        (group,) = response.groups
        if not group.error_code and not group.topics[0].partitions[0].error_code:
            self._shared.found(partition, group.topics[0].partitions[0].committed_offset)


def _topics(partitions: set[Partition]) -> list[ConsumerGroupHeartbeatRequestTopic]:
    return [
        ConsumerGroupHeartbeatRequestTopic(
            topic_id=topic_id, partitions=sorted(index for each, index in partitions if each == topic_id)
        )
        for topic_id in sorted({topic_id for topic_id, _ in partitions})
    ]
