"""AlterConfigs (33), versions 0-2: replace all settings of topics, brokers and groups at once (as before API 44)."""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.handlers.config_resources import GROUP, TOPIC, check_broker_name, find_topic, group_config
from cordwood.broker.handlers.incremental_alter_configs import ResourceKey, alter
from cordwood.config import checked_broker, checked_group, checked_topic
from cordwood.errors import Error, Refused
from cordwood.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsRequestResource,
    AlterConfigsResponse,
    AlterConfigsResponseResource,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: AlterConfigsRequest) -> None:
    resources = {(r.resource_type, r.resource_name): r for r in request.resources}
    keys = [(r.resource_type, r.resource_name) for r in request.resources]

    def respond(outcomes: dict[ResourceKey, Refused | None]) -> None:
        answers = [
            AlterConfigsResponseResource(
                resource_type=key[0],
                resource_name=key[1],
                error_code=outcome.error if outcome else Error.NONE,
                error_message=outcome.message if outcome else None,
            )
            for key, outcome in outcomes.items()
        ]
        broker.reply(call, AlterConfigsResponse(responses=answers))

    alter(
        broker, call, keys, lambda key: _replaced(broker, resources[key]), respond, validate_only=request.validate_only
    )


def _replaced(broker: "Broker", resource: AlterConfigsRequestResource) -> dict[str, str]:
    texts = {}
    for config in resource.configs:
        if config.value is None:
            raise Refused(Error.INVALID_REQUEST, f"{config.name} has no value.")
        if config.name in texts:
            raise Refused(Error.INVALID_REQUEST, f"{config.name} is given twice.")
        texts[config.name] = config.value
    layers = broker.settings.layers
    if resource.resource_type == TOPIC:
        find_topic(broker, resource.resource_name)
        return checked_topic(texts, layers)
    if resource.resource_type == GROUP:
        group_config(broker, resource.resource_name)
        return checked_group(texts, layers)
    return checked_broker(texts, layers, for_all=check_broker_name(broker, resource.resource_name))
