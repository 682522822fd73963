"""All groups together take no more memory than they may: whoever is new is refused, the others go on."""

import tracemalloc
from collections.abc import Callable
from struct import pack

import pytest

from cordwood.errors import Error, Refused
from cordwood.group import consumer, offsets, routing
from cordwood.ids import TopicName
from cordwood.wire import encode
from cordwood.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolSubscription,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from group.classic_driver import DELAY_MS, SESSION_MS, ClassicDriver
from group.consumer_members import TestMember
from group.group_harness import Asker

FULL = Error.COORDINATOR_NOT_AVAILABLE


def commit(driver: ClassicDriver, group_id: str, note: str = "") -> Asker:
    partition = OffsetCommitRequestPartition(committed_offset=1, committed_metadata=note)
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    return driver.call(offsets.commit, OffsetCommitRequest(group_id=group_id, topics=[topic]), 9)


def is_full(asker: Asker) -> bool:
    return any(isinstance(answer, Refused) and answer.error is FULL for answer in asker.answers)


def test_members_are_let_in_until_memory_is_full_and_again_when_others_have_gone() -> None:
    driver = ClassicDriver(cordwood_max_groups_bytes=100_000)
    large = {"range": bytes(20_000)}
    (member,) = driver.stable(1)
    taken = 0
    while not is_full(driver.join(group_id=f"g{taken}", protocols=large, version=3)):
        taken += 1
    assert taken == 4
    assert f"g{taken}" not in driver.state.groups
    assert driver.beat(member, 1) is Error.NONE
    assert driver.join(member).take(JoinGroupResponse).error_code == Error.NONE
    for number in range(taken):
        driver.advance(1)
        assert is_full(driver.join(group_id=f"more-{number}", protocols=large, version=3))
    for _ in range(40):
        driver.advance(SESSION_MS // 2)
        driver.beat(member, driver.group.generation)
    assert driver.join(group_id="later", protocols=large, version=3).waits
    driver.advance(DELAY_MS)


def test_consumers_are_refused_when_memory_is_full() -> None:
    driver = ClassicDriver(cordwood_max_groups_bytes=10_000)
    member = TestMember(driver, "m", topics=["t"])
    member.join()
    names = [f"topic-{number}" for number in range(100)]
    answer = TestMember(driver, "n").send(
        member_epoch=0, topic_partitions=[], rebalance_timeout_ms=1000, subscribed_topic_names=names
    )
    assert isinstance(answer, Refused)
    assert answer.error is FULL
    member.beat()


def test_offsets_count_and_those_of_known_groups_are_always_taken() -> None:
    driver = ClassicDriver(cordwood_max_groups_bytes=20_000)
    driver.topic("t", 1)
    taken = 0
    while not is_full(commit(driver, f"g{taken}", "n" * 4000)):
        taken += 1
    assert taken == 4
    answer = commit(driver, "g0", "m" * 4096).take(OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code == Error.NONE


def test_what_a_reload_finds_is_there_even_if_it_is_more_than_may_be() -> None:
    driver = ClassicDriver()
    driver.topic("t", 1)
    for number in range(10):
        commit(driver, f"g{number}", "n" * 4000)
    driver.config = type(driver.config).parse({"cordwood.max.groups.bytes": "1"})
    driver.reload()
    assert len(driver.state.groups) == 10
    assert is_full(commit(driver, "new"))
    assert not is_full(commit(driver, "g1"))


# ---------------------------------------------------------------------- all that members of consumer groups take


def join_until_full(driver: ClassicDriver, join: Callable[[int], Asker]) -> int:
    """How many got in."""
    for number in range(1000):
        asker = join(number)
        if is_full(asker):
            return number
        assert not any(isinstance(answer, Refused) for answer in asker.answers)
    raise AssertionError("there is no limit")


def test_what_classic_members_of_consumer_groups_say_counts() -> None:
    driver = ClassicDriver(cordwood_max_groups_bytes=1_000_000, group_consumer_migration_policy="bidirectional")
    driver.topic("t", 4)
    TestMember(driver, "k").join()
    said = pack(">h", 3) + encode(ConsumerProtocolSubscription(topics=["t"], user_data=bytes(100_000)), 3)
    taken = join_until_full(
        driver,
        lambda number: driver.call(
            routing.join,
            JoinGroupRequest(
                group_id="g",
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=SESSION_MS,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=said)],
            ),
            3,
        ),
    )
    assert taken == 9


@pytest.mark.parametrize(
    ("name", "length"),
    [
        ("rack_id", 30_000),
        ("instance_id", 30_000),
        ("subscribed_topic_names", 30_000),
        ("subscribed_topic_regex", 2000),
        ("", 30_000),  # the client id
    ],
)
def test_all_that_consumers_say_counts(name: str, length: int) -> None:
    driver = ClassicDriver(cordwood_max_groups_bytes=1_000_000)
    driver.topic("t", 4)

    def join(number: int) -> Asker:
        long = f"{number}" + "x" * length
        fields = {name: [long] if name == "subscribed_topic_names" else long} if name else {}
        request = ConsumerGroupHeartbeatRequest(
            **{
                "group_id": "g",
                "member_id": f"m{number}",
                "rebalance_timeout_ms": 1000,
                "topic_partitions": [],
                "subscribed_topic_names": ["t"],
                **fields,
            }  # type: ignore[arg-type]
        )
        return driver.call(consumer.heartbeat, request, 1, client_id="test" if name else long)

    assert 3 <= join_until_full(driver, join) <= 1_000_000 // (4 * length)


def test_partitions_of_consumers_count() -> None:
    driver = ClassicDriver(cordwood_max_groups_bytes=5_000_000)
    driver.topic("t", 10_000)
    members = [TestMember(driver, "m", group_id=f"g{number}") for number in range(5)]
    answers = [
        member.send(member_epoch=0, topic_partitions=[], rebalance_timeout_ms=1000, subscribed_topic_names=["t"])
        for member in members
    ]
    refused = [is_full_answer(answer) for answer in answers]
    assert refused == [False, False, True, True, True]
    members[0].epoch = 2
    members[0].beat()
    driver.topic("t", 10_010)
    driver.finish(consumer.topics_changed(driver.state, [TopicName("t")], driver.now))
    driver.advance(5000)
    members[0].beat()
    assert len(members[0].told) == 10_010


def test_consumer_groups_weigh_about_what_they_take() -> None:
    driver = ClassicDriver()
    for number in range(20):
        driver.topic(f"t{number}", 200)
    members = [TestMember(driver, f"m{number}", group_id=f"g{number % 3}", topics=None) for number in range(12)]
    tracemalloc.start()
    for member in members:
        member.topics, member.pattern = (
            (None, f"t.*|{member.id}") if member.id < "m5" else ([f"t{number}" for number in range(20)], None)
        )
        member.join()
    for member in members:
        driver.advance(1000)
        member.settle()
    weight = sum(group.weight_bytes for group in driver.state.groups.values())
    for member in members:
        member.told, member.owned = set(), set()
    driver.stored.clear()
    driver.state.deadlines.check()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / 2 < weight < 3 * used


def test_known_members_of_a_full_broker_may_say_something_smaller() -> None:
    driver = ClassicDriver()
    driver.topic("t", 4)
    member = TestMember(driver, "m", topics=["t", "u"])
    member.join()
    driver.config = type(driver.config).parse({"cordwood.max.groups.bytes": "1"})
    member.topics = ["t"]
    member.unsure = True
    member.beat()
    assert is_full_answer(member.send(member_epoch=member.epoch, subscribed_topic_names=["t", "u", "v"]))


def is_full_answer(answer: object) -> bool:
    return isinstance(answer, Refused) and answer.error is FULL


def test_names_and_assignments_of_classic_members_count() -> None:
    driver = ClassicDriver(cordwood_max_groups_bytes=1_000_000)
    assert join_until_full(driver, lambda number: named_join(driver, number, 30_000)) == 8
    driver = ClassicDriver(cordwood_max_groups_bytes=1_000_000)
    for number in range(30):
        join = named_join(driver, number, 10)
        if is_full(join):
            break
        driver.advance(DELAY_MS)
        sync_with(driver, f"g{number}", join.take(JoinGroupResponse), bytes(100_000))
    assert 8 <= number <= 10


def named_join(driver: ClassicDriver, number: int, length: int) -> Asker:
    request = JoinGroupRequest(
        group_id=f"g{number}",
        session_timeout_ms=300_000,
        rebalance_timeout_ms=SESSION_MS,
        protocol_type="x",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    return driver.call(routing.join, request, 3, client_id=f"{number}" + "c" * length)


def sync_with(driver: ClassicDriver, group_id: str, joined: JoinGroupResponse, assignment: bytes) -> None:
    request = SyncGroupRequest(
        group_id=group_id,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)],
    )
    assert driver.call(routing.sync, request, 3).take(SyncGroupResponse).error_code == Error.NONE
