"""What an assignor is given and what it answers.

The answer is a function of the content of the question alone: no order of a dict or a set gets into it, neither into
who reads what nor into the order of the answer's own dicts. What is true of every answer:

- every member has an entry, and a topic is in it only with at least one partition;
- every partition of a topic that has a subscriber belongs to exactly one member, and that member subscribes to the
  topic;
- asked again with its own answer as what the members have, an assignor answers the same.
"""

from collections.abc import Collection, Mapping
from operator import attrgetter
from typing import NamedTuple, Protocol
from uuid import UUID

Assignment = dict[str, dict[UUID, frozenset[int]]]


class MemberSpec(NamedTuple):
    """One member. ``assigned`` is its target assignment so far, which may well be out of date."""

    topics: frozenset[UUID]
    assigned: Mapping[UUID, frozenset[int]]
    instance_id: str | None


class GroupSpec(NamedTuple):
    """The members by id, and the partitions of each topic. A topic that is not in ``partitions`` does not exist."""

    members: Mapping[str, MemberSpec]
    partitions: Mapping[UUID, int]


class Assignor(Protocol):
    """A way to share out partitions. It keeps nothing from one call to the next."""

    name: str

    def assign(self, spec: GroupSpec) -> Assignment:
        """Share out every partition of every subscribed topic."""


def in_order(topics: Collection[UUID]) -> list[UUID]:
    """Topics in the order in which everything here goes through them."""
    # A key, because comparing two UUIDs is a call of Python code.
    return sorted(topics, key=attrgetter("int"))


def subscriptions(spec: GroupSpec) -> dict[str, frozenset[UUID]]:
    """What each member subscribes to among the topics that exist; members in order of id."""
    existing: dict[frozenset[UUID], frozenset[UUID]] = {}
    result: dict[str, frozenset[UUID]] = {}
    for member_id in sorted(spec.members):
        topics = spec.members[member_id].topics
        if topics not in existing:
            existing[topics] = topics.intersection(spec.partitions)
        result[member_id] = existing[topics]
    return result
