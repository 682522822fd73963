"""LeaveGroup (13), versions 0-5: members leave at once, rather than by session timeout.

- 3: several members in one request, static ones by their instance id (KIP-345); 5: a reason.
"""

from typing import TYPE_CHECKING

from cordwood.broker.callers import Asking
from cordwood.broker.connection import Call
from cordwood.group import routing
from cordwood.wire.messages import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: LeaveGroupRequest) -> None:
    broker.groups.ask(
        request.group_id,
        request,
        Asking(broker, call, lambda refusal: LeaveGroupResponse(error_code=refusal.error)),
        routing.leave,
    )
