"""FindCoordinator (10), versions 0-6: which broker coordinates a group or a transactional id.

- 0: groups only; 1: transactional ids too; 4: many keys at once; 6: share groups.

The first request for a group's coordinator creates the offsets topic, and is answered when that exists.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.cluster.image import BrokerInfo
from cordwood.errors import Error, Refused
from cordwood.ids import NodeId
from cordwood.wire.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

GROUP, TRANSACTION = 0, 1


def handle(broker: "Broker", call: Call, request: FindCoordinatorRequest) -> None:
    def reply(refusal: Refused | None) -> None:
        broker.reply(call, _respond(broker, call, request, refusal))

    if request.key_type == GROUP:
        broker.groups.prepare_topic(reply)
    else:
        reply(None)


def _respond(
    broker: "Broker", call: Call, request: FindCoordinatorRequest, refusal: Refused | None
) -> FindCoordinatorResponse:
    brokers = {info.id: info for info in broker.brokers(call)}
    if call.api_version >= 4:
        keys = request.coordinator_keys
        return FindCoordinatorResponse(coordinators=[_find(broker, brokers, request, key, refusal) for key in keys])
    found = _find(broker, brokers, request, request.key, refusal)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(
    broker: "Broker",
    brokers: Mapping[NodeId, BrokerInfo],
    request: FindCoordinatorRequest,
    key: str,
    refusal: Refused | None,
) -> FindCoordinatorResponseCoordinator:
    try:
        if refusal is not None:
            raise Refused(Error.COORDINATOR_NOT_AVAILABLE, refusal.message)
        node = _node(broker, request.key_type, key)
        here = brokers.get(node)
        if here is None or broker.doubts.about(lambda: [node]):
            raise Refused(Error.COORDINATOR_NOT_AVAILABLE, f"Broker {node} is not there now. Try again.")
    except Refused as reason:
        return FindCoordinatorResponseCoordinator(
            key=key, node_id=-1, port=-1, error_code=reason.error, error_message=reason.message
        )
    return FindCoordinatorResponseCoordinator(key=key, node_id=here.id, host=here.host, port=here.port)


def _node(broker: "Broker", key_type: int, key: str) -> NodeId:
    if key_type == GROUP:
        return broker.groups.node_for(key)
    if key_type == TRANSACTION:
        return broker.node
    raise Refused(Error.INVALID_REQUEST, f"Key type {key_type} is not served.")
