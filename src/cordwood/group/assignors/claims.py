"""What members have and may keep, according to subscriptions and partition counts, and what is left for others."""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from .spec import GroupSpec, in_order

Owned = dict[UUID, frozenset[int]]


class Claims(NamedTuple):
    """A partition is either owned by one member or free."""

    owned: dict[str, Owned]
    free: dict[UUID, set[int]]


def claim(spec: GroupSpec, subscribed: Mapping[str, frozenset[UUID]]) -> Claims:
    """Let every member claim what it was assigned, in the order given.

    Partitions that do not exist, and topics that the member does not subscribe to, are not claimed. If two members were
    assigned the same partition, which should not happen, it goes to the first.
    """
    topics = frozenset[UUID]().union(*set(subscribed.values()))
    free = {topic: set(range(spec.partitions[topic])) for topic in in_order(topics)}
    owned: dict[str, Owned] = {}
    for member_id, wanted in subscribed.items():
        owned[member_id] = mine = {}
        for topic, partitions in spec.members[member_id].assigned.items():
            if topic not in wanted:
                continue
            if kept := partitions if partitions <= free[topic] else partitions & free[topic]:
                mine[topic] = kept
                free[topic] -= kept
    return Claims(owned, free)
