"""The range assignor, by hand and by property."""

from hypothesis import given

from cordwood.group.assignors import ASSIGNORS, GroupSpec
from group.assignor_specs import MISSING_TOPIC, assign, group, member, specs, topic


def test_topics_with_as_many_partitions_are_cut_alike() -> None:
    spec = group({1: 3, 2: 3}, a=member(1, 2), b=member(1, 2))
    assert assign("range", spec) == {"a": {1: {0, 1}, 2: {0, 1}}, "b": {1: {2}, 2: {2}}}


def test_each_topic_is_cut_among_its_own_subscribers() -> None:
    spec = group({1: 5, 2: 4}, a=member(1), b=member(1, 2), c=member(2))
    assert assign("range", spec) == {"a": {1: {0, 1, 2}}, "b": {1: {3, 4}, 2: {0, 1}}, "c": {2: {2, 3}}}


def test_the_first_members_have_the_longer_runs() -> None:
    spec = group({1: 8}, a=member(1), b=member(1), c=member(1))
    assert assign("range", spec) == {"a": {1: {0, 1, 2}}, "b": {1: {3, 4, 5}}, "c": {1: {6, 7}}}


def test_the_last_members_get_nothing_when_partitions_are_few() -> None:
    spec = group({1: 2}, a=member(1), b=member(1), c=member(1))
    assert assign("range", spec) == {"a": {1: {0}}, "b": {1: {1}}, "c": {}}


def test_static_members_come_first_by_their_instance() -> None:
    spec = group(
        {1: 4}, a=member(1), b=member(1, instance_id="z"), c=member(1, instance_id="y"), d=member(1, instance_id="x")
    )
    assert assign("range", spec) == {"d": {1: {0}}, "c": {1: {1}}, "b": {1: {2}}, "a": {1: {3}}}


def test_a_static_member_returns_under_another_id_to_its_partitions() -> None:
    before = assign("range", group({1: 3}, m1=member(1, instance_id="i"), m2=member(1, instance_id="j")))
    after = assign("range", group({1: 3}, m9=member(1, instance_id="i"), m2=member(1, instance_id="j")))
    assert (after["m9"], after["m2"]) == (before["m1"], before["m2"])


def test_what_members_had_does_not_matter() -> None:
    spec = group({1: 2}, a=member(1, had={1: {1}}), b=member(1, had={1: {0}}))
    assert assign("range", spec) == {"a": {1: {0}}, "b": {1: {1}}}


def test_a_topic_that_does_not_exist_is_ignored() -> None:
    spec = group({1: 2}, a=member(1, MISSING_TOPIC), b=member(MISSING_TOPIC))
    assert assign("range", spec) == {"a": {1: {0, 1}}, "b": {}}


@given(specs())
def test_runs_follow_the_order_of_members_and_differ_by_one(spec: GroupSpec) -> None:
    answer = ASSIGNORS["range"].assign(spec)
    dynamic_last = sorted(
        spec.members, key=lambda name: (spec.members[name].instance_id or "~", name)
    )  # "~" is behind all instance ids here
    for name, count in spec.partitions.items():
        subscribers = [one for one in dynamic_last if name in spec.members[one].topics]
        runs = [sorted(answer[one].get(name, ())) for one in subscribers]
        assert [partition for run in runs for partition in run] == list(range(count if subscribers else 0))
        lengths = [len(run) for run in runs]
        assert lengths == sorted(lengths, reverse=True)
        assert not lengths or lengths[0] - lengths[-1] <= 1


@given(specs(equal=True))
def test_equal_members_read_the_same_partitions_of_equal_topics(spec: GroupSpec) -> None:
    equal = GroupSpec(spec.members, dict.fromkeys(spec.partitions, 5))
    for mine in ASSIGNORS["range"].assign(equal).values():
        assert len(set(mine.values())) <= 1


def test_topics_of_other_sizes_are_cut_on_their_own() -> None:
    answer = ASSIGNORS["range"].assign(group({1: 4, 2: 6}, a=member(1, 2), b=member(1, 2)))
    assert answer["b"] == {topic(1): frozenset({2, 3}), topic(2): frozenset({3, 4, 5})}
