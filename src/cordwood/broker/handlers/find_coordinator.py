"""FindCoordinator (10), versions 0-6: which broker looks after a group or a transactional id.

- 0: groups only; 1: transactional ids too; 4: many keys at once; 6: share groups.
"""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.errors import Error
from cordwood.wire.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

GROUP, TRANSACTION = 0, 1


def handle(broker: "Broker", call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if call.api_version >= 4:
        return FindCoordinatorResponse(
            coordinators=[_find(broker, call, request.key_type, key) for key in request.coordinator_keys]
        )
    found = _find(broker, call, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(broker: "Broker", call: Call, key_type: int, key: str) -> FindCoordinatorResponseCoordinator:
    if key_type not in (GROUP, TRANSACTION):
        return FindCoordinatorResponseCoordinator(
            key=key,
            node_id=-1,
            port=-1,
            error_code=Error.INVALID_REQUEST,
            error_message=f"Key type {key_type} is not served.",
        )
    here = broker.brokers(call)[0]
    return FindCoordinatorResponseCoordinator(key=key, node_id=here.id, host=here.host, port=here.port)
