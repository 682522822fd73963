"""Partitions that move between whole brokers, and elections that somebody asks for."""

import pytest

from broker.cluster_harness import Cluster
from broker.harness import Harness
from cordwood.errors import Error
from cordwood.ids import TopicName
from cordwood.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsRequestPartition,
    AlterPartitionReassignmentsRequestTopic,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersRequestTopic,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequestTopic,
    ListPartitionReassignmentsResponse,
)


def alter(
    member: Harness, wanted: dict[str, dict[int, list[int] | None]], *, same_number: bool = False
) -> dict[tuple[str, int], int]:
    """The error codes of a request to move partitions."""
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=not same_number,
        topics=[
            AlterPartitionReassignmentsRequestTopic(
                name=name,
                partitions=[
                    AlterPartitionReassignmentsRequestPartition(partition_index=index, replicas=replicas)
                    for index, replicas in partitions.items()
                ],
            )
            for name, partitions in wanted.items()
        ],
    )
    response = member.connect().ask(request, 1, AlterPartitionReassignmentsResponse)
    assert response.error_code == Error.NONE
    assert response.allow_replication_factor_change is not same_number
    assert all(bool(p.error_message) == bool(p.error_code) for t in response.responses for p in t.partitions)
    return {(t.name, p.partition_index): p.error_code for t in response.responses for p in t.partitions}


def moves(member: Harness, *names: tuple[str, list[int]]) -> dict[tuple[str, int], tuple[list[int], ...]]:
    """The moves under way: (replicas, adding, removing)."""
    topics = [ListPartitionReassignmentsRequestTopic(name=name, partition_indexes=indexes) for name, indexes in names]
    request = ListPartitionReassignmentsRequest(topics=topics or None)
    response = member.connect().ask(request, 0, ListPartitionReassignmentsResponse)
    return {
        (t.name, p.partition_index): (p.replicas, p.adding_replicas, p.removing_replicas)
        for t in response.topics
        for p in t.partitions
    }


def replicas_of(member: Harness, name: str, index: int = 0) -> tuple[int, ...]:
    return member.broker.image.topics[TopicName(name)].partitions[index].replicas


def hold(cluster: Cluster, node: int) -> None:
    """A broker gets nothing from the others, and lives."""
    for other in cluster.members:
        if other != node:
            cluster.cut(node, other)


def test_a_partition_moves_with_its_records() -> None:
    cluster = Cluster(3)
    cluster.topic("t", [1])
    cluster[1].append("t", b"a", b"b")
    assert alter(cluster[2], {"t": {0: [3]}}) == {("t", 0): 0}
    cluster.advance(3000)
    assert moves(cluster[1]) == {}
    assert replicas_of(cluster[1], "t") == (3,)
    assert cluster.leader("t") is cluster[3]
    assert cluster[3].log("t").end_offset == 2
    assert TopicName("t") not in cluster[1].broker.replicas.by_name


def test_a_move_under_way_is_listed_and_can_be_called_off() -> None:
    cluster = Cluster(3)
    cluster.topic("t", [1, 2], [2, 1])
    hold(cluster, 3)
    assert alter(cluster[2], {"t": {0: [1, 3]}}) == {("t", 0): 0}
    under_way = {("t", 0): ([1, 3, 2], [3], [2])}
    for member in (cluster[1], cluster[2]):
        assert moves(member) == under_way
        assert moves(member, ("t", [0, 1, 9]), ("u", [0])) == under_way
        assert moves(member, ("t", [1])) == {}
    assert alter(cluster[2], {"t": {0: None, 1: None}}) == {("t", 0): 0, ("t", 1): Error.NO_REASSIGNMENT_IN_PROGRESS}
    assert moves(cluster[1]) == {}
    assert replicas_of(cluster[1], "t") == (1, 2)
    assert cluster.isr("t") == [1, 2]


def test_a_move_goes_on_when_the_controller_and_the_leader_die() -> None:
    cluster = Cluster(4)
    cluster.topic("t", [1, 2])
    cluster[1].append("t", b"a")
    hold(cluster, 4)
    alter(cluster[2], {"t": {0: [4, 3]}})
    cluster[1].kill()
    cluster.heal()
    cluster.advance(60_000)
    assert replicas_of(cluster[2], "t") == (4, 3)
    assert cluster.leader("t") in (cluster[3], cluster[4])
    assert cluster[3].log("t").end_offset == cluster[4].log("t").end_offset == 1


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"u": {0: [1]}}, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ({"t": {5: [1]}}, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ({"t": {-1: [1]}}, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ({"t": {0: []}}, Error.INVALID_REPLICA_ASSIGNMENT),
        ({"t": {0: [1, 1]}}, Error.INVALID_REPLICA_ASSIGNMENT),
        ({"t": {0: [1, 7]}}, Error.INVALID_REPLICA_ASSIGNMENT),
        ({"t": {0: [-1]}}, Error.INVALID_REPLICA_ASSIGNMENT),
        ({"t": {0: None}}, Error.NO_REASSIGNMENT_IN_PROGRESS),
        ({"t": {0: [2, 1]}}, Error.NONE),
        ({"t": {0: [1, 2]}}, Error.NONE),  # it is there already
    ],
)
def test_moves_that_can_be(wanted: dict[str, dict[int, list[int] | None]], error: Error) -> None:
    cluster = Cluster(2)
    cluster.topic("t", [1, 2])
    (code,) = alter(cluster[2], wanted).values()
    assert code == error


def test_the_number_of_replicas_may_have_to_stay() -> None:
    cluster = Cluster(3)
    cluster.topic("t", [1, 2], [1, 2])
    codes = alter(cluster[1], {"t": {0: [1], 1: [1, 3]}}, same_number=True)
    assert codes == {("t", 0): Error.INVALID_REPLICATION_FACTOR, ("t", 1): 0}


def test_many_partitions_move_at_once() -> None:
    cluster = Cluster(3)
    cluster.topic("t", *[[1, 2]] * 210)
    codes = alter(cluster[3], {"t": {index: [1, 3] for index in range(210)}})
    assert set(codes.values()) == {Error.NONE}
    cluster.advance(2000)
    assert moves(cluster[3]) == {}
    image = cluster[3].broker.image
    assert {p.replicas for p in image.topics[TopicName("t")].partitions} == {(1, 3)}
    assert {tuple(sorted(p.isr)) for p in image.topics[TopicName("t")].partitions} == {(1, 3)}


def test_a_broker_on_its_own_has_nowhere_to_move_to() -> None:
    harness = Harness()
    harness.topic("t")
    assert alter(harness, {"t": {0: [1]}}) == {("t", 0): 0}
    assert alter(harness, {"t": {0: [2]}}) == {("t", 0): Error.INVALID_REPLICA_ASSIGNMENT}
    assert moves(harness) == {}


# ---------------------------------------------------------------------- elections


def elect(
    member: Harness, kind: int, names: list[tuple[str, list[int]]] | None, version: int = 2
) -> tuple[int, dict[tuple[str, int], int]]:
    topics = None if names is None else [ElectLeadersRequestTopic(topic=name, partitions=p) for name, p in names]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=topics)
    response = member.connect().ask(request, version, ElectLeadersResponse)
    results = [(t.topic, p) for t in response.replica_election_results for p in t.partition_result]
    assert all(bool(p.error_message) == bool(p.error_code) for _, p in results)
    return response.error_code, {(name, p.partition_id): p.error_code for name, p in results}


def led_by_others(node: int) -> Cluster:
    """A broker has come back and leads nothing of what it should."""
    cluster = Cluster(3)
    cluster.topic("t", [node, 3], [3, node], [node, 3])
    cluster[node].kill()
    cluster[node].start()
    cluster.advance(3000)
    assert cluster.leader("t", 0) is cluster[3]
    assert cluster.isr("t") == sorted([node, 3])
    return cluster


def test_preferred_leaders_are_elected_by_any_broker() -> None:
    cluster = led_by_others(2)
    assert elect(cluster[3], 0, [("t", [0, 1, 5]), ("u", [0])]) == (
        0,
        {
            ("t", 0): Error.NONE,
            ("t", 1): Error.ELECTION_NOT_NEEDED,
            ("t", 5): Error.UNKNOWN_TOPIC_OR_PARTITION,
            ("u", 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
        },
    )
    assert [cluster.leader("t", index).node for index in range(3)] == [2, 3, 3]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_all_preferred_leaders_at_once(version: int) -> None:
    cluster = led_by_others(2)
    assert elect(cluster[1], 0, None, version) == (0, {("t", 0): 0, ("t", 2): 0})
    assert [cluster.leader("t", index).node for index in range(3)] == [2, 3, 2]
    assert elect(cluster[1], 0, None, version) == (0, {})


def test_a_preferred_leader_that_is_not_there_is_not_elected() -> None:
    cluster = Cluster(2)
    cluster.topic("t", [2, 1])
    cluster[2].kill()
    assert elect(cluster[1], 0, None) == (0, {("t", 0): Error.PREFERRED_LEADER_NOT_AVAILABLE})


def without_leader() -> Cluster:
    cluster = Cluster(2)
    cluster.topic("t", [2, 1])
    cluster[1].kill()
    cluster[2].append("t", b"lost")
    cluster[2].kill()
    cluster[2].end_session()
    cluster[1].start()
    cluster.advance(3000)
    return cluster


def test_an_unclean_election_is_a_persons_decision() -> None:
    cluster = without_leader()
    image = cluster[1].broker.image
    assert image.topics[TopicName("t")].partitions[0].leader == -1
    assert elect(cluster[1], 0, None) == (0, {("t", 0): Error.PREFERRED_LEADER_NOT_AVAILABLE})
    assert elect(cluster[1], 1, [("t", [0])]) == (0, {("t", 0): Error.NONE})
    assert cluster.leader("t") is cluster[1]
    assert elect(cluster[1], 1, [("t", [0])]) == (0, {("t", 0): Error.ELECTION_NOT_NEEDED})
    assert cluster[1].log("t").end_offset == 0


def test_an_election_of_no_known_kind() -> None:
    cluster = Cluster(1)
    cluster.topic("t", [1])
    assert elect(cluster[1], 7, [("t", [0])]) == (Error.INVALID_REQUEST, {("t", 0): Error.INVALID_REQUEST})


def test_a_broker_on_its_own_has_nothing_to_elect() -> None:
    harness = Harness()
    harness.topic("t")
    assert elect(harness, 0, None) == (0, {})
    assert elect(harness, 1, [("t", [0])]) == (0, {("t", 0): Error.ELECTION_NOT_NEEDED})


def test_the_last_word_about_a_partition_counts() -> None:
    cluster = Cluster(2)
    cluster.topic("t", [1])
    topic = AlterPartitionReassignmentsRequestTopic(
        name="t",
        partitions=[
            AlterPartitionReassignmentsRequestPartition(partition_index=0, replicas=[9]),
            AlterPartitionReassignmentsRequestPartition(partition_index=0, replicas=[1, 2]),
        ],
    )
    request = AlterPartitionReassignmentsRequest(topics=[topic, topic])
    response = cluster[1].connect().ask(request, 0, AlterPartitionReassignmentsResponse)
    assert [[p.error_code for p in t.partitions] for t in response.responses] == [[0]]
