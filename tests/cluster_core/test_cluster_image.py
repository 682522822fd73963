"""The image: what the store's nodes say, whatever the order in which it came to say it."""

from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cordwood.cluster import layout
from cordwood.cluster.controller import (
    add_partitions,
    create_topic,
    delete_topics,
    forget_topic,
    plan_partitions,
    plan_topic,
    set_config,
    take_producer_ids,
)
from cordwood.cluster.image import NO_LEADER, MetadataImage
from cordwood.cluster.layout import Assignment
from cordwood.cluster.registration import Applicant, standalone_nodes
from cordwood.errors import Refused
from cordwood.ids import NodeId, TopicId, TopicName
from cordwood.ports import Node, StoreOp
from cordwood.sim.store import SimStore

ONE = NodeId(1)
T = TopicName("t")
ALONE = standalone_nodes(Applicant(ONE, {"L": ("PLAINTEXT", "h", 1)}, UUID(int=1)))
ID, OTHER = TopicId(UUID(int=1)), TopicId(UUID(int=2))


def node(path: str, data: bytes = b"") -> Node:
    return Node(path, data, 0)


def topic_node(topic_id: TopicId = ID, partitions: int = 1) -> Node:
    return node(layout.topic_path(T), layout.topic_data(topic_id, [Assignment((ONE,))] * partitions))


def state_node(index: int = 0, leader: NodeId = ONE, epoch: int = 0) -> Node:
    data = layout.partition_data(leader=leader, leader_epoch=epoch, isr=[leader], controller_epoch=0)
    return node(layout.partition_path(T, index), data)


def config_node(**config: str) -> Node:
    return node(layout.topic_config_path(T), layout.config_data(config))


def test_a_topic_is_known_by_name_and_by_id() -> None:
    image = MetadataImage()
    delta = image.apply([topic_node(partitions=2), state_node(1, epoch=3)])
    image.check()
    assert list(delta.topics) == [T]
    assert image.topic_by_id(ID) is image.topics[T]
    assert image.topic_by_id(OTHER) is None
    assert [(p.leader, p.leader_epoch) for p in image.topics[T].partitions] == [(NO_LEADER, -1), (1, 3)]


def test_settings_may_be_read_before_their_topic() -> None:
    image = MetadataImage()
    image.apply([config_node(a="1"), topic_node()])
    assert image.topics[T].config == {"a": "1"}


def test_settings_of_no_topic_go_again() -> None:
    image = MetadataImage()
    image.apply([config_node(a="1")])
    image.apply([], [layout.topic_config_path(T)])
    image.apply([topic_node()])
    assert image.topics[T].config == {}


def test_a_topic_that_changed_its_id_is_another_topic() -> None:
    image = MetadataImage()
    image.apply([topic_node(), config_node(a="1")])
    image.apply([topic_node(OTHER, partitions=2)])
    image.check()
    assert image.topic_names == {OTHER: T}
    assert image.topics[T].config == {}


def test_partitions_may_move() -> None:
    image = MetadataImage()
    image.apply([topic_node(), state_node()])
    image.apply([node(layout.topic_path(T), layout.topic_data(ID, [Assignment((ONE, NodeId(2)))]))])
    assert image.topics[T].partitions[0].replicas == (1, 2)
    assert image.topics[T].partitions[0].leader == 1


def test_what_a_change_touched_is_told() -> None:
    image = MetadataImage()
    image.apply([topic_node(), state_node()])
    assert list(image.apply([config_node(a="1")]).topics) == [T]
    assert list(image.apply([state_node(epoch=1)]).topics) == [T]
    path = layout.broker_config_path("1")
    delta = image.apply([node(path, layout.config_data({"x": "1"}))])
    assert (list(delta.topics), list(delta.broker_configs)) == ([], ["1"])
    assert list(image.apply([], [path]).broker_configs) == ["1"]
    assert image.broker_configs == {}
    assert list(image.apply([], [layout.topic_config_path(T)]).topics) == [T]
    assert list(image.apply([], [layout.topic_path(T)]).topics) == [T]


def test_what_changed_of_a_partition_alone_is_told_with_its_number() -> None:
    image = MetadataImage()
    assert image.apply([topic_node(partitions=3)]).topics == {T: None}
    assert image.apply([state_node(0), state_node(2)]).topics == {T: {0: None, 2: None}}
    assert image.apply([state_node(0), config_node(a="1"), state_node(1)]).topics == {T: None}


def test_a_partitions_state_may_be_read_before_its_topic() -> None:
    image = MetadataImage()
    image.apply([state_node(1, epoch=4)])
    image.check()
    assert image.topics == {}
    image.apply([topic_node(partitions=2)])
    assert [p.leader_epoch for p in image.topics[T].partitions] == [-1, 4]


def test_the_state_of_a_topic_that_never_comes_is_forgotten_with_it() -> None:
    image = MetadataImage()
    image.apply([topic_node(), state_node(0), state_node(5, epoch=9)])
    image.apply([], [layout.topic_path(T)])
    assert layout.partition_path(T, 5) not in image.versions
    image.apply([topic_node(OTHER, partitions=6)])
    assert image.topics[T].partitions[5].leader_epoch == -1


def test_brokers_come_and_go() -> None:
    image = MetadataImage()
    path = layout.broker_path(ONE)
    data = layout.broker_data({"A": ("PLAINTEXT", "h", 1), "B": ("SSL", "::1", 2)}, "r", shutting_down=True)
    delta = image.apply([node(path, data)])
    assert list(delta.brokers) == [ONE]
    assert image.brokers[ONE].endpoints == {"A": ("h", 1), "B": ("::1", 2)}
    assert (image.brokers[ONE].rack, image.brokers[ONE].shutting_down) == ("r", True)
    assert list(image.apply([], [path]).brokers) == [ONE]
    assert image.brokers == {}


def test_everything_anew_tells_of_what_is_gone_too() -> None:
    image = MetadataImage()
    image.apply([*ALONE, topic_node(), state_node(), config_node(a="1"), node(layout.CONTROLLER_EPOCH, b"7")])
    delta = image.replace([node(layout.CONTROLLER_EPOCH, b"8")])
    assert (delta.topics, list(delta.brokers), delta.controller, delta.reloaded) == ({T: None}, [ONE], True, True)
    assert (image.topics, image.brokers, image.controller, image.controller_epoch) == ({}, {}, None, 8)
    assert list(image.versions) == [layout.CONTROLLER_EPOCH]


def test_deleting_what_is_not_there_is_no_trouble() -> None:
    image = MetadataImage()
    image.apply(
        [],
        [layout.topic_path(T), layout.broker_config_path("1"), layout.deleted_topic_path(ID), "/something/else"],
    )
    image.check()


def test_nodes_of_a_later_version_are_left_alone() -> None:
    image = MetadataImage()
    image.apply([node("/brokers"), node("/brokers/topics"), node("/feature/of/the/future", b"?")])
    image.check()
    assert image.topics == {}


@pytest.mark.parametrize(
    "damage",
    [
        lambda image: image.topics[T].partitions.reverse(),
        lambda image: image.topic_names.clear(),
        lambda image: setattr(image.topics[T].partitions[0], "leader", NodeId(9)),
        lambda image: setattr(image.topics[T].partitions[0], "replicas", (ONE, ONE)),
    ],
)
def test_check_sees_what_must_not_be(damage: object) -> None:
    image = MetadataImage()
    image.apply([topic_node(partitions=2), state_node(0), state_node(1)])
    image.check()
    assert callable(damage)
    damage(image)
    with pytest.raises(AssertionError):
        image.check()


names = st.sampled_from(["a", "b", "c.d", "c_d"]).map(TopicName)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("create"), names, st.integers(1, 4)),
        st.tuples(st.just("delete"), names, st.just(0)),
        st.tuples(st.just("grow"), names, st.integers(1, 3)),
        st.tuples(st.just("config"), names, st.integers(0, 2)),
        st.tuples(st.just("forget"), names, st.just(0)),
        st.tuples(st.just("ids"), names, st.just(0)),
        st.tuples(st.just("broker"), names, st.integers(0, 2)),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_an_image_read_anew_is_the_image_that_changed_step_by_step(
    changes: list[tuple[str, TopicName, int]],
) -> None:
    store, image, random = SimStore(), MetadataImage(), Random(1)
    image.apply(ALONE)
    for kind, name, number in changes:
        operations = _operations(image, random, kind, name, number)
        if operations:
            image.apply(*store.multi(operations))
            image.check()
    nodes = [*store.load(), *ALONE]
    again = MetadataImage()
    again.apply(nodes)
    assert vars(again) == vars(image)
    Random(2).shuffle(nodes)
    image.replace(nodes)
    assert vars(again) == vars(image)


def _operations(image: MetadataImage, random: Random, kind: str, name: TopicName, number: int) -> list[StoreOp]:
    topic = image.topics.get(name)
    if kind == "create" and topic is None:
        try:
            plan = plan_topic(image, random, name=name, partitions=number, replicas=1, manual={}, config={})
        except Refused:  # a name that collides
            return []
        return create_topic(image, plan)
    if kind == "ids":
        return take_producer_ids(image, ONE)[1]
    if kind == "broker":
        return set_config(image, layout.broker_config_path(str(number)), {"x": name})
    if kind == "forget" and image.deleted_topics:
        return forget_topic(image, min(image.deleted_topics), ONE)
    if topic is None:
        return []
    if kind == "delete":
        return delete_topics(image, [topic])
    if kind == "grow":
        count = len(topic.partitions) + number
        return add_partitions(image, topic, plan_partitions(image, topic, count=count, manual=None))
    if kind == "config":
        return set_config(image, layout.topic_config_path(name), {"x": "1"} if number else {})
    return []


@pytest.mark.parametrize("path", [layout.topic_path(T), layout.partition_path(T, 0), layout.topic_config_path(T)])
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"partitions":{"0":[1,1]},"topic_id":7}', b"\xff\xfe"])
def test_a_node_that_makes_no_sense_is_left_out(path: str, data: bytes) -> None:
    image = MetadataImage()
    image.apply([topic_node(), state_node(), config_node(a="1")])
    before = image.topics[T].id, image.topics[T].partitions[0].leader, image.topics[T].config
    assert image.apply([node(path, data)]).damaged == [path]
    assert (image.topics[T].id, image.topics[T].partitions[0].leader, image.topics[T].config) == before
    image.check()


@pytest.mark.parametrize(
    "path", ["/brokers/ids/seven", "/brokers/incarnations/x", "/admin/deleted_topics/é", "/config/groups/%zz"]
)
def test_a_node_whose_name_makes_no_sense_may_go_again(path: str) -> None:
    image = MetadataImage()
    image.apply([node(path, b"?")])
    image.apply([], [path])
    image.apply([node(path, b"?")])
    image.replace([topic_node()])
    image.check()
    assert (list(image.topics), image.damaged) == ([T], {})


@pytest.mark.parametrize("path", [layout.topic_path(T), layout.partition_path(T, 0), layout.topic_config_path(T)])
def test_a_node_that_makes_no_sense_is_not_taken_for_gone_when_everything_is_read_anew(path: str) -> None:
    """A topic that is gone loses its files, and a partition without a state is given another one."""
    image = MetadataImage()
    nodes = [topic_node(), state_node(epoch=7), config_node(a="1")]
    image.apply(nodes)
    delta = image.replace([each if each.path != path else node(path, b"?") for each in nodes])
    image.check()
    assert (delta.damaged, list(image.damaged)) == ([path], [path])
    assert (image.topics[T].id, image.topics[T].config) == (ID, {"a": "1"})
    assert (image.topics[T].partitions[0].leader, image.topics[T].partitions[0].leader_epoch) == (ONE, 7)
    image.replace(nodes)
    assert image.damaged == {}
    image.replace([])
    assert image.topics == {}


def test_a_state_that_makes_no_sense_does_no_harm_to_those_that_came_with_it() -> None:
    image = MetadataImage()
    wrong = node(layout.partition_path(T, 0), b"?")
    assert image.apply([wrong, state_node(1, epoch=3), topic_node(partitions=2)]).damaged == [wrong.path]
    assert [p.leader_epoch for p in image.topics[T].partitions] == [-1, 3]
    image.apply([], [layout.topic_path(T)])
    assert (image.damaged, image.versions) == ({}, {})
