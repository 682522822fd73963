"""Groups to assign, written with small numbers for topics; and what must hold of every answer."""

from collections.abc import Mapping
from uuid import UUID

from hypothesis import strategies as st

from cordwood.group.assignors import ASSIGNORS, Assignment, GroupSpec, MemberSpec

Topics = Mapping[int, set[int]]
Answer = dict[str, dict[int, set[int]]]

MISSING_TOPIC = 9


def topic(number: int) -> UUID:
    return UUID(int=number)


def member(*topics: int, had: Topics | None = None, instance_id: str | None = None) -> MemberSpec:
    assigned = {topic(number): frozenset(partitions) for number, partitions in (had or {}).items()}
    return MemberSpec(frozenset(map(topic, topics)), assigned, instance_id)


def group(partitions: Mapping[int, int], **members: MemberSpec) -> GroupSpec:
    return GroupSpec(members, {topic(number): count for number, count in partitions.items()})


def assign(name: str, spec: GroupSpec) -> Answer:
    """The answer of the assignor, which was checked."""
    answer = ASSIGNORS[name].assign(spec)
    check(spec, answer)
    return {member_id: {key.int: set(value) for key, value in mine.items()} for member_id, mine in answer.items()}


def check(spec: GroupSpec, answer: Assignment) -> None:
    """What every assignor promises."""
    assert list(answer) == sorted(spec.members)
    dealt = []
    for member_id, mine in answer.items():
        assert list(mine) == sorted(mine)
        assert mine.keys() <= spec.members[member_id].topics
        assert all(mine.values())
        dealt += [(name, partition) for name, partitions in mine.items() for partition in partitions]
    subscribed = {name for one in spec.members.values() for name in one.topics}
    wanted = [(name, p) for name, count in spec.partitions.items() if name in subscribed for p in range(count)]
    assert sorted(dealt) == sorted(wanted)


def after(spec: GroupSpec, answer: Assignment) -> GroupSpec:
    """The same group once it has what the assignor answered."""
    return spec._replace(members={name: one._replace(assigned=answer[name]) for name, one in spec.members.items()})


def kept(spec: GroupSpec, answer: Assignment) -> int:
    """How many partitions stay where they were."""
    return sum(
        len(partitions & answer[member_id].get(name, frozenset()))
        for member_id, one in spec.members.items()
        for name, partitions in one.assigned.items()
    )


def loads(answer: Assignment) -> dict[str, int]:
    return {member_id: sum(map(len, mine.values())) for member_id, mine in answer.items()}


@st.composite
def specs(draw: st.DrawFn, *, equal: bool = False, members_max: int = 6, partitions_max: int = 7) -> GroupSpec:
    """Groups in every state: assignments may overlap, be of no subscription, or of partitions that are not there."""
    numbers = [1, 2, 3]
    partitions = {number: draw(st.integers(0, partitions_max)) for number in numbers}
    subscription = st.sets(st.sampled_from([*numbers, MISSING_TOPIC]))
    common = draw(subscription)
    had = st.dictionaries(
        st.sampled_from([*numbers, MISSING_TOPIC]), st.sets(st.integers(0, partitions_max), min_size=1), max_size=3
    )
    instances = st.one_of(st.none(), st.sampled_from("pqr"))
    members = {}
    for index in range(draw(st.integers(0, members_max))):
        instance = draw(instances)
        members[f"m{index}"] = member(
            *(common if equal else draw(subscription)),
            had=draw(had),
            instance_id=None if instance is None else f"{instance}{index}",
        )
    return group(partitions, **members)


def reordered(spec: GroupSpec) -> GroupSpec:
    """The same content, every dict the other way round."""
    members = {
        name: one._replace(assigned=dict(reversed(list(one.assigned.items()))))
        for name, one in reversed(list(spec.members.items()))
    }
    return GroupSpec(members, dict(reversed(list(spec.partitions.items()))))
