"""The uniform assignor, by hand and against brute force."""

from collections.abc import Iterator
from itertools import combinations, product

from hypothesis import assume, given, settings

from cordwood.group.assignors import ASSIGNORS, GroupSpec
from cordwood.group.assignors.chains import level_chains
from cordwood.group.assignors.loads import Loads
from group.assignor_specs import MISSING_TOPIC, after, assign, group, kept, loads, member, specs, topic

UNIFORM = ASSIGNORS["uniform"]


def test_a_new_group_reads_in_runs() -> None:
    spec = group({1: 4, 2: 3}, a=member(1, 2), b=member(1, 2), c=member(1, 2))
    assert assign("uniform", spec) == {"a": {1: {0, 1, 2}}, "b": {1: {3}, 2: {0}}, "c": {2: {1, 2}}}


def test_one_that_joins_takes_only_what_others_have_too_much() -> None:
    spec = group({1: 6}, a=member(1, had={1: {0, 2, 4}}), b=member(1, had={1: {1, 3, 5}}), c=member(1))
    assert assign("uniform", spec) == {"a": {1: {0, 2}}, "b": {1: {1, 3}}, "c": {1: {4, 5}}}


def test_what_one_leaves_behind_goes_to_those_with_least() -> None:
    spec = group({1: 6}, a=member(1, had={1: {0, 1}}), b=member(1, had={1: {2, 3}}))
    assert assign("uniform", spec) == {"a": {1: {0, 1, 4}}, "b": {1: {2, 3, 5}}}


def test_who_has_the_odd_partition_keeps_it() -> None:
    spec = group({1: 7}, a=member(1, had={1: {0, 1, 2}}), b=member(1, had={1: {3, 4, 5, 6}}))
    assert assign("uniform", spec) == {"a": {1: {0, 1, 2}}, "b": {1: {3, 4, 5, 6}}}


def test_more_members_than_partitions() -> None:
    spec = group({1: 4}, a=member(1), b=member(1), c=member(1), d=member(1, had={1: {3}}), e=member(1))
    assert assign("uniform", spec) == {"a": {1: {0}}, "b": {1: {1}}, "c": {1: {2}}, "d": {1: {3}}, "e": {}}


def test_a_partition_that_two_were_given_is_the_firsts() -> None:
    spec = group({1: 2}, a=member(1, had={1: {1}}), b=member(1, had={1: {1}}))
    assert assign("uniform", spec) == {"a": {1: {1}}, "b": {1: {0}}}


def test_members_that_want_nothing_that_exists_leave_the_others_equal() -> None:
    spec = group({1: 3}, a=member(1), b=member(MISSING_TOPIC), c=member(1, MISSING_TOPIC), d=member())
    assert assign("uniform", spec) == {"a": {1: {0, 1}}, "b": {}, "c": {1: {2}}, "d": {}}


def test_a_topic_that_is_gone_or_no_longer_wanted_is_given_up() -> None:
    spec = group({1: 2, 2: 2}, a=member(1, had={1: {0}, 2: {0, 1}, MISSING_TOPIC: {0}}), b=member(1, had={1: {1}}))
    assert assign("uniform", spec) == {"a": {1: {0}}, "b": {1: {1}}}


def test_who_can_take_from_one_topic_only_takes_there() -> None:
    spec = group({1: 4, 2: 2}, a=member(1), b=member(1, 2))
    assert assign("uniform", spec) == {"a": {1: {0, 1, 2}}, "b": {1: {3}, 2: {0, 1}}}


def test_unequal_subscriptions_are_levelled_as_far_as_they_go() -> None:
    spec = group({1: 1, 2: 6}, a=member(1), b=member(2), c=member(1, 2))
    assert assign("uniform", spec) == {"a": {1: {0}}, "b": {2: {0, 1, 2}}, "c": {2: {3, 4, 5}}}


def test_a_chain_of_gifts_levels_what_no_single_gift_can() -> None:
    # a and b share topic 1, b and c topic 2. No two neighbours differ by more than one, and yet 9, 10, 11 is not level.
    spec = group(
        {1: 14, 2: 16},
        a=member(1, had={1: set(range(9))}),
        b=member(1, 2, had={1: set(range(9, 14)), 2: set(range(5))}),
        c=member(2, had={2: set(range(5, 16))}),
    )
    answer = UNIFORM.assign(spec)
    assert loads(answer) == {"a": 10, "b": 10, "c": 10}
    assert kept(spec, answer) == 28


def test_searches_for_chains_have_a_limit() -> None:
    # Member 0 has two of topic 0, member 1 one of topic 1, member 2 nothing.
    counts = Loads([[0, 1], [1, 2]], 3)
    counts.add(0, 0, 2)
    counts.add(1, 1, 1)
    level_chains(counts, reached_max=0)
    assert counts.total == [2, 1, 0]
    level_chains(counts)
    assert counts.total == [1, 1, 1]
    counts.check()


def test_a_member_that_changes_its_subscription_gives_up_no_more_than_it_must() -> None:
    spec = group(
        {1: 4, 2: 4},
        a=member(1, had={1: {0, 1}, 2: {0, 1}}),
        b=member(1, 2, had={1: {2, 3}, 2: {2, 3}}),
    )
    assert assign("uniform", spec) == {"a": {1: {0, 1, 2, 3}}, "b": {2: {0, 1, 2, 3}}}


@given(specs(equal=True))
def test_loads_of_equal_members_differ_by_at_most_one(spec: GroupSpec) -> None:
    values = loads(UNIFORM.assign(spec)).values()
    assert max(values, default=0) - min(values, default=0) <= 1


@given(specs(equal=True))
def test_equal_members_keep_all_that_balance_allows(spec: GroupSpec) -> None:
    assume(spec.members)
    single = without_overlap(spec)
    assert kept(single, UNIFORM.assign(single)) == most_kept(single)


def without_overlap(spec: GroupSpec) -> GroupSpec:
    """The same group, where no two members were given the same partition."""
    taken = set()
    members = {}
    for name, one in spec.members.items():
        mine = {key: frozenset(p for p in value if (key, p) not in taken) for key, value in one.assigned.items()}
        taken |= {(key, p) for key, value in mine.items() for p in value}
        members[name] = one._replace(assigned={key: value for key, value in mine.items() if value})
    return spec._replace(members=members)


def most_kept(spec: GroupSpec) -> int:
    """The best of all ways to say who gets one more than the others."""
    topics = next(iter(spec.members.values())).topics
    share, rest = divmod(sum(count for key, count in spec.partitions.items() if key in topics), len(spec.members))
    usable = [
        sum(
            p < spec.partitions[key]
            for key in one.assigned
            if key in topics & spec.partitions.keys()
            for p in one.assigned[key]
        )
        for one in spec.members.values()
    ]
    choices = combinations(range(len(usable)), rest)
    return max(sum(min(had, share + (index in lucky)) for index, had in enumerate(usable)) for lucky in choices)


@settings(max_examples=60)
@given(specs(members_max=4, partitions_max=3))
def test_no_assignment_is_more_balanced(spec: GroupSpec) -> None:
    found = sum(load * load for load in loads(UNIFORM.assign(spec)).values())
    assert found == least_squares(spec)


def least_squares(spec: GroupSpec) -> int:
    """The smallest sum of squared loads over all assignments, which are counted out one by one."""
    members = list(spec.members)
    ways = []
    for key, count in spec.partitions.items():
        subscribers = [index for index, name in enumerate(members) if key in spec.members[name].topics]
        if subscribers:
            ways.append([dict(zip(subscribers, split, strict=True)) for split in splits(count, len(subscribers))])
    return min(
        sum(sum(way.get(index, 0) for way in chosen) ** 2 for index in range(len(members))) for chosen in product(*ways)
    )


def splits(count: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a count as a sum of so many parts, in order."""
    if parts == 1:
        yield (count,)
        return
    for first in range(count + 1):
        for rest in splits(count - first, parts - 1):
            yield (first, *rest)


@given(specs())
def test_nobody_loses_and_gains_in_the_same_topic(spec: GroupSpec) -> None:
    single = without_overlap(spec)
    answer = UNIFORM.assign(single)
    for name, one in single.members.items():
        for key in one.topics & spec.partitions.keys():
            had = {p for p in one.assigned.get(key, ()) if p < spec.partitions[key]}
            has = answer[name].get(key, frozenset())
            assert had <= has or has <= had


@given(specs())
def test_one_that_leaves_moves_nothing_but_its_own(spec: GroupSpec) -> None:
    """Where subscriptions are equal: nobody that stays loses anything."""
    assume(len(spec.members) > 1)
    equal = spec._replace(
        members={name: one._replace(topics=frozenset({topic(1)})) for name, one in spec.members.items()}
    )
    before = UNIFORM.assign(equal)
    stay = after(equal, before)
    smaller = stay._replace(members={name: one for name, one in stay.members.items() if name != "m0"})
    answer = UNIFORM.assign(smaller)
    for name in smaller.members:
        assert before[name].get(topic(1), frozenset()) <= answer[name].get(topic(1), frozenset())
