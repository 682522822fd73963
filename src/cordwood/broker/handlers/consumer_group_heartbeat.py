"""ConsumerGroupHeartbeat (68), versions 0-1: join, stay in and leave a group of the consumer protocol (KIP-848).

- 1: the client makes its member id itself; subscriptions by regular expression.
"""

from typing import TYPE_CHECKING, Final

from cordwood.broker.callers import Asking
from cordwood.broker.connection import Call
from cordwood.errors import Refused
from cordwood.group import consumer
from cordwood.wire.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

CONSUMER_GROUP_HEARTBEAT: Final = 68


def handle(broker: "Broker", call: Call, request: ConsumerGroupHeartbeatRequest) -> None:
    asking = Asking(broker, call, _refused)
    if request.member_epoch < 0:
        broker.groups.ask(request.group_id, request, asking, consumer.goodbye)
    else:
        broker.groups.gather(request.group_id, request, asking, consumer.heartbeat, CONSUMER_GROUP_HEARTBEAT)


def _refused(refusal: Refused) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=refusal.error, error_message=refusal.message)
