"""What brokers of a cluster tell their clients: who is there, who leads, where groups are."""

from collections.abc import Sequence

import pytest

from broker.cluster_harness import Cluster, Member
from broker.harness import Client
from cordwood.broker.doubts import DEPARTED_MS, DOUBT_MS
from cordwood.cluster.layout import partition_data, partition_path
from cordwood.errors import Error
from cordwood.ids import NodeId, TopicName
from cordwood.ports import MetadataChange, Set, StoreOp
from cordwood.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsRequestTopic,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsRequestAssignment,
    CreateTopicsRequestTopic,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsRequestResource,
    DescribeConfigsResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)


def metadata(member: Member, *names: str, version: int = 12) -> MetadataResponse:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return member.connect().ask(MetadataRequest(topics=topics), version, MetadataResponse)


def described(member: Member, name: str, version: int = 12) -> list[MetadataResponsePartition]:
    return metadata(member, name, version=version).topics[0].partitions


def test_every_broker_names_all_of_them_and_the_controller() -> None:
    cluster = Cluster(3)
    for member in cluster.members.values():
        response = metadata(member)
        assert [(b.node_id, b.host, b.port) for b in response.brokers] == [(n, f"10.0.0.{n}", 9092) for n in (1, 2, 3)]
        assert response.controller_id == 1
        cluster_response = member.connect().ask(DescribeClusterRequest(), 1, DescribeClusterResponse)
        assert [b.broker_id for b in cluster_response.brokers] == [1, 2, 3]
        assert cluster_response.controller_id == 1


def test_racks_are_told_and_replicas_spread_over_them() -> None:
    cluster = Cluster(0)
    for node, rack in ((1, "a"), (2, "a"), (3, "b")):
        cluster.members[node] = Member(cluster, node, broker_rack=rack)
        cluster.run()
    assert [b.rack for b in metadata(cluster[1]).brokers] == ["a", "a", "b"]
    topic = CreateTopicsRequestTopic(name="t", num_partitions=6, replication_factor=2)
    cluster[1].connect().ask(CreateTopicsRequest(topics=[topic]), 7, CreateTopicsResponse)
    assert all(3 in p.replica_nodes for p in described(cluster[2], "t"))


def test_a_dead_broker_is_named_no_more_and_its_replicas_are_offline() -> None:
    cluster = Cluster(3)
    cluster.topic("t", [3, 1], [2, 3], [3, 2])
    cluster[3].kill()
    cluster.advance(DEPARTED_MS)
    response = metadata(cluster[1], "t")
    assert [b.node_id for b in response.brokers] == [1, 2]
    found = [
        (p.leader_id, p.replica_nodes, p.isr_nodes, p.offline_replicas, p.error_code)
        for p in response.topics[0].partitions
    ]
    assert found == [(1, [3, 1], [1], [3], 0), (2, [2, 3], [2], [3], 0), (2, [3, 2], [2], [3], 0)]
    pages = cluster[1].connect().ask(DescribeTopicPartitionsRequest(), 0, DescribeTopicPartitionsResponse)
    assert [(p.leader_id, p.offline_replicas) for p in pages.topics[0].partitions] == [(1, [3]), (2, [3]), (2, [3])]


def test_a_broker_that_went_is_named_for_a_while_but_leads_nothing() -> None:
    cluster = Cluster(3)
    cluster.topic("t", [3, 1])
    cluster[3].kill()
    response = metadata(cluster[1], "t")
    assert [(b.node_id, b.host) for b in response.brokers] == [(1, "10.0.0.1"), (2, "10.0.0.2"), (3, "10.0.0.3")]
    assert response.topics[0].partitions[0].leader_id == 1
    cluster[3].start()
    cluster.advance(100)
    assert sorted(b.node_id for b in metadata(cluster[1], "t").brokers) == [1, 2, 3]


def test_a_broker_that_is_cut_off_sends_its_clients_to_others() -> None:
    """Told that it leads, a client that knows no other broker would ask and be refused for ever."""
    cluster = Cluster(3)
    cluster.topic("t")
    cluster[1].lose_session()
    assert [b.node_id for b in metadata(cluster[1]).brokers] == [2, 3]
    (partition,) = described(cluster[1], "t")
    assert (partition.leader_id, partition.error_code) == (-1, Error.LEADER_NOT_AVAILABLE)
    cluster[1].regain_session()
    assert [b.node_id for b in metadata(cluster[1]).brokers] == [1, 2, 3]


def test_a_broker_that_knows_no_other_names_itself() -> None:
    cluster = Cluster(1)
    cluster[1].lose_session()
    assert [b.node_id for b in metadata(cluster[1]).brokers] == [1]


def test_who_asks_for_a_leader_that_may_be_dead_waits_for_the_election() -> None:
    cluster = Cluster(3)
    cluster.topic("t", [3, 1])
    cluster.topic("other", [1])
    cluster.deaf |= {cluster[1], cluster[2]}  # nobody can be elected
    cluster[3].kill()
    client = cluster[1].connect()
    client.send(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    assert not client.inbox
    assert metadata(cluster[1], "other").topics[0].partitions[0].leader_id == 1
    state = cluster.store.multi([Set(partition_path(TopicName("t"), 0), layout_state(leader=1, epoch=1), None)])
    cluster.deaf.clear()
    cluster[1].deliver(state)
    assert client.take(MetadataResponse).topics[0].partitions[0].leader_id == 1


def test_without_an_election_the_wait_has_an_end() -> None:
    cluster = Cluster(2)
    cluster.topic("t", [2, 1])
    cluster.deaf.add(cluster[1])
    cluster[2].kill()
    client = cluster[1].connect()
    client.send(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    cluster.advance(DOUBT_MS - 1)
    assert not client.inbox
    cluster.advance(1)
    assert client.take(MetadataResponse).topics[0].partitions[0].leader_id == 2


def layout_state(leader: int, epoch: int) -> bytes:
    node = NodeId(leader)
    return partition_data(leader=node, leader_epoch=epoch, isr=[node], controller_epoch=1)


def test_a_partition_without_a_leader_says_so() -> None:
    cluster = Cluster(2)
    cluster.topic("t", [2])
    cluster[2].kill()
    (partition,) = described(cluster[1], "t")
    assert (partition.error_code, partition.leader_id, partition.isr_nodes) == (Error.LEADER_NOT_AVAILABLE, -1, [2])
    assert partition.leader_epoch == 1


def test_who_is_dead_and_not_replaced_yet_leads_nobody() -> None:
    cluster = Cluster(2)
    cluster.topic("t", [2, 1])
    cluster[2].kill()
    cluster.advance(DOUBT_MS)
    image = cluster[1].broker.image
    partition = image.topics[TopicName("t")].partitions[0]
    partition.leader, partition.isr = cluster[2].node, (cluster[2].node,)
    (told,) = described(cluster[1], "t")
    assert (told.error_code, told.leader_id) == (Error.LEADER_NOT_AVAILABLE, -1)
    partition.leader, partition.isr = cluster[1].node, (cluster[1].node,)


def test_old_clients_hear_only_of_replicas_that_are_there() -> None:
    cluster = Cluster(2)
    cluster.topic("t", [1, 2])
    cluster[2].kill()
    (old,) = described(cluster[1], "t", version=0)
    assert (old.error_code, old.replica_nodes, old.isr_nodes) == (Error.REPLICA_NOT_AVAILABLE, [1], [1])
    (newer,) = described(cluster[1], "t", version=1)
    assert (newer.error_code, newer.replica_nodes) == (Error.NONE, [1, 2])


@pytest.mark.parametrize(("version", "error"), [(5, Error.LEADER_NOT_AVAILABLE), (6, Error.LISTENER_NOT_FOUND)])
def test_a_leader_on_other_listeners_can_not_be_reached(version: int, error: Error) -> None:
    cluster = Cluster(1)
    cluster.members[2] = other = Member(cluster, 2)
    cluster.run()
    cluster.topic("t", [2, 1])
    image = cluster[1].broker.image
    registration = image.brokers[other.node]
    image.brokers[other.node] = type(registration)(other.node, {"INTERNAL": ("h", 1)})
    (partition,) = described(cluster[1], "t", version=version)
    assert (partition.error_code, partition.leader_id) == (error, -1)
    assert [b.node_id for b in metadata(cluster[1]).brokers] == [1]


# ---------------------------------------------------------------------- topics


def create(client: Client, topic: CreateTopicsRequestTopic) -> tuple[int, str | None]:
    response = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7, CreateTopicsResponse)
    return response.topics[0].error_code, response.topics[0].error_message


def test_any_broker_creates_topics_and_all_know_them() -> None:
    cluster = Cluster(3)
    topic = CreateTopicsRequestTopic(name="t", num_partitions=6, replication_factor=3)
    assert create(cluster[2].connect(), topic)[0] == Error.NONE
    cluster.run()
    for member in cluster.members.values():
        partitions = described(member, "t")
        assert sorted(p.leader_id for p in partitions) == [1, 1, 2, 2, 3, 3]
        assert all(sorted(p.replica_nodes) == sorted(p.isr_nodes) == [1, 2, 3] for p in partitions)


def test_a_topic_may_have_a_replica_on_a_broker_that_is_down() -> None:
    cluster = Cluster(3)
    cluster[3].kill()
    topic = CreateTopicsRequestTopic(name="t", num_partitions=4, replication_factor=3)
    assert create(cluster[1].connect(), topic)[0] == Error.NONE
    assert all(p.leader_id in (1, 2) and sorted(p.isr_nodes) == [1, 2] for p in described(cluster[1], "t"))
    cluster[3].start()
    cluster.advance(3000)
    assert all(sorted(p.isr_nodes) == [1, 2, 3] for p in described(cluster[1], "t"))


@pytest.mark.parametrize(
    ("replicas", "assignment", "error"),
    [
        (4, None, Error.INVALID_REPLICATION_FACTOR),
        (-1, [1, 3], Error.NONE),
        (-1, [3], Error.INVALID_REPLICA_ASSIGNMENT),  # it is down
        (-1, [1, 4], Error.INVALID_REPLICA_ASSIGNMENT),  # it never was
        (-1, [1, 1], Error.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_replicas_that_can_be(replicas: int, assignment: list[int] | None, error: Error) -> None:
    cluster = Cluster(3)
    cluster[3].kill()
    assignments = [CreateTopicsRequestAssignment(partition_index=0, broker_ids=assignment)] if assignment else []
    topic = CreateTopicsRequestTopic(
        name="t", num_partitions=-1 if assignment else 1, replication_factor=replicas, assignments=assignments
    )
    code, message = create(cluster[1].connect(), topic)
    assert code == error
    assert bool(message) == (error != Error.NONE)


def test_one_request_may_create_more_than_the_store_takes_at_once() -> None:
    cluster = Cluster(2)
    topics = [CreateTopicsRequestTopic(name=f"t{n}", num_partitions=90, replication_factor=1) for n in range(3)]
    topics.append(CreateTopicsRequestTopic(name="large", num_partitions=250, replication_factor=1))
    client = cluster[1].connect()
    client.send(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
    writes = _count_writes(cluster)
    cluster.run()
    cluster.advance(20)
    response = client.take(CreateTopicsResponse)
    assert [(t.name, t.error_code) for t in response.topics] == [(topic.name, 0) for topic in topics]
    assert max(writes) <= 220
    for name, count in (("t0", 90), ("large", 250)):
        assert [p.leader_id in (1, 2) for p in described(cluster[2], name)] == [True] * count


def _count_writes(cluster: Cluster) -> list[int]:
    """How many operations each later write of the metadata has."""
    sizes: list[int] = [0]
    multi = cluster.store.multi

    def counting(operations: Sequence[StoreOp], /) -> MetadataChange:
        sizes.append(len(operations))
        return multi(operations)

    cluster.store.multi = counting  # type: ignore[method-assign]
    return sizes


def test_topics_grow_over_all_brokers() -> None:
    cluster = Cluster(3)
    cluster.topic("t", [1, 2])
    wanted = CreatePartitionsRequestTopic(name="t", count=7, assignments=None)
    request = CreatePartitionsRequest(topics=[wanted], timeout_ms=1000)
    response = cluster[2].connect().ask(request, 3, CreatePartitionsResponse)
    assert response.results[0].error_code == Error.NONE
    cluster.run()
    leaders = [p.leader_id for p in described(cluster[3], "t")]
    assert {node: leaders.count(node) for node in (1, 2, 3)} == {1: 3, 2: 2, 3: 2}
    assert {len(p.replica_nodes) for p in described(cluster[3], "t")} == {2}


def test_a_deleted_topic_leaves_every_broker_also_one_that_was_down() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    cluster[3].kill()
    client = cluster[2].connect()
    response = client.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5, DeleteTopicsResponse)
    assert response.responses[0].error_code == Error.NONE
    cluster.advance(120_000)
    marks = cluster[1].broker.image.deleted_topics
    assert [mark.replicas for mark in marks.values()] == [(3,)]  # it has yet to hear of it
    assert not any(name.startswith("t-") for name in cluster[1].disk.list(""))
    assert any(name.startswith("t-") for name in cluster[3].disk.list(""))
    cluster[3].start()
    cluster.advance(120_000)
    assert not cluster[1].broker.image.deleted_topics
    assert not any(name.startswith("t-") for name in cluster[3].disk.list(""))


def test_a_new_topic_of_the_same_name_is_another_one_for_whoever_was_down() -> None:
    cluster = Cluster(3)
    cluster.topic("t")
    cluster[1].append("t", b"old")
    cluster[3].kill()
    cluster[2].connect().ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5, DeleteTopicsResponse)
    cluster.run()
    topic = CreateTopicsRequestTopic(name="t", num_partitions=1, replication_factor=3)
    assert create(cluster[1].connect(), topic)[0] == Error.NONE
    cluster[3].start()
    cluster.advance(120_000)
    assert cluster[3].log("t").end_offset == 0
    assert cluster.isr("t") == [1, 2, 3]
    assert not cluster[1].broker.image.deleted_topics


# ---------------------------------------------------------------------- settings, coordinators


def test_a_broker_tells_of_its_own_settings_only() -> None:
    cluster = Cluster(2)
    resources = [DescribeConfigsRequestResource(resource_type=4, resource_name=name) for name in ("1", "2")]
    response = cluster[1].connect().ask(DescribeConfigsRequest(resources=resources), 4, DescribeConfigsResponse)
    assert [result.error_code for result in response.results] == [Error.NONE, Error.INVALID_REQUEST]
    listed = cluster[1].connect().ask(ListConfigResourcesRequest(resource_types=[4]), 1, ListConfigResourcesResponse)
    assert sorted(r.resource_name for r in listed.config_resources) == ["1", "2"]


def coordinator(member: Member, group: str) -> FindCoordinatorResponse:
    client = member.connect()
    client.send(FindCoordinatorRequest(coordinator_keys=[group]), 4)
    member.cluster.run()
    return client.take(FindCoordinatorResponse)


def test_a_group_has_one_coordinator_whoever_is_asked() -> None:
    cluster = Cluster(3)
    answers = {node: coordinator(cluster[node], "g").coordinators[0] for node in (1, 2, 3)}
    assert {answer.error_code for answer in answers.values()} == {Error.NONE}
    assert len({(answer.node_id, answer.host) for answer in answers.values()}) == 1
    first = answers[1]
    assert first.host == f"10.0.0.{first.node_id}"
    cluster[first.node_id].kill()
    cluster.advance(2000)
    survivor = next(node for node in (1, 2, 3) if node != first.node_id)
    other = coordinator(cluster[survivor], "g").coordinators[0]
    assert (other.error_code, other.node_id != first.node_id) == (Error.NONE, True)


def test_groups_wait_for_enough_brokers() -> None:
    cluster = Cluster(2)
    answer = coordinator(cluster[1], "g").coordinators[0]
    assert answer.error_code == Error.COORDINATOR_NOT_AVAILABLE
    assert answer.error_message
    cluster.members[3] = Member(cluster, 3)
    cluster.run()
    assert coordinator(cluster[1], "g").coordinators[0].error_code == Error.NONE
    assert {len(p.replica_nodes) for p in described(cluster[1], "__consumer_offsets")} == {3}
