"""Committed offsets of a group without members: read and written through its coordinator."""

from collections.abc import Mapping

from cordwood.errors import Error, ProtocolError
from cordwood.wire.messages.groups import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from cordwood.wire.messages.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from .raw_cluster import Cluster, raise_for
from .raw_connection import Connection
from .raw_errors import Retry

BY_NAME_MAX = 9
"""Up to this version of OffsetCommit and OffsetFetch, topics are identified by name."""
_MANY_GROUPS_FROM = 8
_MANY_KEYS_FROM = 4
_GROUP = 0

Offsets = dict[tuple[str, int], int]


def commit(cluster: Cluster, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commit from outside the group, as tools do. Not retried."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        entry = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata="")
        topics.setdefault(topic, []).append(entry)
    request = OffsetCommitRequest(
        group_id=group,
        topics=[OffsetCommitRequestTopic(name=name, partitions=entries) for name, entries in topics.items()],
    )
    connection = _coordinator(cluster, group)
    version = connection.version(OffsetCommitRequest, at_most=BY_NAME_MAX)
    answer = connection.ask(request, OffsetCommitResponse, version=version)
    for part in answer.topics:
        for entry_answer in part.partitions:
            what = f"group {group} could not commit {part.name}-{entry_answer.partition_index}"
            raise_for(what, entry_answer.error_code)


def committed(cluster: Cluster, group: str) -> Offsets:
    """Everything that the group has committed; empty for a group that does not exist. Not retried."""
    connection = _coordinator(cluster, group)
    version = connection.version(OffsetFetchRequest, at_most=BY_NAME_MAX)
    request = OffsetFetchRequest(group_id=group, topics=None)
    if version >= _MANY_GROUPS_FROM:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    answer = connection.ask(request, OffsetFetchResponse, version=version)
    what = f"the offsets of group {group} could not be read"
    raise_for(what, answer.error_code)
    found: Offsets = {}
    for topic in answer.topics:
        for entry in topic.partitions:
            _note(found, what, topic.name, entry.partition_index, entry.committed_offset, entry.error_code)
    for part in answer.groups:
        raise_for(what, part.error_code)
        for named in part.topics:
            for one in named.partitions:
                _note(found, what, named.name, one.partition_index, one.committed_offset, one.error_code)
    return dict(sorted(found.items()))


def _note(found: Offsets, what: str, topic: str, partition: int, offset: int, code: int) -> None:
    raise_for(what, code)
    if offset >= 0:
        found[topic, partition] = offset


def _coordinator(cluster: Cluster, group: str) -> Connection:
    connection = cluster.any_connection()
    version = connection.version(FindCoordinatorRequest)
    request = FindCoordinatorRequest(key=group, key_type=_GROUP)
    if version >= _MANY_KEYS_FROM:
        request = FindCoordinatorRequest(key_type=_GROUP, coordinator_keys=[group])
    answer = connection.ask(request, FindCoordinatorResponse, version=version)
    what = f"the coordinator of group {group} could not be found"
    if version < _MANY_KEYS_FROM:
        raise_for(what, answer.error_code, answer.error_message)
        return _known(cluster, what, answer.node_id)
    if len(answer.coordinators) != 1:
        raise ProtocolError(f"{what}: the broker named {len(answer.coordinators)}")
    (found,) = answer.coordinators
    raise_for(what, found.error_code, found.error_message)
    return _known(cluster, what, found.node_id)


def _known(cluster: Cluster, what: str, node_id: int) -> Connection:
    if node_id < 0:
        raise Retry(what, Error.COORDINATOR_NOT_AVAILABLE)
    return cluster.connection(node_id)
