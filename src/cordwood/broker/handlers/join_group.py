"""JoinGroup (11), versions 0-9: enter a group of the classic protocol.

- 1: the rebalance timeout is separate from the session timeout.
- 4: a client that joins without a member id is given one, and must join again with it (KIP-394).
- 5: static members (KIP-345); 7: the answer names the protocol type; 8: a reason; 9: the leader may skip assigning.

The answer is sent when all members have joined, or when the group has waited long enough for them.
"""

from functools import partial
from typing import TYPE_CHECKING

from cordwood.broker.callers import Asking
from cordwood.broker.connection import Call
from cordwood.errors import Refused
from cordwood.group import routing
from cordwood.wire.messages import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: JoinGroupRequest) -> None:
    refused = partial(_refused, request.member_id, call.api_version)
    broker.groups.ask(request.group_id, request, Asking(broker, call, refused), routing.join)


def _refused(member_id: str, api_version: int, refusal: Refused) -> JoinGroupResponse:
    name = None if api_version >= 7 else ""
    return JoinGroupResponse(error_code=refusal.error, member_id=member_id, protocol_name=name)
