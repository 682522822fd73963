"""All groups together take no more memory than they may: whoever is new is refused, the others go on."""

from cordwood.errors import Error, Refused
from cordwood.group import offsets
from cordwood.wire.messages import (
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
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
