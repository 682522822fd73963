"""Planners: a wish becomes store operations, or a refusal with Kafka's code."""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cordwood.cluster import layout
from cordwood.cluster.controller import (
    PARTITIONS_MAX,
    add_partitions,
    check_assignment,
    create_topic,
    delete_topics,
    new_uuid,
    plan_partitions,
    plan_topic,
    set_config,
    take_producer_ids,
)
from cordwood.cluster.image import MetadataImage, TopicInfo
from cordwood.cluster.layout import broker_config_path, uuid_text
from cordwood.cluster.registration import Applicant, standalone_nodes
from cordwood.errors import Error, Refused
from cordwood.ids import NodeId, TopicName
from cordwood.ports import Create, Delete, Set, StoreOp
from cordwood.sim.store import SimStore

THREE = [NodeId(1), NodeId(2), NodeId(3)]


class Cluster:
    """A store and the image of it."""

    def __init__(self, brokers: Sequence[NodeId] = THREE) -> None:
        self.brokers = brokers
        self.store = SimStore()
        self.image = MetadataImage()
        self.random = Random(1)
        for node in brokers:
            self.image.apply(standalone_nodes(Applicant(node, {"L": ("PLAINTEXT", "h", node)}, UUID(int=node))))

    def lose(self, *nodes: NodeId) -> None:
        self.image.apply([], [layout.broker_path(node) for node in nodes])

    def do(self, operations: Sequence[StoreOp]) -> None:
        self.image.apply(*self.store.multi(operations))
        self.image.check()

    def create(
        self,
        name: str,
        partitions: int = 1,
        replicas: int = 1,
        manual: Mapping[int, Sequence[int]] | None = None,
        config: Mapping[str, str] | None = None,
    ) -> TopicInfo:
        plan = plan_topic(
            self.image,
            self.random,
            name=name,
            partitions=partitions,
            replicas=replicas,
            manual=manual or {},
            config=config or {},
        )
        self.do(create_topic(self.image, plan))
        topic = self.image.topics[TopicName(name)]
        assert topic.id == plan.id
        return topic

    def grow(self, topic: TopicInfo, count: int, manual: Sequence[Sequence[int]] | None = None) -> None:
        self.do(add_partitions(self.image, topic, plan_partitions(self.image, topic, count=count, manual=manual)))


def refused(attempt: object) -> Error:
    assert callable(attempt)
    with pytest.raises(Refused) as refusal:
        attempt()
    assert refusal.value.message
    return refusal.value.error


# ---------------------------------------------------------------------- new topics


def test_a_new_topic_is_led_by_its_first_replicas() -> None:
    topic = Cluster().create("t", partitions=4, replicas=2, config={"retention.ms": "5"})
    assert topic.config == {"retention.ms": "5"}
    for partition in topic.partitions:
        assert partition.leader == partition.replicas[0]
        assert partition.isr == partition.replicas
        assert partition.leader_epoch == 0


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        ({"name": "old"}, Error.TOPIC_ALREADY_EXISTS),
        ({"name": "o_n"}, Error.INVALID_TOPIC),
        ({"name": "a b"}, Error.INVALID_TOPIC),
        ({"name": "t", "partitions": 0}, Error.INVALID_PARTITIONS),
        ({"name": "t", "partitions": PARTITIONS_MAX + 1}, Error.INVALID_PARTITIONS),
        ({"name": "t", "replicas": 0}, Error.INVALID_REPLICATION_FACTOR),
        ({"name": "t", "replicas": 4}, Error.INVALID_REPLICATION_FACTOR),
        ({"name": "t", "partitions": 1, "replicas": -1, "manual": {0: [1]}}, Error.INVALID_REQUEST),
        ({"name": "t", "partitions": -1, "replicas": 1, "manual": {0: [1]}}, Error.INVALID_REQUEST),
    ],
)
def test_wishes_that_can_not_be_fulfilled(wish: dict[str, object], error: Error) -> None:
    cluster = Cluster()
    cluster.create("old")
    cluster.create("o.n")
    assert refused(lambda: cluster.create(**wish)) == error  # type: ignore[arg-type]


def test_without_brokers_no_topic_can_be() -> None:
    assert refused(lambda: Cluster([]).create("t")) == Error.INVALID_REPLICATION_FACTOR


def test_an_assignment_by_hand_is_taken_as_it_is() -> None:
    topic = Cluster().create("t", -1, -1, {1: [3, 2], 0: [2, 1]})
    assert [p.replicas for p in topic.partitions] == [(2, 1), (3, 2)]


@pytest.mark.parametrize(
    "manual",
    [
        {0: [1], 1: [1, 2]},  # not the same number everywhere
        {0: [1, 1]},
        {0: [9]},
        {0: []},
        {1: [1]},
        {0: [1], 2: [1]},
    ],
)
def test_an_assignment_by_hand_must_make_sense(manual: dict[int, list[int]]) -> None:
    assert refused(lambda: check_assignment(manual, Cluster().image, first=0)) == Error.INVALID_REPLICA_ASSIGNMENT


def test_an_id_never_looks_like_an_option() -> None:
    dash = 0xF8 << 120  # its text begins with '-'
    drawn = iter([dash, 5])

    class Loaded:
        def getrandbits(self, k: int, /) -> int:
            return next(drawn)

    assert uuid_text(UUID(int=dash, version=4)).startswith("-")
    assert new_uuid(Loaded()) == UUID(int=5, version=4)


# ---------------------------------------------------------------------- growth


@given(st.integers(1, 6), st.integers(1, 12), st.integers(1, 12), st.data())
def test_a_grown_topic_is_as_balanced_as_a_new_one(nodes: int, before: int, added: int, data: st.DataObject) -> None:
    cluster = Cluster([NodeId(node) for node in range(nodes)])
    cluster.random = Random(data.draw(st.integers(0, 99)))
    topic = cluster.create("t", before, data.draw(st.integers(1, nodes)))
    kept = [p.replicas for p in topic.partitions]
    cluster.grow(topic, before + added)
    assert [p.replicas for p in topic.partitions][:before] == kept
    assert len(topic.partitions) == before + added
    leaders = Counter(p.leader for p in topic.partitions)
    shares = [leaders[node] for node in cluster.brokers]
    assert max(shares) - min(shares) <= 1
    assert {len(p.replicas) for p in topic.partitions} == {len(kept[0])}


def test_a_topic_grows_although_its_first_broker_is_gone() -> None:
    cluster = Cluster()
    topic = cluster.create("t", -1, -1, {0: [3]})
    cluster.lose(NodeId(3))
    cluster.grow(topic, 3)
    assert {p.leader for p in topic.partitions[1:]} == {1, 2}


def test_growth_by_hand() -> None:
    cluster = Cluster()
    topic = cluster.create("t", 1, 2)
    cluster.grow(topic, 3, [[3, 1], [2, 3]])
    assert [p.replicas for p in topic.partitions[1:]] == [(3, 1), (2, 3)]


@pytest.mark.parametrize(
    ("count", "manual", "error"),
    [
        (1, None, Error.INVALID_PARTITIONS),
        (2, None, Error.INVALID_PARTITIONS),
        (PARTITIONS_MAX + 1, None, Error.INVALID_PARTITIONS),
        (3, [], Error.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1, 2], [1, 2]], Error.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1]], Error.INVALID_REPLICA_ASSIGNMENT),  # the topic has two replicas of each
        (3, [[1, 2, 3]], Error.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1, 9]], Error.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_growth_that_can_not_be(count: int, manual: list[list[int]] | None, error: Error) -> None:
    cluster = Cluster()
    topic = cluster.create("t", 2, 2)
    assert refused(lambda: cluster.grow(topic, count, manual)) == error


def test_a_topic_does_not_grow_with_fewer_replicas() -> None:
    cluster = Cluster()
    topic = cluster.create("t", 2, 3)
    cluster.image.apply([], [layout.incarnation_path(NodeId(3)), layout.broker_path(NodeId(3))])
    assert refused(lambda: cluster.grow(topic, 3)) == Error.INVALID_REPLICATION_FACTOR


# ---------------------------------------------------------------------- the end of a topic, settings, ids


def test_a_topic_whose_settings_somebody_has_deleted_can_be_deleted() -> None:
    cluster = Cluster()
    cluster.create("t")
    cluster.do([Delete(layout.topic_config_path(TopicName("t")))])
    cluster.do(delete_topics(cluster.image, list(cluster.image.topics.values())))
    assert cluster.image.topics == {}


def test_a_deleted_topic_leaves_nothing_but_its_mark() -> None:
    cluster = Cluster()
    before = list(cluster.store.load())
    topic = cluster.create("t", 3, config={"retention.ms": "5"})
    cluster.do(delete_topics(cluster.image, [topic]))
    assert cluster.image.topics == {}
    assert cluster.image.deleted_topics == {topic.id: ("t", (1, 2, 3))}
    assert [n.path for n in cluster.store.load()] == [f"/admin/deleted_topics/{uuid_text(topic.id)}", *before]


def test_settings_are_created_once_and_then_replaced() -> None:
    cluster = Cluster()
    path = broker_config_path("1")
    first = set_config(cluster.image, path, {"a": "1"})
    assert isinstance(first[0], Create)
    cluster.do(first)
    second = set_config(cluster.image, path, {"b": "2"})
    assert isinstance(second[0], Set)
    assert second[0].version == 0
    cluster.do(second)
    assert cluster.image.broker_configs == {"1": {"b": "2"}}


def test_blocks_of_producer_ids_follow_each_other() -> None:
    cluster = Cluster()
    firsts = []
    for _ in range(3):
        first, operations = take_producer_ids(cluster.image, NodeId(1))
        firsts.append(first)
        cluster.do(operations)
    assert firsts == [0, 1000, 2000]
