"""ConsumerGroupDescribe (69), versions 0-1: groups of the consumer protocol, with current and target assignments.

- 1: which protocol each member speaks.

A group that is named twice is described once.
"""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.handlers.describe_groups import ALL_OPERATIONS
from cordwood.broker.handlers.each_group import ask_each
from cordwood.coordinator.outcome import Caller, Outcome, answer
from cordwood.errors import Error, Refused
from cordwood.group import consumer
from cordwood.group.state import GroupState
from cordwood.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseGroup,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: ConsumerGroupDescribeRequest) -> None:
    names = list(dict.fromkeys(request.group_ids))

    def describe(state: GroupState, caller: Caller, index: int) -> Outcome:
        if not names[index]:
            raise Refused(Error.INVALID_GROUP_ID)
        return answer(caller, consumer.describe(state, names[index]))

    def gathered(answers: list[object | Refused]) -> ConsumerGroupDescribeResponse:
        groups = [_described(*pair) for pair in zip(names, answers, strict=True)]
        for group in groups:
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = ALL_OPERATIONS
        return ConsumerGroupDescribeResponse(groups=groups)

    ask_each(broker, call, names, describe, gathered)


def _described(group_id: str, found: object | Refused) -> ConsumerGroupDescribeResponseGroup:
    if isinstance(found, Refused):
        return ConsumerGroupDescribeResponseGroup(
            group_id=group_id, error_code=found.error, error_message=found.message
        )
    assert isinstance(found, ConsumerGroupDescribeResponseGroup)
    return found
