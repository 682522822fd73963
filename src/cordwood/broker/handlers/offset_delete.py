"""OffsetDelete (47), version 0: delete committed offsets of a group. See ``group/offsets/delete``."""

from typing import TYPE_CHECKING

from cordwood.broker.callers import Asking
from cordwood.broker.connection import Call
from cordwood.group import offsets
from cordwood.wire.messages import OffsetDeleteRequest, OffsetDeleteResponse

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: OffsetDeleteRequest) -> None:
    broker.groups.handle(
        request.group_id,
        Asking(broker, call, lambda refusal: OffsetDeleteResponse(error_code=refusal.error)),
        lambda state, caller, now: offsets.delete(state, request, caller, now),
    )
