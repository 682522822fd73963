"""Heartbeat (12), versions 0-4: a member of the classic protocol is alive, and hears whether it must join again.

- 3: static members (KIP-345).
"""

from typing import TYPE_CHECKING

from cordwood.broker.callers import Asking
from cordwood.broker.connection import Call
from cordwood.group import routing
from cordwood.wire.messages import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: HeartbeatRequest) -> None:
    broker.groups.handle(
        request.group_id,
        Asking(broker, call, lambda refusal: HeartbeatResponse(error_code=refusal.error)),
        lambda state, caller, now: routing.heartbeat(state, request, caller, now),
    )
