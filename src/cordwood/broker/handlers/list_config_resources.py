"""ListConfigResources (74), versions 0-1: which resources have settings.

- 0: client metrics subscriptions only, of which there are none here; 1: any types, or all of them.
"""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.handlers.config_resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from cordwood.errors import Error
from cordwood.wire.messages import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListConfigResourcesResponseResource,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

KNOWN = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


def handle(broker: "Broker", call: Call, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    wanted = set(request.resource_types) if call.api_version >= 1 else {CLIENT_METRICS}
    if not wanted.issubset(KNOWN):
        return ListConfigResourcesResponse(error_code=Error.UNSUPPORTED_VERSION)
    names: dict[int, list[str]] = {
        TOPIC: sorted(broker.image.topics),
        GROUP: sorted(name for name, config in broker.image.group_configs.items() if config),
        BROKER: [str(node) for node in broker.live_nodes()],
        BROKER_LOGGER: [str(node) for node in broker.live_nodes()],
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ListConfigResourcesResponseResource(resource_name=name, resource_type=kind)
            for kind in sorted(wanted or KNOWN)
            for name in names.get(kind, [])
        ]
    )
