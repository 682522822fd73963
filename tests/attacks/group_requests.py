"""What hostile and honest members of groups send: each request in one call, with defaults that fit most attacks."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic

from attacks.arena import create_topic
from cordwood.errors import Error
from cordwood.wire import encode
from cordwood.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopic,
    ConsumerGroupHeartbeatResponse,
    ConsumerProtocolSubscription,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupRequestMember,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from support.process import BrokerProcess
from support.raw import RawClient
from support.waiting import eventually

INT_MAX = 2**31 - 1
SUBSCRIPTION = b"\0\0" + encode(ConsumerProtocolSubscription(topics=["t"]), 0)
RANGE: Mapping[str, bytes] = {"range": SUBSCRIPTION}
COME_AT_ONCE = 3
"""The last version of JoinGroup in which whoever joins is in, without being given an id first."""

SETTINGS = {
    "offsets.topic.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1,
}


def prepare(client: RawClient) -> None:
    """Have the groups' topic, with all of it loaded."""

    def is_there() -> bool:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        found = client.ask(request, FindCoordinatorResponse).coordinators[0].error_code
        loaded = [commit(client, f"prepare-{number}", "nowhere")[0] for number in range(20)]
        loaded.append(Error(committed(client, "g").error_code))
        return found == Error.NONE and Error.COORDINATOR_LOAD_IN_PROGRESS not in loaded

    eventually(is_there, what="the coordinator")


# ---------------------------------------------------------------------- the classic protocol


def join_request(
    group: str,
    member_id: str = "",
    *,
    instance: str | None = None,
    protocols: Mapping[str, bytes] = RANGE,
    protocol_type: str = "consumer",
    session_ms: int = 60_000,
    rebalance_ms: int = 60_000,
    reason: str | None = None,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=said) for name, said in protocols.items()],
        reason=reason,
    )


def sync_request(
    group: str, member_id: str, generation: int, assignments: Mapping[str, bytes] | None = None
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        member_id=member_id,
        generation_id=generation,
        assignments=[
            SyncGroupRequestAssignment(member_id=name, assignment=given) for name, given in (assignments or {}).items()
        ],
    )


def join(client: RawClient, request: JoinGroupRequest, *, version: int = COME_AT_ONCE) -> JoinGroupResponse:
    return client.ask(request, JoinGroupResponse, version=version)


def sync(client: RawClient, request: SyncGroupRequest, *, version: int = 4) -> SyncGroupResponse:
    return client.ask(request, SyncGroupResponse, version=version)


def enter(client: RawClient, group: str, **fields: object) -> JoinGroupResponse:
    """Become the only member of a stable group; the answer to the join."""
    version = 5 if fields.get("instance") is not None else COME_AT_ONCE
    joined = join(client, join_request(group, **fields), version=version)  # type: ignore[arg-type]
    assert joined.error_code == Error.NONE
    synced = sync(client, sync_request(group, joined.member_id, joined.generation_id, {joined.member_id: b"mine"}))
    assert (synced.error_code, synced.assignment) == (Error.NONE, b"mine")
    return joined


def beat(client: RawClient, group: str, member_id: str, generation: int) -> int:
    request = HeartbeatRequest(group_id=group, member_id=member_id, generation_id=generation)
    return client.ask(request, HeartbeatResponse).error_code


def leave(client: RawClient, group: str, *members: LeaveGroupRequestMember) -> LeaveGroupResponse:
    return client.ask(LeaveGroupRequest(group_id=group, members=list(members)), LeaveGroupResponse)


# ---------------------------------------------------------------------- the consumer protocol


def consumer_request(
    group: str,
    member_id: str,
    epoch: int = 0,
    *,
    names: Sequence[str] | None = ("t",),
    pattern: str | None = None,
    owned: Sequence[ConsumerGroupHeartbeatRequestTopic] | None = (),
    instance: str | None = None,
    rebalance_ms: int = 60_000,
    assignor: str | None = None,
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        instance_id=instance,
        rebalance_timeout_ms=rebalance_ms,
        subscribed_topic_names=None if names is None else list(names),
        subscribed_topic_regex=pattern,
        topic_partitions=None if owned is None else list(owned),
        server_assignor=assignor,
    )


def consume(client: RawClient, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    return client.ask(request, ConsumerGroupHeartbeatResponse)


# ---------------------------------------------------------------------- offsets


def commit_request(
    group: str,
    topic: str,
    partitions: Sequence[int] = (0,),
    *,
    offset: int = 7,
    metadata: str = "",
    member_id: str = "",
    generation: int = -1,
) -> OffsetCommitRequest:
    asked = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
        for index in partitions
    ]
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=asked)],
    )


def commit(client: RawClient, group: str, topic: str, partitions: Sequence[int] = (0,), **fields: object) -> list[int]:
    """The error of each partition."""
    request = commit_request(group, topic, partitions, **fields)  # type: ignore[arg-type]
    answer = client.ask(request, OffsetCommitResponse, version=9)
    return [partition.error_code for topic_ in answer.topics for partition in topic_.partitions]


def committed(client: RawClient, group: str) -> OffsetFetchResponseGroup:
    """All offsets of a group."""
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    return client.ask(request, OffsetFetchResponse, version=9).groups[0]


# ---------------------------------------------------------------------- whoever must not notice

PATIENCE_S = 30.0


class HonestMembers:
    """A member of each protocol, and their offsets: whatever others do, they stay what they are."""

    def __init__(self, client: RawClient, group: str) -> None:
        self._client = client
        self._group = group
        self._offset = 0
        create_topic(client, "honest")
        self._classic = enter(client, group)
        self._consumer = consume(client, consumer_request(f"{group}-2", "honest", names=["honest"]))
        assert Error(self._consumer.error_code) == Error.NONE, self._consumer.error_message
        assert self._consumer.assignment is not None
        assert len(self._consumer.assignment.topic_partitions) == 1
        self._write()

    def _write(self) -> None:
        classic, consumer = self._classic, self._consumer
        self._offset += 1
        for group, member, epoch in (
            (self._group, classic.member_id, classic.generation_id),
            (f"{self._group}-2", "honest", consumer.member_epoch),
        ):
            errors = commit(self._client, group, "honest", member_id=member, generation=epoch, offset=self._offset)
            assert errors == [Error.NONE]

    def check(self) -> None:
        client, classic, consumer = self._client, self._classic, self._consumer
        start_s = monotonic()
        assert beat(client, self._group, classic.member_id, classic.generation_id) == Error.NONE
        still = ConsumerGroupHeartbeatRequest(
            group_id=f"{self._group}-2", member_id="honest", member_epoch=consumer.member_epoch
        )
        answer = consume(client, still)
        assert (answer.error_code, answer.member_epoch) == (Error.NONE, consumer.member_epoch)
        for group in (self._group, f"{self._group}-2"):
            (topic,) = committed(client, group).topics
            assert [(p.partition_index, p.committed_offset) for p in topic.partitions] == [(0, self._offset)]
        self._write()
        assert monotonic() - start_s < PATIENCE_S

    def leave(self) -> None:
        leave(self._client, self._group, LeaveGroupRequestMember(member_id=self._classic.member_id))
        consume(
            self._client,
            ConsumerGroupHeartbeatRequest(group_id=f"{self._group}-2", member_id="honest", member_epoch=-1),
        )


@contextmanager
def honest_members(broker: BrokerProcess, group: str) -> Iterator[HonestMembers]:
    """They are there throughout, and well at the end."""
    with RawClient(broker.bootstrap) as client:
        prepare(client)
        members = HonestMembers(client, group)
        yield members
        members.check()
        members.leave()
