"""The range assignor: each topic is cut into one run of partitions for each of its subscribers.

Members with the same subscriptions get the same runs of topics that have the same number of partitions, which is what a
join of two topics needs. What keeps an assignment stable is the order of the members, not what they had before: static
members come first, by instance id, so that one that returns under a new member id gets its old partitions again. The
others follow by member id. When a topic has fewer partitions than subscribers, the last ones get nothing of it.
"""

from uuid import UUID

from .spec import Assignment, GroupSpec, in_order, subscriptions


class RangeAssignor:
    """Runs of partitions, the same ones of each topic."""

    name = "range"

    def assign(self, spec: GroupSpec) -> Assignment:
        """Cut every subscribed topic into runs, in the order of the members."""
        subscribed = subscriptions(spec)
        subscribers = _subscribers(_members_in_order(spec), subscribed)
        runs: dict[tuple[int, int], list[frozenset[int]]] = {}
        assignment: Assignment = {member_id: {} for member_id in subscribed}
        for topic in in_order(subscribers):
            members = subscribers[topic]
            shape = (spec.partitions[topic], len(members))
            if shape not in runs:
                runs[shape] = _runs(partitions=shape[0], members=shape[1])
            for member_id, run in zip(members, runs[shape], strict=False):
                assignment[member_id][topic] = run
        return assignment


def _members_in_order(spec: GroupSpec) -> list[str]:
    """Static members by instance id, then the others by member id."""

    def rank(member_id: str) -> tuple[bool, str, str]:
        instance_id = spec.members[member_id].instance_id
        return (instance_id is None, instance_id or "", member_id)

    return sorted(spec.members, key=rank)


def _subscribers(members: list[str], subscribed: dict[str, frozenset[UUID]]) -> dict[UUID, list[str]]:
    """The subscribers of each topic, in the given order."""
    if len(set(subscribed.values())) == 1:
        return dict.fromkeys(subscribed[members[0]], members)
    subscribers: dict[UUID, list[str]] = {}
    for member_id in members:
        for topic in subscribed[member_id]:
            subscribers.setdefault(topic, []).append(member_id)
    return subscribers


def _runs(*, partitions: int, members: int) -> list[frozenset[int]]:
    """Runs that differ in length by at most one, the longer ones first; no run is empty."""
    length, longer = divmod(partitions, members)
    ends = [(index + 1) * length + min(index + 1, longer) for index in range(min(members, partitions))]
    return [frozenset(range(start, end)) for start, end in zip([0, *ends], ends, strict=False)]
