"""The controller at work: elected, deposed, and what it does about brokers that come and go."""

import pytest

from cluster_core.cluster_rig import Rig
from cluster_core.cluster_topics import create, isr_of, leader_of, partition, set_state, state
from cordwood.broker.controllership import PURGE_INTERVAL_MS, RETRY_MS, UNDER_WAY_MAX
from cordwood.cluster.controller import delete_topics, set_config
from cordwood.cluster.layout import partition_path, topic_config_path
from cordwood.cluster.reassignment import move, write_moves
from cordwood.cluster.states import STATES_MAX, Live, State, write_state
from cordwood.effects import PurgeChanges
from cordwood.errors import StoreConflict
from cordwood.ids import NodeId, TopicName

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)


def test_a_controller_that_dies_is_replaced_by_one_of_the_others() -> None:
    rig = Rig(3)
    rig.kill(1, noticed=True)
    rig.settle()
    assert rig.truth.controller in (2, 3)
    assert rig.truth.controller_epoch == 2


def test_partitions_of_a_dead_broker_are_led_by_others() -> None:
    rig = Rig(3)
    create(rig, "t", {0: [2, 1], 1: [1, 2], 2: [2, 3], 3: [3, 1]})
    rig.kill(2, noticed=True)
    rig.settle()
    assert [state(rig, "t", index) for index in range(4)] == [
        (1, 1, (1,)),
        (1, 0, (1,)),
        (3, 1, (3,)),
        (3, 0, (3, 1)),
    ]


def test_a_dead_process_is_noticed_before_its_session_ends() -> None:
    rig = Rig(3)
    create(rig, "t", {0: [2, 1]})
    rig.kill(2)
    rig.members[THREE].process_is_gone(TWO)
    assert rig.members[THREE].writes == []  # that is the controller's to say
    rig.members[ONE].process_is_gone(TWO)
    rig.settle()
    assert leader_of(rig, "t", 0) == 1


def test_everybody_says_that_the_controller_is_dead_and_it_is_dead_once() -> None:
    rig = Rig(3)
    create(rig, "t", {0: [1, 2]})
    rig.kill(1)
    for member in rig.members.values():
        member.process_is_gone(ONE)
    rig.settle()
    assert rig.truth.controller in (2, 3)
    assert rig.truth.controller_epoch == 2
    assert leader_of(rig, "t", 0) == 2


def test_a_controller_without_a_session_does_nothing() -> None:
    rig = Rig(3)
    create(rig, "t", {0: [2, 1]})
    controller = rig.members[ONE]
    controller.learn_of_loss()
    rig.kill(2, noticed=True)
    controller.deliver()
    assert controller.writes == []
    rig.settle()
    assert rig.truth.controller == 3


def test_what_an_old_controller_writes_late_changes_nothing() -> None:
    rig = Rig(3)
    create(rig, "t", {0: [2, 1, 3]})
    old = rig.members[ONE]
    rig.kill(2, noticed=True)
    old.deliver()
    late = old.writes.pop()
    rig.store.expire(old.session)  # it does not know yet
    rig.members[THREE].deliver()
    rig.members[THREE].write()
    assert rig.truth.controller == 3
    with pytest.raises(StoreConflict):
        rig.store.multi(late.operations, old.session)
    rig.settle()
    assert state(rig, "t", 0) == (3, 1, (3,))  # 1 has no registration any more


def test_a_large_failover_is_written_in_portions_first_where_nobody_leads() -> None:
    rig = Rig(2)
    create(rig, "t", partitions=2 * STATES_MAX + 100, replicas=2)
    led = [p.index for p in rig.topic("t").partitions if p.leader == 2]
    rig.kill(2, noticed=True)
    controller = rig.members[ONE]
    controller.deliver()
    assert len(controller.writes) == UNDER_WAY_MAX
    sizes = []
    while controller.writes:
        sizes.append(sum("/partitions/" in operation.path for operation in controller.writes[0].operations))
        controller.write()
        if len(sizes) == 2:
            assert [index for index in led if leader_of(rig, "t", index) != 1] == []
    assert sizes == [STATES_MAX, STATES_MAX, 100]
    assert all(p.isr == (1,) for p in rig.topic("t").partitions)


def test_a_controller_that_is_deposed_in_the_middle_drops_the_rest() -> None:
    rig = Rig(3)
    create(rig, "t", partitions=5 * STATES_MAX, replicas=3)
    rig.kill(3, noticed=True)
    controller = rig.members[ONE]
    controller.deliver()
    controller.write()
    controller.learn_of_loss()
    while controller.writes:
        controller.write()
    rig.settle()
    assert rig.truth.controller == 2
    assert all(p.leader == 2 and p.isr == (2,) for p in rig.topic("t").partitions)


def test_the_controller_makes_the_states_of_a_large_topic() -> None:
    rig = Rig(3)
    create(rig, "t", partitions=3 * STATES_MAX, replicas=2)
    assert all(p.leader == p.replicas[0] and p.isr == p.replicas for p in rig.topic("t").partitions)


def test_a_partition_that_changes_meanwhile_is_planned_again() -> None:
    rig = Rig(3)
    create(rig, "t", {0: [2, 1, 3], 1: [2, 1, 3]})
    rig.kill(2, noticed=True)
    controller = rig.members[ONE]
    controller.deliver()
    write = write_state(rig.truth, TopicName("t"), 0, State(TWO, 0, (TWO, THREE)))
    rig.store.multi([write], 0)
    rig.settle()
    assert state(rig, "t", 0) == (3, 1, (3,))
    assert state(rig, "t", 1) == (1, 1, (1, 3))


def test_a_controller_that_can_not_write_tries_again() -> None:
    rig = Rig(3)
    create(rig, "t", {0: [2, 1]})
    rig.kill(2, noticed=True)
    controller = rig.members[ONE]
    controller.deliver()
    controller.cut_off = True
    controller.write()
    controller.cut_off = False
    rig.settle()
    assert leader_of(rig, "t", 0) == 2
    rig.pass_time(RETRY_MS)
    rig.settle()
    assert leader_of(rig, "t", 0) == 1


def test_a_controller_that_can_not_write_for_long_says_so_once() -> None:
    rig = Rig(3)
    create(rig, "t", {0: [2, 1]})
    rig.kill(2, noticed=True)
    controller = rig.members[ONE]
    controller.deliver()
    controller.cut_off = True
    for _ in range(5):
        controller.write()
        rig.pass_time(RETRY_MS)
    assert len([line for line in controller.logger.lines if "could not change 1 partition(s)" in line]) == 1
    controller.cut_off = False
    rig.settle()
    assert leader_of(rig, "t", 0) == 1


def test_a_state_that_somebody_has_deleted_keeps_no_other_partition_without_a_leader() -> None:
    """All go into one write, which cannot succeed: nobody tells the brokers of what people delete."""
    rig = Rig(3)
    create(rig, "t", {index: [2, 1] for index in range(20)})
    del rig.store._store._nodes[partition_path(TopicName("t"), 13)]
    rig.kill(2, noticed=True)
    for _ in range(20):
        rig.settle()
        rig.pass_time(RETRY_MS)
    assert [index for index in range(20) if leader_of(rig, "t", index) != 1] == [13]


def test_who_could_not_stand_for_election_stands_again() -> None:
    rig = Rig(2)
    rig.kill(1, noticed=True)
    member = rig.members[TWO]
    member.deliver()
    member.cut_off = True
    member.write()
    member.cut_off = False
    rig.settle()
    assert rig.truth.controller is None
    rig.pass_time(RETRY_MS)
    rig.settle()
    assert rig.truth.controller == 2


def test_nobody_mistakes_a_new_topic_for_the_old_one_of_its_name() -> None:
    rig = Rig(3)
    create(rig, "t", {0: [2, 1]})
    rig.kill(2, noticed=True)
    controller = rig.members[ONE]
    controller.deliver()  # it wants another leader for the old topic
    rig.store.multi(delete_topics(rig.truth, [rig.topic("t")]), 0)
    members, rig.members = rig.members, {}
    create(rig, "t", {0: [3]})
    rig.members = members
    rig.settle()
    assert state(rig, "t", 0) == (3, 0, (3,))


def test_an_unclean_election_waits_for_the_topics_consent() -> None:
    rig = Rig(2)
    create(rig, "t", {0: [2, 1]})
    set_state(rig, "t", 0, leader=2, isr=[2])
    rig.kill(2, noticed=True)
    rig.settle()
    assert state(rig, "t", 0) == (-1, 2, (2,))
    path = topic_config_path(TopicName("t"))
    rig.store.multi(set_config(rig.truth, path, {"unclean.leader.election.enable": "true"}), 0)
    rig.settle()
    assert state(rig, "t", 0) == (1, 3, (1,))


def test_the_whole_cluster_may_consent_to_unclean_elections() -> None:
    rig = Rig(2, unclean_leader_election_enable="true")
    create(rig, "t", {0: [2, 1]})
    set_state(rig, "t", 0, leader=2, isr=[2])
    rig.kill(2, noticed=True)
    rig.settle()
    assert leader_of(rig, "t", 0) == 1


def test_a_broker_that_comes_back_leads_what_waited_for_it() -> None:
    rig = Rig(2)
    create(rig, "t", {0: [2, 1]})
    set_state(rig, "t", 0, leader=2, isr=[2])
    rig.kill(2, noticed=True)
    rig.settle()
    rig.start(2)
    rig.settle()
    assert state(rig, "t", 0) == (2, 3, (2,))


# ---------------------------------------------------------------------- by and by


def test_preferred_leaders_lead_again_after_a_while() -> None:
    rig = Rig(2, leader_imbalance_check_interval_seconds=5)
    create(rig, "t", {0: [2, 1], 1: [2, 1], 2: [1, 2]})
    set_state(rig, "t", 0, leader=1, isr=[1, 2])
    set_state(rig, "t", 1, leader=1, isr=[1])
    rig.pass_time(5000)
    rig.settle()
    assert [state(rig, "t", index) for index in range(3)] == [(2, 2, (1, 2)), (1, 1, (1,)), (1, 0, (1, 2))]


def test_leaders_stay_where_that_is_not_wanted() -> None:
    rig = Rig(2, leader_imbalance_check_interval_seconds=5, auto_leader_rebalance_enable="false")
    create(rig, "t", {0: [2, 1]})
    set_state(rig, "t", 0, leader=1, isr=[1, 2])
    rig.pass_time(5000)
    rig.settle()
    assert leader_of(rig, "t", 0) == 1


def test_only_the_controller_has_old_changes_forgotten() -> None:
    rig = Rig(2)
    purges = {}
    for node, member in rig.members.items():
        member.timers.run_due(type(rig.now)(0, rig.now.mono_ms + 2 * PURGE_INTERVAL_MS))
        purges[node] = [effect for effect in member.effects if isinstance(effect, PurgeChanges)]
    assert bool(purges[ONE])
    assert not purges[TWO]


# ---------------------------------------------------------------------- moves


def begin_move(rig: Rig, name: str, index: int, target: list[int]) -> None:
    image = rig.truth
    topic = rig.topic(name)
    planned = move(topic.partitions[index], target, image.incarnations, Live.of(image))
    assert planned is not None
    rig.store.multi(write_moves(image, topic, {index: planned}), 0)
    rig.settle()


def test_a_move_ends_when_the_new_replicas_have_caught_up() -> None:
    rig = Rig(3)
    create(rig, "t", {0: [1, 2]})
    begin_move(rig, "t", 0, [3, 2])
    assert partition(rig, "t", 0).replicas == (3, 2, 1)
    assert leader_of(rig, "t", 0) == 1
    set_state(rig, "t", 0, leader=1, isr=[1, 2, 3])
    info = partition(rig, "t", 0)
    assert (info.replicas, info.adding, info.removing) == ((3, 2), (), ())
    assert state(rig, "t", 0) == (3, 2, (2, 3))


def test_a_move_ends_although_the_controller_changed() -> None:
    rig = Rig(3)
    create(rig, "t", {0: [2]})
    begin_move(rig, "t", 0, [3])
    rig.kill(1, noticed=True)
    rig.settle()
    set_state(rig, "t", 0, leader=2, isr=[2, 3])
    assert partition(rig, "t", 0).replicas == (3,)
    assert isr_of(rig, "t", 0) == (3,)
    assert leader_of(rig, "t", 0) == 3


def test_many_moves_of_one_topic_end_together() -> None:
    rig = Rig(3)
    create(rig, "t", {index: [1] for index in range(5)})
    for index in range(5):
        begin_move(rig, "t", index, [1, 2])
    members, rig.members = rig.members, {}
    for index in range(5):
        set_state(rig, "t", index, leader=1, isr=[1, 2])
    rig.members = members
    controller = rig.members[ONE]
    controller.deliver()
    controller.deliver()
    rig.settle()
    assert not any(p.moving for p in rig.topic("t").partitions)
    assert all(p.replicas == (1, 2) for p in rig.topic("t").partitions)
