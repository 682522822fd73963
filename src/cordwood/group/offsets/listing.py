"""ListGroups (16), versions 0-5: the groups of one shard.

- 4: only those in certain states; 5: only those of certain types.
"""

from collections.abc import Iterable

from cordwood.group.state import GroupState
from cordwood.wire.messages import ListGroupsResponseGroup


def list_groups(state: GroupState, *, states: Iterable[str], types: Iterable[str]) -> list[ListGroupsResponseGroup]:
    """The groups in any of the states and of any of the types, whatever their case; where none is named, all.

    A name that is no state or type matches nothing.
    """
    wanted_states = {name.lower() for name in states}
    wanted_types = {name.lower() for name in types}
    return [
        ListGroupsResponseGroup(
            group_id=group.id,
            protocol_type=group.protocol_type,
            group_state=group.state_name,
            group_type=group.type,
        )
        for group in state.groups.values()
        if (not wanted_states or group.state_name.lower() in wanted_states)
        and (not wanted_types or group.type.lower() in wanted_types)
    ]
