"""What an assignor is given, and what it returns.

The answer depends only on the content of the input: the order of a dict or a set affects neither who reads what nor the
order of the answer's own dicts. Every answer has these properties:

- every member has an entry, and a topic is in it only with at least one partition;
- every partition of a topic that has a subscriber belongs to exactly one member, and that member subscribes to the
  topic;
- if an assignor is given its own answer as what the members have, it returns the same answer.
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
    """A way to share out partitions. It keeps no state between calls."""

    name: str

    def assign(self, spec: GroupSpec) -> Assignment:
        """Share out every partition of every subscribed topic."""


def in_order(topics: Collection[UUID]) -> list[UUID]:
    """Topics in the order in which all code here goes through them."""
    # With a key, because comparing two UUIDs calls Python code.
    return sorted(topics, key=attrgetter("int"))


def subscriptions(spec: GroupSpec) -> dict[str, frozenset[UUID]]:
    """The existing topics that each member subscribes to; members in order of id."""
    existing: dict[frozenset[UUID], frozenset[UUID]] = {}
    result: dict[str, frozenset[UUID]] = {}
    for member_id in sorted(spec.members):
        topics = spec.members[member_id].topics
        if topics not in existing:
            existing[topics] = topics.intersection(spec.partitions)
        result[member_id] = existing[topics]
    return result
