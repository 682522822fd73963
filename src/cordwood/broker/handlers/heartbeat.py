"""Heartbeat (12), versions 0-4: a member of the classic protocol is alive, and is told whether it must rejoin.

- 3: static members (KIP-345).
"""

from typing import TYPE_CHECKING

from cordwood.broker.callers import Asking
from cordwood.broker.connection import Call
from cordwood.errors import Error, Refused
from cordwood.group import routing
from cordwood.wire.messages import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: HeartbeatRequest) -> None:
    broker.groups.ask(request.group_id, request, Asking(broker, call, _refused), routing.heartbeat)


def _refused(refusal: Refused) -> HeartbeatResponse:
    """While a group is being loaded, its members are taken to be alive: any error would make them rejoin."""
    loading = refusal.error is Error.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=Error.NONE if loading else refusal.error)
