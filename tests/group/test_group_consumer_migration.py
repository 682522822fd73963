"""Groups that change their protocol, and members of both protocols in one group."""

import pytest

from cordwood.errors import Error, Refused
from cordwood.group.classic import ClassicGroup
from cordwood.group.consumer import ConsumerGroup
from cordwood.group.consumer.embedded import decode_assignment
from cordwood.wire.messages import JoinGroupResponse
from group.classic_clients import ClassicClient, decoded, error_of
from group.consumer_members import GROUP, TestMember, group_of, refused
from group.group_harness import GroupHarness


def new_harness(policy: str = "bidirectional", **settings: object) -> GroupHarness:
    harness = GroupHarness(group_initial_rebalance_delay_ms=0, group_consumer_migration_policy=policy, **settings)
    harness.topic("t", 4)
    return harness


def joined(harness: GroupHarness, instance_id: str | None = None, assignor: str = "range") -> ClassicClient:
    client = ClassicClient(harness, instance_id=instance_id, assignor=assignor)
    client.step()
    harness.advance(0)  # a classic group waits for more members, if only for no time at all
    if client.joining is not None:
        client.step()
    return client


def classic_pair(harness: GroupHarness) -> tuple[ClassicClient, ClassicClient]:
    pair = joined(harness), ClassicClient(harness)
    for _ in range(2):
        for client in reversed(pair):
            client.step()
    assert [client.numbers for client in pair] == [[0, 2], [1, 3]]
    return pair


def run(harness: GroupHarness, *clients: ClassicClient | TestMember, rounds: int = 8) -> None:
    """Everybody goes on, with time between."""
    for _ in range(rounds):
        harness.advance(2000)
        for client in clients:
            if isinstance(client, ClassicClient):
                client.step()
            else:
                client.settle()


def test_a_classic_group_becomes_a_consumer_group_with_its_members_and_partitions() -> None:
    harness = new_harness()
    pair = classic_pair(harness)
    newcomer = TestMember(harness, "k")
    generation = pair[0].generation
    assert newcomer.join().member_epoch == generation + 1
    group = group_of(harness)
    assert set(group.members) == {pair[0].id, pair[1].id, "k"}
    for client in pair:
        member = group.members[client.id]
        assert member.is_classic
        assert {(topic, each) for topic, held in member.current.assigned.items() for each in held} == client.owned
    assert newcomer.numbers == []
    assert [client.beat() for client in pair] == [Error.REBALANCE_IN_PROGRESS] * 2


def test_members_of_both_protocols_share() -> None:
    harness = new_harness()
    pair = classic_pair(harness)
    newcomers = [TestMember(harness, name) for name in "kl"]
    for newcomer in newcomers:
        newcomer.join()
    everybody: list[ClassicClient | TestMember] = [*pair, *newcomers]
    run(harness, *everybody)
    assert sorted(each.numbers for each in everybody) == [[0], [1], [2], [3]]
    assert group_of(harness).state_name == "Stable"
    harness.reload()
    run(harness, *everybody)
    assert sorted(each.numbers for each in everybody) == [[0], [1], [2], [3]]


def test_whoever_waits_in_a_rebalance_is_told_to_join_again() -> None:
    harness = new_harness()
    first = joined(harness)
    second = ClassicClient(harness)
    second.step()
    assert second.joining is not None
    assert second.joining.waits
    TestMember(harness, "k").join()
    assert error_of(second.joining.answers[0]) is Error.REBALANCE_IN_PROGRESS
    run(harness, first, second)
    assert second.id in group_of(harness).members


def test_a_static_member_that_changes_its_protocol_before_anything_was_shared_out_gets_its_share() -> None:
    harness = new_harness()
    ClassicClient(harness, instance_id="i").step()
    member = TestMember(harness, "k", instance_id="i")
    assert member.join().member_epoch == 1
    assert member.numbers == [0, 1, 2, 3]


def test_the_last_who_speaks_the_consumer_protocol_leaves_a_classic_group_behind() -> None:
    harness = new_harness()
    pair = classic_pair(harness)
    newcomer = TestMember(harness, "k")
    newcomer.join()
    run(harness, *pair, newcomer)
    assert len(newcomer.numbers) == 1
    newcomer.leave()
    group = harness.state.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert group.state_name == "PreparingRebalance"
    assert [client.beat() for client in pair] == [Error.REBALANCE_IN_PROGRESS] * 2
    run(harness, *pair)
    assert [len(client.numbers) for client in pair] == [2, 2]
    assert harness.state.groups[GROUP].state_name == "Stable"
    harness.reload()
    assert [client.beat() for client in pair] == [Error.NONE] * 2


def test_the_last_who_speaks_the_consumer_protocol_may_also_be_missed() -> None:
    harness = new_harness()
    client, newcomer = joined(harness), TestMember(harness, "k")
    newcomer.join()
    run(harness, client, rounds=30)
    assert isinstance(harness.state.groups[GROUP], ClassicGroup)
    assert client.numbers == [0, 1, 2, 3]


def test_a_group_that_may_not_go_back_is_served_all_the_same() -> None:
    harness = new_harness("upgrade")
    client, newcomer = joined(harness), TestMember(harness, "k")
    newcomer.join()
    run(harness, client, newcomer)
    newcomer.leave()
    assert isinstance(harness.state.groups[GROUP], ConsumerGroup)
    run(harness, client)
    assert client.numbers == [0, 1, 2, 3]


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_a_group_that_may_not_change_does_not(policy: str) -> None:
    harness = new_harness(policy)
    joined(harness)
    with pytest.raises(Refused) as refusal:
        TestMember(harness, "k").join()
    assert refusal.value.error is Error.GROUP_ID_NOT_FOUND


def test_classic_members_are_refused_where_nothing_may_change() -> None:
    harness = new_harness("disabled")
    TestMember(harness, "k").join()
    (answer,) = ClassicClient(harness).send_join().answers
    assert error_of(answer) is Error.INCONSISTENT_GROUP_PROTOCOL


def test_an_empty_group_becomes_what_its_next_member_is() -> None:
    harness = new_harness("disabled")
    client = joined(harness)
    client.leave()
    member = TestMember(harness, "k")
    assert member.join().member_epoch == 2
    member.leave()
    client = joined(harness)
    assert isinstance(harness.state.groups[GROUP], ClassicGroup)
    assert client.numbers == [0, 1, 2, 3]
    harness.reload()
    assert client.beat() is Error.NONE


def test_a_group_of_too_many_members_does_not_change() -> None:
    harness = new_harness(group_consumer_max_size=1)
    classic_pair(harness)
    with pytest.raises(Refused) as refusal:
        TestMember(harness, "k").join()
    assert refusal.value.error is Error.GROUP_ID_NOT_FOUND


def add_user_data(harness: GroupHarness, client: ClassicClient) -> None:
    """As if the leader of the group had assigned what it did with something of its assignor's own."""
    group = harness.state.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    member = group.roster.members[client.id]
    member.assignment = member.assignment[:-4] + b"\x00\x00\x00\x04\x00\x00\x00\x01"
    assert decode_assignment(member.assignment).user_data == b"\x00\x00\x00\x01"


def test_members_with_an_assignor_of_their_own_keep_their_group() -> None:
    harness = new_harness()
    add_user_data(harness, joined(harness, assignor="ours"))
    with pytest.raises(Refused) as refusal:
        TestMember(harness, "k").join()
    assert refusal.value.error is Error.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_what_a_client_adds_for_an_assignor_that_all_have_keeps_no_group(assignor: str) -> None:
    harness = new_harness()
    client = joined(harness, assignor=assignor)
    add_user_data(harness, client)
    newcomer = TestMember(harness, "k")
    newcomer.join()
    run(harness, client, newcomer)
    assert sorted(client.numbers + newcomer.numbers) == [0, 1, 2, 3]
    assert len(client.numbers) == 2


def test_an_upgrade_that_can_not_be_written_has_not_happened() -> None:
    harness = new_harness()
    client = joined(harness)
    harness.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    with pytest.raises(Refused):
        TestMember(harness, "k").join()
    assert isinstance(harness.state.groups[GROUP], ClassicGroup)
    assert client.beat() is Error.NONE


def test_a_downgrade_that_can_not_be_written_has_not_happened() -> None:
    harness = new_harness()
    client, newcomer = joined(harness), TestMember(harness, "k")
    newcomer.join()
    harness.fail_next_write(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    assert refused(newcomer.send(member_epoch=-1)) is Error.COORDINATOR_NOT_AVAILABLE
    assert set(group_of(harness).members) == {client.id, "k"}
    newcomer.leave()
    assert isinstance(harness.state.groups[GROUP], ClassicGroup)


# ---------------------------------------------------------------------- classic members of a consumer group


def test_a_classic_member_gives_up_in_one_round_and_is_given_in_another() -> None:
    harness = new_harness()
    client, member = joined(harness), TestMember(harness, "k")
    member.join()
    generation = client.generation
    (answer,) = client.send_join({"t": [0, 1, 2, 3]}).answers
    assert isinstance(answer, JoinGroupResponse)
    assert (answer.generation_id, answer.leader, answer.members) == (generation, "", [])
    (synced,) = client.send_sync().answers
    assert len(decoded(synced.assignment)["t"]) == 2  # type: ignore[attr-defined]
    member.beat()
    assert member.numbers == []
    assert client.beat() is Error.REBALANCE_IN_PROGRESS
    (answer,) = client.send_join(decoded(synced.assignment)).answers  # type: ignore[attr-defined]
    assert isinstance(answer, JoinGroupResponse)
    assert answer.generation_id == generation + 1
    member.beat()
    assert len(member.numbers) == 2


def test_a_classic_member_that_does_not_join_again_in_time_is_removed() -> None:
    harness = new_harness()
    client, member = joined(harness), TestMember(harness, "k")
    member.join()
    for _ in range(4):
        assert client.beat() is Error.REBALANCE_IN_PROGRESS
        harness.advance(5000)
        member.settle()
    assert client.beat() is Error.UNKNOWN_MEMBER_ID
    assert list(group_of(harness).members) == ["k"]


def test_a_classic_member_that_does_not_sync_in_time_is_removed() -> None:
    harness = new_harness()
    client, member = joined(harness), TestMember(harness, "k")
    member.join()
    client.send_join()
    client.generation += 1
    for _ in range(4):
        client.beat()
        harness.advance(5000)
        member.settle()
    assert list(group_of(harness).members) == ["k"]


def test_a_silent_classic_member_is_removed_after_its_own_session_timeout() -> None:
    harness = new_harness()
    client, member = joined(harness), TestMember(harness, "k")
    member.join()
    harness.advance(9999)
    assert client.id in group_of(harness).members
    harness.advance(1)
    assert client.id not in group_of(harness).members


def test_who_the_classic_requests_are_from_is_checked() -> None:
    harness = new_harness()
    TestMember(harness, "k").join()
    client = joined(harness)
    generation, client.generation = client.generation, 99
    assert client.beat() is Error.ILLEGAL_GENERATION
    assert error_of(client.send_sync().answers[0]) is Error.ILLEGAL_GENERATION
    client.id, client.generation = "k", generation
    assert client.beat() is Error.UNKNOWN_MEMBER_ID
    client.id = "nobody"
    assert client.leave() is Error.UNKNOWN_MEMBER_ID


def test_what_classic_members_say_must_make_sense() -> None:
    harness = new_harness()
    TestMember(harness, "k").join()
    client = joined(harness)
    client.session_timeout_ms = 1
    assert error_of(client.send_join().answers[0]) is Error.INVALID_SESSION_TIMEOUT


def test_an_administrator_can_remove_static_members_of_either_protocol() -> None:
    harness = new_harness()
    TestMember(harness, "k", instance_id="i").join()
    client = joined(harness, "j")
    member_id, client.id = client.id, ""
    assert set(group_of(harness).members) == {"k", member_id}
    assert client.leave() is Error.NONE
    client.instance_id = "i"
    assert client.leave() is Error.NONE
    assert group_of(harness).is_empty


def test_a_static_member_may_change_its_protocol() -> None:
    harness = new_harness()
    static, other = TestMember(harness, "k", instance_id="i"), TestMember(harness, "l")
    static.join()
    other.join()
    run(harness, static, other)
    client = joined(harness, "i")
    assert refused(static.send(member_epoch=static.epoch)) is Error.FENCED_INSTANCE_ID
    assert client.numbers == static.numbers
    back = TestMember(harness, "k2", instance_id="i")
    back.join()
    assert back.numbers == static.numbers
    assert client.beat() is Error.FENCED_INSTANCE_ID


def test_the_last_consumer_member_may_be_replaced_by_itself_and_nobody_notices() -> None:
    harness = new_harness()
    static, other = TestMember(harness, "k", instance_id="i"), joined(harness)
    static.join()
    run(harness, static, other)
    before = other.numbers
    client = joined(harness, "i")
    group = harness.state.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert group.state_name == "Stable"
    assert client.numbers == static.numbers
    assert other.beat() is Error.NONE
    assert other.numbers == before
    harness.reload()
    assert [client.beat(), other.beat()] == [Error.NONE] * 2
