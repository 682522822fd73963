"""Groups that change their protocol, member by member."""

from cordwood.errors import Error, Refused
from cordwood.group.groups import Group
from cordwood.group.state import GroupState
from cordwood.ports import Instant

from .draft import Draft
from .group import ConsumerGroup


def upgraded(state: GroupState, group: Group, now: Instant) -> Draft:
    """A classic group that a member of the consumer protocol joins."""
    if group.is_empty:
        return Draft(ConsumerGroup(group.id), group.tombstones())
    raise Refused(Error.GROUP_ID_NOT_FOUND, f"Group {group.id} is a classic group.")
