"""How the records of committed offsets change the state."""

from typing import Final

from cordwood.group.classic import ClassicGroup
from cordwood.group.committed import CommittedOffset
from cordwood.group.state import GroupState
from cordwood.group.stored_offsets import OffsetCommitKey
from cordwood.group.tables import Apply


def _apply(state: GroupState, key: OffsetCommitKey, value: CommittedOffset | None) -> None:
    group_id, topic, partition = key
    if value is None:
        state.offsets.remove(group_id, topic, partition)
        return
    if group_id not in state.groups:
        # A commit by somebody who is not a member creates a group without members: Kafka calls it a simple one.
        state.groups[group_id] = ClassicGroup(group_id)
    state.offsets.put(group_id, topic, partition, value)


APPLY: Final[Apply] = {OffsetCommitKey: _apply}
