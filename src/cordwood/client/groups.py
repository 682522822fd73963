"""Consumer groups of a cluster, with either protocol: their members, and what they have committed.

Wrappers around confluent-kafka's admin client that return plain tuples and, when something goes wrong, raise an error
with a single sentence.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, MemberDescription

from .connect import ANSWER_TIMEOUT_S, ClientError, cause, error_of, sentence
from .offsets import Partition

# librdkafka has no names for two states of the consumer protocol, assigning and reconciling: it shows both as unknown.
STATES: Mapping[ConsumerGroupState, str] = {
    ConsumerGroupState.UNKNOWN: "rebalancing",
    ConsumerGroupState.PREPARING_REBALANCING: "preparing-rebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "completing-rebalance",
    ConsumerGroupState.STABLE: "stable",
    ConsumerGroupState.EMPTY: "empty",
    ConsumerGroupState.DEAD: "dead",
}
TYPES: Mapping[ConsumerGroupType, str] = {
    ConsumerGroupType.CLASSIC: "classic",
    ConsumerGroupType.CONSUMER: "consumer",
    ConsumerGroupType.UNKNOWN: "unknown",
}
NAMED_AT_MOST = 3


@dataclass(frozen=True, slots=True)
class Listing:
    """A group as listed."""

    name: str
    type: str
    state: str


@dataclass(frozen=True, slots=True)
class Member:
    id: str
    client_id: str
    host: str
    instance_id: str | None
    partitions: tuple[Partition, ...]
    """In order: what it holds now, which during a rebalance is not yet its target assignment."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group with its members. ``assignor`` is empty while nothing has been assigned to anybody."""

    name: str
    type: str
    state: str
    assignor: str
    coordinator: str
    members: tuple[Member, ...]

    @property
    def is_missing(self) -> bool:
        """Does it not exist? Kafka describes an unknown group as a dead one."""
        return self.state == "dead" and not self.members


def list_groups(admin: AdminClient) -> tuple[list[Listing], list[str]]:
    """All groups by name, and a sentence for each broker that did not list its own."""
    future = admin.list_consumer_groups(request_timeout=ANSWER_TIMEOUT_S)
    if (error := error_of(future)) is not None:
        raise ClientError(f"the groups could not be listed: {sentence(error)}")
    found = future.result()
    groups = [Listing(g.group_id, TYPES[g.type], STATES[g.state]) for g in found.valid]
    return sorted(groups, key=lambda group: group.name), [sentence(cause(e)) for e in found.errors]


def describe_groups(admin: AdminClient, names: Sequence[str]) -> list[Group]:
    """The groups, in the order of *names*; those that do not exist are included (``is_missing``)."""
    if not names:
        return []
    futures = admin.describe_consumer_groups(list(dict.fromkeys(names)), request_timeout=ANSWER_TIMEOUT_S)
    groups = []
    for name, future in futures.items():
        error = error_of(future)
        if error is None:
            groups.append(_group(future.result()))
        elif error.code() == KafkaError.GROUP_ID_NOT_FOUND:
            groups.append(Group(name, "unknown", "dead", "", "", ()))
        else:
            raise ClientError(f"the group {name} could not be described: {sentence(error)}")
    return groups


def _group(found: ConsumerGroupDescription) -> Group:
    node = found.coordinator
    return Group(
        found.group_id,
        TYPES[ConsumerGroupType(found.type)],
        STATES[ConsumerGroupState(found.state)],
        found.partition_assignor,
        f"broker {node.id} ({node.host}:{node.port})",
        tuple(sorted(map(_member, found.members), key=lambda member: (member.client_id, member.id))),
    )


def _member(found: MemberDescription) -> Member:
    held = sorted((p.topic, p.partition) for p in found.assignment.topic_partitions)
    # Java puts a slash before an address.
    return Member(
        found.member_id, found.client_id, found.host.lstrip("/"), found.group_instance_id or None, tuple(held)
    )


def committed_offsets(admin: AdminClient, group: str) -> dict[Partition, int]:
    """The group's committed offsets, in the order of their partitions."""
    asked = [ConsumerGroupTopicPartitions(group)]
    (future,) = admin.list_consumer_group_offsets(asked, request_timeout=ANSWER_TIMEOUT_S).values()
    if (error := error_of(future)) is not None:
        raise ClientError(f"the committed offsets of {group} could not be read: {sentence(error)}")
    offsets = {(p.topic, p.partition): p.offset for p in future.result().topic_partitions if p.offset >= 0}
    return dict(sorted(offsets.items()))


def commit_offsets(admin: AdminClient, group: str, offsets: Mapping[Partition, int]) -> dict[Partition, KafkaError]:
    """Commit for a group without members; return the errors of those partitions that were refused."""
    wanted = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
    asked = [ConsumerGroupTopicPartitions(group, wanted)]
    (future,) = admin.alter_consumer_group_offsets(asked, request_timeout=ANSWER_TIMEOUT_S).values()
    if (error := error_of(future)) is not None:
        return dict.fromkeys(offsets, error)
    return {(p.topic, p.partition): p.error for p in future.result().topic_partitions if p.error is not None}


def delete_groups(admin: AdminClient, names: Iterable[str]) -> dict[str, KafkaError | None]:
    """Delete groups with their offsets; return what went wrong with each, if anything did."""
    asked = list(dict.fromkeys(names))
    try:
        futures = admin.delete_consumer_groups(asked, request_timeout=ANSWER_TIMEOUT_S)
    except KafkaException as exception:
        return dict.fromkeys(asked, cause(exception))
    return {name: error_of(future) for name, future in futures.items()}


def unknown_group(group: str) -> ClientError:
    return ClientError(f"there is no group {group}; `cordwood groups list` shows those that exist")


def crowd(members: Sequence[Member]) -> str:
    """A group's members in a few words: how many, and the first few by name.

    >>> crowd([Member("m-1", "app", "10.0.0.7", None, ())])
    '1 member (app at 10.0.0.7)'
    """
    named = [f"{m.client_id or m.id} at {m.host}" for m in members[:NAMED_AT_MOST]]
    named += ["…"] * (len(members) > NAMED_AT_MOST)
    return f"{len(members)} member{'s' * (len(members) != 1)} ({', '.join(named)})"
