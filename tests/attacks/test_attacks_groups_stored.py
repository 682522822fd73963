"""The groups' topic on a disk that somebody else has written to, that is full, or that lost power; and its deletion.

Either a shard loads or it does not serve its groups, and says so; the other shards and the broker go on.
"""

from pathlib import Path
from random import Random

import pytest

from attacks.arena import create_topic
from attacks.group_requests import SETTINGS as GROUP_SETTINGS
from attacks.group_requests import beat, commit, committed, consume, consumer_request, enter, join_request, prepare
from attacks.test_attacks_groups_fuzz import Fuzz
from broker.harness import Harness
from cordwood.broker.coordinators import partition_for
from cordwood.coordinator.shard import ShardState
from cordwood.coordinator.state_record import StateRecord
from cordwood.errors import CorruptData, Error
from cordwood.group.committed import CommittedOffset
from cordwood.group.stored import (
    KINDS,
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataMember,
    GroupMetadataValue,
    encode_record,
)
from cordwood.group.stored_offsets import OffsetCommitKey
from cordwood.record.build import Record, build
from cordwood.wire.client_frame import read_response
from cordwood.wire.messages import (
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    DeleteTopicsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupResponse,
)
from cordwood.wire.types import spec_of
from group.group_harness import GroupHarness
from support.process import BrokerProcess
from support.raw import RawClient
from support.waiting import eventually

TOPIC = "__consumer_offsets"
PARTITIONS = 2
BAD = partition_for("bad", PARTITIONS)
GOOD = 1 - BAD
GOOD_GROUP = next(name for name in map(str, range(100)) if partition_for(name, PARTITIONS) == GOOD)

Stored = tuple[bytes, bytes | None]


def state_record(key: object, value: object | None) -> Stored:
    return encode_record(StateRecord(key, value))


def loaded_with(*stored: Stored) -> Harness:
    """A broker that finds these in its log, beside a group in another shard."""
    harness = Harness(offsets_topic_num_partitions=PARTITIONS, group_initial_rebalance_delay_ms=0)
    harness.topic("t")
    client = harness.connect()
    client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6, FindCoordinatorResponse)
    harness.advance(20)
    offset = state_record(OffsetCommitKey(GOOD_GROUP, "t", 0), CommittedOffset(7, 0, "", harness.now.wall_ms))
    for index, records in ((BAD, stored), (GOOD, [offset])):
        for key, value in records:
            batch = build([Record(0, harness.now.wall_ms, key, value)])
            harness.partition(TOPIC, index).append(memoryview(batch), required_acks=-1, now=harness.now)
    harness.checking = False
    harness.kill()
    harness.start()
    harness.advance(20)
    return harness


def makes_sense(record: Stored) -> bool:
    """By itself, that is: with others it may not."""
    machine = GroupHarness().machine
    change = machine.decode(*record)
    try:
        machine.apply(change) if change is not None else None
    except CorruptData:
        return False
    return True


def state_of(harness: Harness, index: int) -> ShardState:
    return harness.broker.groups._shards[index].shard.state


def serves_others(harness: Harness) -> bool:
    state = harness.broker.groups._shards[GOOD].machine.state
    return state_of(harness, GOOD) is ShardState.SERVING and state.offsets.get(GOOD_GROUP, "t", 0) is not None


MEMBER = GroupMetadataMember(member_id="m", group_instance_id="i", session_timeout=1000)
NO_SENSE = {
    "short key": (b"\0", b"x"),
    "short offset key": (b"\0\1\0", b""),
    "lying offset key": (b"\0\1\x7f\xff" + b"x" * 10, b""),
    "no UTF-8": (b"\0\2\0\2\xff\xfe", b"\0\0"),
    "empty value": (b"\0\2\0\1g", b""),
    "later version": (b"\0\2\0\1g", b"\0\x63"),
    "negative version": (b"\0\1\0\1g\0\1t\0\0\0\0", b"\xff\xff" + bytes(40)),
    "a member twice": state_record(
        GroupMetadataKey(group="bad"), GroupMetadataValue(protocol_type="x", protocol="p", members=[MEMBER, MEMBER])
    ),
    "the last generation": state_record(GroupMetadataKey(group="bad"), GroupMetadataValue(generation=2**31 - 1)),
    "the last epoch": state_record(
        ConsumerGroupMetadataKey(group_id="bad"), ConsumerGroupMetadataValue(epoch=2**31 - 1)
    ),
    "a classic member without protocols": state_record(
        ConsumerGroupMemberMetadataKey(group_id="bad", member_id="m"),
        ConsumerGroupMemberMetadataValue(classic_member_metadata=ClassicMemberMetadata()),
    ),
}


@pytest.mark.parametrize("record", NO_SENSE.values(), ids=NO_SENSE)
def test_a_record_that_makes_no_sense_stops_its_shard_at_the_most(record: Stored) -> None:
    harness = loaded_with(record)
    assert serves_others(harness)
    assert state_of(harness, BAD) is ShardState.OVER
    assert "cannot be loaded, its groups are not served" in harness.logger


@pytest.mark.parametrize("seed", range(8))
def test_any_records_load_or_stop_their_shard(seed: int) -> None:
    """Of every kind, with any values, some of them damaged; then requests to whatever became of them."""
    fuzz, random = Fuzz(seed), Random(seed)
    stored: list[Stored] = []
    for _ in range(40):
        kind = random.choice(KINDS)
        key = fuzz._struct(spec_of(kind.key), kind.number)
        value = fuzz._struct(spec_of(kind.value), kind.written_version) if random.random() < 0.8 else None
        for name in ("group", "group_id"):
            if hasattr(key, name):
                setattr(key, name, "bad")
        record = state_record(key, value)
        if makes_sense(record):
            stored.append(record)
    if random.random() < 0.3:
        stored.append((random.randbytes(random.randrange(8)), random.randbytes(20)))
    fuzz.harness, fuzz.groups = loaded_with(*stored), ["bad"]
    fuzz.clients = [fuzz.harness.connect() for _ in range(3)]
    for _ in range(60):
        fuzz.request()
        fuzz.harness.advance(random.choice([0, 1, 50]))
    fuzz.harness.advance(700_000)
    assert serves_others(fuzz.harness)


# ---------------------------------------------------------------------- the disk

FILE_BYTES_MAX = 300_000
LIMITED = ["sh", "-c", f'ulimit -f {FILE_BYTES_MAX // 512} && exec "$@"', "sh"]


def test_a_disk_without_room_refuses_commits_and_keeps_what_it_took(tmp_path: Path) -> None:
    """Members stay in their group, and what fits is taken again."""
    settings = {**GROUP_SETTINGS, "log.index.size.max.bytes": 1024}
    with BrokerProcess(tmp_path, wrapper=LIMITED, settings=settings) as broker, RawClient(broker.bootstrap) as client:
        create_topic(client, "t", partitions=100)
        prepare(client)
        member = enter(client, "g")
        fields = {"member_id": member.member_id, "generation": member.generation_id}
        errors = [commit(client, "g", "t", range(30), metadata="n" * 2000, **fields)[0] for _ in range(6)]
        assert errors == [Error.NONE] * 4 + [Error.COORDINATOR_NOT_AVAILABLE] * 2
        assert beat(client, "g", member.member_id, member.generation_id) == Error.NONE
        assert commit(client, "g", "t", [99], **fields) == [Error.NONE]
        assert broker.stop() == 0
    with BrokerProcess(tmp_path, settings=GROUP_SETTINGS) as broker, RawClient(broker.bootstrap) as client:
        prepare(client)
        (topic,) = committed(client, "g").topics
        assert sorted(partition.partition_index for partition in topic.partitions) == [*range(30), 99]
        assert beat(client, "g", member.member_id, member.generation_id) == Error.NONE


def test_half_a_batch_at_the_end_is_cut_off(tmp_path: Path) -> None:
    """The broker died while it wrote: what was acknowledged before is there, and groups go on."""
    with BrokerProcess(tmp_path, settings=GROUP_SETTINGS) as broker, RawClient(broker.bootstrap) as client:
        create_topic(client, "t", partitions=100)
        prepare(client)
        for group in map(str, range(8)):
            assert set(commit(client, group, "t", range(5))) == {Error.NONE}
        member = enter(client, "g")
        broker.kill()
    logs = [path for path in tmp_path.rglob("*.log") if path.parent.name.startswith(TOPIC) and path.stat().st_size]
    assert len(logs) > 1
    for number, path in enumerate(logs):
        data = path.read_bytes()
        path.write_bytes(data + data[: 30 + 20 * number])
    with BrokerProcess(tmp_path, settings=GROUP_SETTINGS) as broker, RawClient(broker.bootstrap) as client:
        prepare(client)
        for group in map(str, range(8)):
            (topic,) = committed(client, group).topics
            assert len(topic.partitions) == 5
            assert set(commit(client, group, "t", range(6))) == {Error.NONE}
        assert beat(client, "g", member.member_id, member.generation_id) == Error.NONE


# ---------------------------------------------------------------------- the topic is deleted


def test_groups_begin_anew_when_their_topic_is_deleted(tmp_path: Path) -> None:
    """Whoever waits for an answer gets one; the topic comes back when somebody asks for a coordinator."""
    with (
        BrokerProcess(tmp_path, settings=GROUP_SETTINGS) as broker,
        RawClient(broker.bootstrap) as client,
        RawClient(broker.bootstrap) as waiting,
    ):
        create_topic(client, "t")
        prepare(client)
        member = enter(client, "g")
        assert consume(client, consumer_request("c", "m")).error_code == Error.NONE
        waiting.send(join_request("g"), version=3)
        eventually(lambda: beat(client, "g", member.member_id, 1) == Error.REBALANCE_IN_PROGRESS, what="the join")
        request = DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name=TOPIC)])
        assert client.ask(request, DeleteTopicsResponse).responses[0].error_code == Error.NONE
        answer = read_response(JoinGroupResponse, 3, memoryview(waiting.receive_frame()))
        assert answer.error_code == Error.NOT_COORDINATOR
        assert beat(client, "g", member.member_id, 1) == Error.NOT_COORDINATOR
        assert consume(client, consumer_request("c", "m")).error_code == Error.NOT_COORDINATOR
        prepare(client)
        assert beat(client, "g", member.member_id, 1) == Error.UNKNOWN_MEMBER_ID
        enter(client, "g")
        assert commit(client, "other", "t") == [Error.NONE]
        assert broker.stop() == 0
