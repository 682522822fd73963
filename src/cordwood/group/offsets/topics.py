"""When topics are deleted, the offsets that groups have committed in them are deleted too, in all shards.

An offset knows the id of its topic, unless an old client sent it or an old broker stored it. So a topic that was
deleted and created again under its name can be told from its predecessor.
"""

from collections.abc import Iterable, Iterator

from cordwood.coordinator.outcome import Outcome
from cordwood.group.state import GroupState
from cordwood.group.stored_offsets import OffsetCommitKey
from cordwood.group.tables import Expired
from cordwood.group.timers import DeletedTopic
from cordwood.ids import TopicName
from cordwood.ports import Instant
from cordwood.wire.types import NO_UUID

from .slices import NEXT_SLICE_MS, RETRY_MS, Slice


def topics_deleted(state: GroupState, names: Iterable[TopicName], now: Instant) -> Outcome:
    """Delete the offsets of those of the topics that no longer exist, or are new ones of the same name."""
    for name in names:
        info = state.image.topics.get(name)
        if state.offsets.readers(name) and (
            info is None or state.offsets.last_topic_id(name) not in (NO_UUID, info.id)
        ):
            state.deadlines.set(DeletedTopic(name), now.mono_ms)
    return Outcome()


def forget_stale(state: GroupState, now: Instant) -> None:
    """Look at all offsets: some may be of topics that were deleted, or recreated, before they were loaded."""
    for name in state.offsets.topic_names():
        if next(_stale(state, name), None) is not None:
            state.deadlines.set(DeletedTopic(name), now.mono_ms)


def _go_on(state: GroupState, key: DeletedTopic, now: Instant) -> Outcome:
    """Delete the next offsets of a topic that is gone, until there are none."""
    found = Slice(state)
    for stale in _stale(state, key.name):
        found.remove(stale)
        if found.is_full:
            state.deadlines.set(key, now.mono_ms + NEXT_SLICE_MS)
            break
    return Outcome(found.records, failed=lambda refusal: state.deadlines.set(key, now.mono_ms + RETRY_MS))


def _stale(state: GroupState, name: str) -> Iterator[OffsetCommitKey]:
    """The offsets under this name that do not belong to an existing topic."""
    info = state.image.topics.get(TopicName(name))
    for group_id in state.offsets.readers(name):
        for partition, committed in state.offsets.topics(group_id)[name].items():
            if info is None or (committed.topic_id not in (NO_UUID, info.id)):
                yield OffsetCommitKey(group_id, name, partition)


EXPIRED: Expired = {DeletedTopic: _go_on}
