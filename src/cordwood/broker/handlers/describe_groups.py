"""DescribeGroups (15), versions 0-6: groups of the classic protocol, with their members.

- 3: what the client may do with them; 4: static members; 6: a missing group is an error (in earlier versions it is
  Dead).

A group that is named twice is described once: a name takes a few bytes, and a description may take a megabyte.
"""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.handlers.each_group import ask_each
from cordwood.coordinator.outcome import Caller, Outcome, answer
from cordwood.errors import Refused
from cordwood.group import classic
from cordwood.group.state import GroupState
from cordwood.wire.messages import DescribeGroupsRequest, DescribeGroupsResponse, DescribeGroupsResponseGroup

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

ALL_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
"""What can be done with a group: read, delete, describe, describe its settings and alter them."""


def handle(broker: "Broker", call: Call, request: DescribeGroupsRequest) -> None:
    names = list(dict.fromkeys(request.groups))

    def describe(state: GroupState, caller: Caller, index: int) -> Outcome:
        return answer(caller, classic.describe(state, names[index], call.api_version))

    def gathered(answers: list[object | Refused]) -> DescribeGroupsResponse:
        groups = [_described(*pair) for pair in zip(names, answers, strict=True)]
        for group in groups:
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = ALL_OPERATIONS
        return DescribeGroupsResponse(groups=groups)

    ask_each(broker, call, names, describe, gathered)


def _described(group_id: str, found: object | Refused) -> DescribeGroupsResponseGroup:
    if isinstance(found, Refused):
        return DescribeGroupsResponseGroup(group_id=group_id, error_code=found.error, error_message=found.message)
    assert isinstance(found, DescribeGroupsResponseGroup)
    return found
