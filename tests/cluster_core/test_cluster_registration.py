"""How a broker becomes one of the cluster: steps, losses, fencing, the end."""

import pytest

from cluster_core.cluster_rig import Rig
from cluster_core.cluster_topics import create, isr_of, leader_of, partition, set_state, set_state_alone, state
from cordwood.broker.membership import HANDOVER_MS_MAX, RETRY_MS_MAX
from cordwood.cluster import layout
from cordwood.cluster.registration import Loss, loss_of, standalone_nodes
from cordwood.cluster.states import change_isr
from cordwood.errors import StoreConflict
from cordwood.ids import NodeId
from cordwood.ports import SessionState, Set, StoreOp

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)


def test_brokers_come_one_by_one_and_one_of_them_is_the_controller() -> None:
    rig = Rig(3)
    assert sorted(rig.truth.brokers) == [1, 2, 3]
    assert rig.truth.controller == 1
    assert rig.truth.controller_epoch == 1
    assert not any(member.membership.fenced for member in rig.members.values())
    assert rig.truth.brokers[TWO].endpoints == {"PLAINTEXT": ("host2", 9092)}
    for node, member in rig.members.items():
        assert member.membership.epoch == rig.truth.broker_epoch(node)


def test_every_life_has_its_epoch() -> None:
    rig = Rig(2)
    epochs = [rig.truth.broker_epoch(TWO)]
    for _ in range(3):
        rig.kill(2, noticed=True)
        rig.start(2)
        rig.settle()
        epochs.append(rig.truth.broker_epoch(TWO))
    assert epochs == sorted(set(epochs))


def test_a_new_process_does_not_wait_for_the_session_of_the_old_one() -> None:
    rig = Rig(2)
    rig.kill(2)
    assert TWO in rig.truth.brokers
    member = rig.start(2)
    rig.settle()
    assert not member.membership.fenced
    assert rig.truth.broker_epoch(TWO) == member.membership.epoch


def test_two_brokers_with_one_number_do_not_chase_each_other() -> None:
    rig = Rig(2)
    first = rig.members[TWO]
    rig.machines[TWO].directory += 1
    second = rig.start(2)
    rig.settle()
    for _ in range(20):
        rig.pass_time(RETRY_MS_MAX)
        rig.settle()
    assert second.membership.fenced
    assert any("cannot register" in line for line in second.logger.lines)
    assert rig.truth.broker_epoch(TWO) == first.membership.epoch
    first.lose_session()
    rig.pass_time(RETRY_MS_MAX)
    rig.settle()
    assert not second.membership.fenced


def test_a_broker_steps_down_from_what_it_led_before() -> None:
    rig = Rig(1)
    create(rig, "t", {0: [1], 1: [1]})
    rig.kill(1)
    rig.start(1)
    rig.settle()
    # Epoch 1: nobody leads, because it has begun another life. Epoch 2: it leads again.
    assert state(rig, "t", 0) == (1, 2, (1,))
    assert state(rig, "t", 1) == (1, 2, (1,))


@pytest.mark.parametrize(
    ("clean", "reboot", "other_disk", "loss"),
    [
        (False, False, False, Loss.NOTHING),  # the page cache has it
        (True, True, False, Loss.NOTHING),
        (False, True, False, Loss.ENDS),
        (True, False, True, Loss.EVERYTHING),
        (False, True, True, Loss.EVERYTHING),
    ],
)
def test_what_may_be_lost(clean: bool, reboot: bool, other_disk: bool, loss: Loss) -> None:
    rig = Rig(2)
    machine = rig.machines[TWO]
    machine.clean = clean
    machine.boot += reboot
    machine.directory += other_disk
    assert loss_of(rig.truth, rig.applicant(TWO)) is loss


def test_nobody_knows_which_run_of_the_machine_it_is() -> None:
    rig = Rig(1)
    applicant = rig.applicant(ONE)
    unknown = type(applicant)(ONE, applicant.endpoints, applicant.directory_id)
    assert loss_of(rig.truth, unknown) is Loss.ENDS


@pytest.mark.parametrize(
    ("reboot", "other_disk", "shared", "alone"),
    [
        (False, False, (1, 2), (2,)),
        (True, False, (1,), (2,)),  # nobody else has it: what there is of it is what there is
        (False, True, (1,), ()),  # nobody has it: a person must say that this is so
    ],
)
def test_a_broker_that_may_have_lost_something_is_in_sync_with_nobody(
    reboot: bool, other_disk: bool, shared: tuple[int, ...], alone: tuple[int, ...]
) -> None:
    rig = Rig(2)
    create(rig, "t", {0: [1, 2], 1: [2, 1], 2: [2, 1]})
    set_state(rig, "t", 2, leader=2, isr=[2])
    rig.kill(2, noticed=True)
    states = {index: state(rig, "t", index) for index in range(3)}
    assert states == {0: (1, 0, (1, 2)), 1: (2, 0, (2, 1)), 2: (2, 1, (2,))}
    rig.machines[TWO].boot += reboot
    rig.machines[TWO].directory += other_disk
    member = rig.start(2)
    controller = rig.members[ONE]
    rig.members = {TWO: member}  # the controller sleeps
    rig.settle()
    rig.members = {ONE: controller, TWO: member}
    assert tuple(sorted(isr_of(rig, "t", 0))) == shared
    assert tuple(sorted(isr_of(rig, "t", 1))) == shared
    assert isr_of(rig, "t", 2) == alone
    assert leader_of(rig, "t", 1) == leader_of(rig, "t", 2) == -1
    rig.settle()
    assert leader_of(rig, "t", 1) == (2 if 2 in shared else 1)
    assert leader_of(rig, "t", 2) == (2 if alone else -1)


def test_a_broker_that_dies_between_the_steps_still_knows_what_it_may_have_lost() -> None:
    rig = Rig(2)
    create(rig, "t", {index: [2, 1] for index in range(900)})
    rig.kill(2)
    rig.machines[TWO].boot += 1
    for writes in range(1, 4):
        member = rig.start(2)
        for _ in range(writes):
            member.write()
        assert any(2 in isr_of(rig, "t", index) for index in range(900))
        rig.kill(2)
    member = rig.start(2)
    rig.settle()
    assert not member.membership.fenced
    assert all(isr_of(rig, "t", index) == (1,) for index in range(900))


def test_what_a_broker_was_given_to_lead_before_it_registered_it_does_not_lead() -> None:
    rig = Rig(2)
    create(rig, "t", {0: [2, 1], 1: [1, 2]})
    rig.kill(2)
    second = rig.start(2)
    second.write()  # it has begun
    second.write()  # and stepped down
    set_state_alone(rig, "t", 1, leader=2, isr=[2, 1])  # somebody takes it for alive
    second.write()
    assert not second.membership.fenced
    assert state(rig, "t", 1) == (2, 1, (2, 1))
    rig.settle()
    assert leader_of(rig, "t", 1) == 1
    assert partition(rig, "t", 1).leader_epoch == 3  # nobody, then the controller's choice


def about_to_join() -> tuple[Rig, list[StoreOp]]:
    """A partition that the first broker leads, and what it writes because the second has caught up."""
    rig = Rig(2)
    create(rig, "t", {0: [1, 2]})
    set_state(rig, "t", 0, leader=1, isr=[1])
    image = rig.members[ONE].image
    topic = image.topics[rig.topic("t").name]
    late = change_isr(image, topic, 0, leader=ONE, joining={TWO: image.broker_epoch(TWO)})
    assert any(isinstance(operation, Set) for operation in late)
    return rig, late


def test_nobody_counts_a_former_life_in_sync() -> None:
    rig, late = about_to_join()
    rig.kill(2, noticed=True)
    rig.machines[TWO].directory += 1
    second = rig.start(2)
    second.write()  # it has only begun
    with pytest.raises(StoreConflict):
        rig.store.multi(late, rig.members[ONE].session)
    rig.settle()  # it is there again, registered as before
    with pytest.raises(StoreConflict):
        rig.store.multi(late, rig.members[ONE].session)
    assert isr_of(rig, "t", 0) == (1,)


def test_who_is_gone_meanwhile_does_not_join() -> None:
    """Its machine may have lost what it had caught up with. In sync, it might be all that is left of the partition."""
    rig, late = about_to_join()
    rig.kill(2, noticed=True)
    with pytest.raises(StoreConflict):
        rig.store.multi(late, rig.members[ONE].session)


def test_who_is_gone_or_about_to_stop_does_not_join() -> None:
    rig = Rig(3)
    create(rig, "t", {0: [1, 2, 3]})
    set_state(rig, "t", 0, leader=1, isr=[1])
    one = rig.members[ONE]
    epochs = {node: one.image.broker_epoch(node) for node in (TWO, THREE)}
    rig.members[TWO].stop_leading()
    rig.settle()
    topic = one.image.topics[rig.topic("t").name]
    one.order(lambda: change_isr(one.image, topic, 0, leader=ONE, joining=epochs))
    rig.settle()
    assert isr_of(rig, "t", 0) == (1, 3)
    assert change_isr(one.image, topic, 0, leader=ONE, joining=epochs) == []
    assert change_isr(one.image, topic, 0, leader=TWO, joining=epochs) == []
    one.order(lambda: change_isr(one.image, topic, 0, leader=ONE, leaving=[ONE, THREE], joining={}))
    rig.settle()
    assert isr_of(rig, "t", 0) == (1,)  # a leader never takes itself out


# ---------------------------------------------------------------------- fencing


def test_a_broker_is_fenced_the_moment_its_session_is_over() -> None:
    rig = Rig(2)
    member = rig.members[TWO]
    member.learn_of_loss()
    assert member.membership.fenced
    assert member.writes == []
    member.reconnect()
    assert member.membership.fenced
    rig.settle()
    assert not member.membership.fenced
    assert rig.truth.broker_epoch(TWO) == member.membership.epoch


def test_a_registration_of_a_lost_session_does_not_count() -> None:
    """The store may keep it for long: if the store itself was away, for as long as if the session were new."""
    rig = Rig(3)
    create(rig, "t", {0: [1, 2, 3]})
    old = {node: member.session for node, member in rig.members.items()}
    for member in rig.members.values():
        member.membership.session_changed(SessionState.LOST)
    for member in rig.members.values():
        member.reconnect()
        assert member.membership.fenced
    rig.settle()
    for session in old.values():
        assert not rig.store.owns(session)
        rig.store.expire(session)
    assert sorted(rig.truth.brokers) == [1, 2, 3]
    assert not any(member.membership.fenced for member in rig.members.values())
    assert rig.truth.controller is not None
    assert leader_of(rig, "t", 0) in (1, 2, 3)


def test_a_registration_that_is_told_of_after_its_session_was_lost_does_not_count() -> None:
    rig = Rig(2)
    rig.kill(2, noticed=True)
    member = rig.start(2)
    while TWO not in rig.truth.brokers:
        assert member.membership.fenced
        if len(member.writes) == 1 and layout.broker_path(TWO) in str(member.writes[0].operations):
            member.membership.session_changed(SessionState.LOST)  # the answer comes later
        member.write()
    member.reconnect()
    assert member.membership.fenced
    rig.settle()
    assert not member.membership.fenced


def test_a_broker_that_was_taken_for_dead_registers_again() -> None:
    rig = Rig(2)
    member = rig.members[TWO]
    rig.members[ONE].process_is_gone(TWO)
    rig.members[ONE].write()
    assert TWO not in rig.truth.brokers
    member.deliver()
    assert member.membership.fenced
    rig.settle()
    assert not member.membership.fenced
    assert TWO in rig.truth.brokers


def test_a_verdict_about_a_former_life_does_nothing() -> None:
    rig = Rig(2)
    rig.members[ONE].process_is_gone(TWO)  # and the store is slow
    rig.kill(2, noticed=True)
    member = rig.start(2)
    while member.membership.fenced:
        member.write()
    epoch = rig.truth.broker_epoch(TWO)
    rig.settle()
    assert rig.truth.broker_epoch(TWO) == epoch
    assert not member.membership.fenced


def test_a_broker_without_the_store_tries_again_and_again() -> None:
    rig = Rig(2)
    rig.kill(2)
    member = rig.start(2)
    member.cut_off = True
    for _ in range(10):
        rig.settle()
        rig.pass_time(RETRY_MS_MAX)
    assert member.membership.fenced
    member.cut_off = False
    rig.settle()
    assert not member.membership.fenced


# ---------------------------------------------------------------------- the end


def test_a_broker_that_stops_is_taken_over_from_first() -> None:
    rig = Rig(3)
    create(rig, "t", {0: [2, 1], 1: [1, 2], 2: [2, 3], 3: [2, 3]})
    set_state(rig, "t", 2, leader=2, isr=[2])
    member = rig.members[TWO]
    member.stop_leading()
    assert not member.membership.may_stop
    assert not member.membership.fenced
    rig.settle()
    assert member.membership.may_stop
    assert [leader_of(rig, "t", index) for index in range(4)] == [1, 1, 2, 3]
    assert [isr_of(rig, "t", index) for index in range(4)] == [(1,), (1,), (2,), (3,)]
    member.leave()
    assert member.membership.fenced
    rig.settle()
    assert member.membership.has_left
    assert TWO not in rig.truth.brokers
    assert state(rig, "t", 2) == (-1, 2, (2,))


def test_the_controller_stops_too() -> None:
    rig = Rig(2)
    create(rig, "t", {0: [1, 2]})
    member = rig.members[ONE]
    member.stop_leading()
    rig.settle()
    assert member.membership.may_stop
    assert leader_of(rig, "t", 0) == 2
    member.leave()
    rig.settle()
    assert rig.truth.controller == 2
    assert rig.truth.controller_epoch == 2


def test_all_stop_at_once() -> None:
    rig = Rig(3)
    create(rig, "t", {0: [1, 2, 3]})
    for member in rig.members.values():
        member.stop_leading()
    rig.settle()
    assert all(member.membership.may_stop for member in rig.members.values())


def test_nobody_waits_for_ever_to_stop() -> None:
    rig = Rig(2)
    create(rig, "t", {0: [2, 1]})
    member = rig.members[TWO]
    member.stop_leading()
    del rig.members[ONE]  # it hangs
    rig.settle()
    assert not member.membership.may_stop
    rig.pass_time(HANDOVER_MS_MAX)
    assert member.membership.may_stop


def test_a_fenced_broker_stops_at_once() -> None:
    rig = Rig(2)
    member = rig.members[TWO]
    member.learn_of_loss()
    member.stop_leading()
    assert member.membership.may_stop


def test_one_that_does_not_hand_over_stops_at_once() -> None:
    rig = Rig(2, controlled_shutdown_enable="false")
    member = rig.members[TWO]
    member.stop_leading()
    assert member.membership.may_stop


# ---------------------------------------------------------------------- a broker on its own


def test_a_broker_on_its_own_is_there_and_controls_itself() -> None:
    rig = Rig(1)
    image = type(rig.truth)()
    image.apply(standalone_nodes(rig.applicant(ONE)))
    assert list(image.brokers) == [ONE]
    assert image.controller == ONE
    assert image.broker_epoch(ONE) == 0
    assert layout.DELETIONS not in image.versions
