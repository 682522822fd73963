"""Roughly the memory that the parts of a consumer group take (see ``group.memory``). Names count by their lengths.

A partition that a member has is recorded with the member and with the owners; one that it should have is also in its
target.
"""

from typing import Final

from cordwood.group.classic.member import MEMBER_BYTES, PROTOCOL_BYTES

from .member import Current, Description, Held, Member
from .records import Target

NAME_BYTES: Final = 150
"""The name of a topic that a member subscribes to, or that a pattern matches, without its characters."""

CHARACTER_BYTES: Final = 4
TOPIC_BYTES: Final = 500
HELD_PARTITION_BYTES: Final = 130
TARGET_PARTITION_BYTES: Final = 70


def member_bytes(member: Member) -> int:
    """A member as it described itself, without the topics that it subscribes to, and without what it has."""
    return MEMBER_BYTES + CHARACTER_BYTES * len(member.id) + _description_bytes(member.description)


def _description_bytes(description: Description) -> int:
    named = (
        len(description.instance_id or "")
        + len(description.rack_id or "")
        + len(description.client_id)
        + len(description.client_host)
        + len(description.pattern)
        + len(description.server_assignor or "")
    )
    return CHARACTER_BYTES * named + _classic_bytes(description)


def _classic_bytes(description: Description) -> int:
    if description.classic is None:
        return 0
    protocols = description.classic.supported_protocols
    return sum(PROTOCOL_BYTES + CHARACTER_BYTES * len(each.name) + len(each.metadata) for each in protocols)


def current_bytes(current: Current) -> int:
    return _held_bytes(current.assigned) + _held_bytes(current.revoking)


def _held_bytes(held: Held) -> int:
    return sum(TOPIC_BYTES + HELD_PARTITION_BYTES * len(partitions) for partitions in held.values())


def target_bytes(target: Target) -> int:
    return sum(TOPIC_BYTES + TARGET_PARTITION_BYTES * len(partitions) for partitions in target.values())


def names_bytes(names: frozenset[str]) -> int:
    return sum(NAME_BYTES + CHARACTER_BYTES * len(name) for name in names)


def pattern_bytes(pattern: str, topics: frozenset[str]) -> int:
    """The names are often those of the metadata, but not always: a reload makes new ones."""
    return CHARACTER_BYTES * len(pattern) + names_bytes(topics)
