"""SyncGroup (14), versions 0-5: the leader of a generation hands over the assignments, the others ask for theirs.

- 3: static members (KIP-345); 5: protocol type and name are compared with the group's.
"""

from typing import TYPE_CHECKING, Final

from cordwood.broker.callers import Asking
from cordwood.broker.connection import Call
from cordwood.errors import Refused
from cordwood.group import routing
from cordwood.wire.messages import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


SYNC_GROUP: Final = 14


def handle(broker: "Broker", call: Call, request: SyncGroupRequest) -> None:
    broker.groups.gather(request.group_id, request, Asking(broker, call, _refused), routing.sync, SYNC_GROUP)


def _refused(refusal: Refused) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=refusal.error)
