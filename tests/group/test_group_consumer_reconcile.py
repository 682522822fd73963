"""A member's next step, as a function of what it has, what it shall have and what it says."""

from itertools import product
from uuid import UUID

import pytest

from cordwood.errors import Error, Refused
from cordwood.group.consumer.member import Current, MemberState
from cordwood.group.consumer.reconcile import NEXT_STATES, STEPS, Goal, Owned, Step, reconcile

T, U = UUID(int=1), UUID(int=2)
STABLE = MemberState.STABLE
UNREVOKED = MemberState.UNREVOKED_PARTITIONS
UNRELEASED = MemberState.UNRELEASED_PARTITIONS


def held(*partitions: int, since: int = 5, topic: UUID = T) -> dict[UUID, dict[int, int]]:
    return {topic: dict.fromkeys(partitions, since)} if partitions else {}


def goal(epoch: int, *partitions: int, topics: tuple[UUID, ...] = (T, U), changed: bool = False) -> Goal:
    target = {T: frozenset(partitions)} if partitions else {}
    return Goal(epoch, target, frozenset(topics), subscription_changed=changed)


def step(current: Current, aim: Goal, owned: Owned | None = None, taken: tuple[int, ...] = ()) -> Current:
    return reconcile(current, aim, owned, lambda topic, partition: partition not in taken)


def test_whoever_has_what_it_shall_have_stays() -> None:
    current = Current(5, 4, STABLE, held(1, 2))
    assert step(current, goal(5, 1, 2)) is current


def test_a_newer_target_that_changes_nothing_for_it_is_an_epoch() -> None:
    assert step(Current(5, 4, STABLE, held(1)), goal(6, 1)) == Current(6, 5, STABLE, held(1))


def test_what_is_free_is_given_with_the_targets_epoch() -> None:
    assert step(Current(5, 4, STABLE, held(1)), goal(6, 1, 2)) == Current(6, 5, STABLE, {T: {1: 5, 2: 6}})


def test_what_it_shall_not_have_it_must_give_up_first() -> None:
    following = step(Current(5, 4, STABLE, held(1, 2)), goal(6, 2, 3))
    assert following == Current(5, 5, UNREVOKED, held(2), held(1))
    assert step(following, goal(6, 2, 3)) is following, "it has not said anything"
    assert step(following, goal(6, 2, 3), {T: [1, 2]}) is following, "it has it still"
    assert step(following, goal(6, 2, 3), {T: [2]}) == Current(6, 5, STABLE, {T: {2: 5, 3: 6}})


def test_what_it_has_given_up_already_it_need_not_be_told_to() -> None:
    assert step(Current(5, 4, STABLE, held(1, 2)), goal(6, 2), {T: [2]}) == Current(6, 5, STABLE, held(2))


def test_what_others_have_it_waits_for() -> None:
    waiting = step(Current(5, 4, STABLE, held(1)), goal(6, 1, 2, 3), taken=(3,))
    assert waiting == Current(6, 5, UNRELEASED, {T: {1: 5, 2: 6}})
    assert step(waiting, goal(6, 1, 2, 3), taken=(3,)) == Current(6, 6, UNRELEASED, {T: {1: 5, 2: 6}})
    assert step(waiting, goal(6, 1, 2, 3)) == Current(6, 6, STABLE, {T: {1: 5, 2: 6, 3: 6}})


def test_what_it_was_giving_up_is_its_own_again_if_it_shall_have_it_after_all() -> None:
    giving_up = Current(5, 5, UNREVOKED, held(1), held(2))
    assert step(giving_up, goal(7, 1, 2), {T: [1]}, taken=(2,)) == Current(7, 5, STABLE, {T: {1: 5, 2: 7}})


def test_a_newer_target_does_not_excuse_from_giving_up() -> None:
    giving_up = Current(5, 5, UNREVOKED, held(1), held(2))
    assert step(giving_up, goal(7, 1, 2), {T: [1, 2]}) is giving_up


def test_it_stays_at_its_epoch_until_all_is_given_up() -> None:
    giving_up = Current(5, 5, UNREVOKED, held(1, 3), held(2))
    assert step(giving_up, goal(7, 3), {T: [1, 3]}) == Current(5, 5, UNREVOKED, held(3), held(1))


def test_topics_it_does_not_subscribe_to_are_not_given_to_it() -> None:
    assert step(Current(5, 4, STABLE), goal(6, 1, topics=())) == Current(6, 5, STABLE)


def test_a_changed_subscription_takes_effect_before_the_next_target() -> None:
    current = Current(5, 4, STABLE, {**held(1), **held(1, topic=U)})
    left_over = step(current, goal(5, 1, topics=(T,), changed=True))
    assert left_over == Current(5, 5, UNREVOKED, held(1), held(1, topic=U))
    assert step(current, goal(5, 1, topics=(T,), changed=True), {T: [1]}) == Current(5, 5, STABLE, held(1))
    assert step(current, goal(5, 1, changed=True)) is current


def test_a_changed_subscription_adds_to_what_is_being_given_up() -> None:
    current = Current(5, 5, UNREVOKED, {**held(1), **held(1, topic=U)}, held(2))
    following = step(current, goal(6, 1, topics=(T,), changed=True), {T: [1, 2]})
    assert following == Current(5, 5, UNREVOKED, held(1), {**held(2), **held(1, topic=U)})


def test_a_state_of_a_later_version_means_to_join_again() -> None:
    unknown = Current(5, 5, MemberState(99), held(1))
    with pytest.raises(Refused) as refusal:
        step(unknown, goal(6, 1), {T: [1]})
    assert refusal.value.error is Error.FENCED_MEMBER_EPOCH
    assert step(unknown, goal(6, 1), {}) == Current(6, 5, STABLE, held(1))


def test_the_tables_have_an_answer_for_everything() -> None:
    impossible = {(UNRELEASED, False, False), (UNRELEASED, False, True)}
    states = (STABLE, UNREVOKED, UNRELEASED)
    assert set(product(states, (False, True), (False, True))) - impossible == STEPS.keys()
    assert {Step.STAY, Step.DROP, Step.ADVANCE} == set(STEPS.values())
    assert set(product((False, True), repeat=2)) == NEXT_STATES.keys()
