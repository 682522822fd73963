"""What must hold of every assignor, whatever the group."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cordwood.group.assignors import ASSIGNORS, GroupSpec
from group.assignor_specs import after, check, reordered, specs

NAMES = st.sampled_from(sorted(ASSIGNORS))


def test_the_assignors_are_kafkas() -> None:
    assert {name: assignor.name for name, assignor in ASSIGNORS.items()} == {"uniform": "uniform", "range": "range"}


def test_uniform_is_the_first_choice() -> None:
    assert next(iter(ASSIGNORS)) == "uniform"


@given(NAMES, specs())
def test_every_partition_has_one_owner_who_subscribes(name: str, spec: GroupSpec) -> None:
    check(spec, ASSIGNORS[name].assign(spec))


@given(NAMES, specs())
def test_the_order_of_dicts_does_not_matter(name: str, spec: GroupSpec) -> None:
    answer = ASSIGNORS[name].assign(spec)
    again = ASSIGNORS[name].assign(reordered(spec))
    assert [(one, list(mine.items())) for one, mine in answer.items()] == [
        (one, list(mine.items())) for one, mine in again.items()
    ]


@given(NAMES, specs())
def test_nothing_changes_when_nothing_changed(name: str, spec: GroupSpec) -> None:
    answer = ASSIGNORS[name].assign(spec)
    assert ASSIGNORS[name].assign(after(spec, answer)) == answer


@given(NAMES, specs())
def test_the_question_is_not_touched(name: str, spec: GroupSpec) -> None:
    copy = GroupSpec(
        {one: member._replace(assigned=dict(member.assigned)) for one, member in spec.members.items()},
        dict(spec.partitions),
    )
    ASSIGNORS[name].assign(spec)
    assert spec == copy


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_a_group_without_members_gets_an_empty_answer(name: str) -> None:
    assert ASSIGNORS[name].assign(GroupSpec({}, {})) == {}
