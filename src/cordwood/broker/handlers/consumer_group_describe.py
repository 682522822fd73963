"""ConsumerGroupDescribe (69), versions 0-1: groups of the consumer protocol, with what each member has and shall have.

- 1: which protocol each member speaks.
"""

from typing import TYPE_CHECKING

from cordwood.broker.callers import Gathering
from cordwood.broker.connection import Call
from cordwood.broker.handlers.describe_groups import ALL_OPERATIONS
from cordwood.coordinator.outcome import Outcome, answer
from cordwood.errors import Error, Refused
from cordwood.group import consumer
from cordwood.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseGroup,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: ConsumerGroupDescribeRequest) -> None:
    names = request.group_ids

    def gathered(answers: list[object | Refused]) -> ConsumerGroupDescribeResponse:
        groups = [_described(*pair) for pair in zip(names, answers, strict=True)]
        for group in groups:
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = ALL_OPERATIONS
        return ConsumerGroupDescribeResponse(groups=groups)

    for name, part in zip(names, Gathering(broker, call, len(names), gathered).parts, strict=True):
        if not name:
            part.refuse(Refused(Error.INVALID_GROUP_ID))
            continue
        broker.groups.handle(
            name,
            part,
            lambda state, caller, now, name=name: answer(caller, consumer.describe(state, name)),  # type: ignore[misc]
        )


def _described(group_id: str, found: object | Refused) -> ConsumerGroupDescribeResponseGroup:
    if isinstance(found, Refused):
        return ConsumerGroupDescribeResponseGroup(
            group_id=group_id, error_code=found.error, error_message=found.message
        )
    assert isinstance(found, ConsumerGroupDescribeResponseGroup)
    return found
