"""IncrementalAlterConfigs (44), versions 0-1: set, unset, add to or take from settings of topics, brokers and groups.

Each resource succeeds or fails by itself, as a whole. The request names no time for which it waits for a metadata
store that is away.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.handlers.config_resources import (
    GROUP,
    TOPIC,
    check_broker_name,
    config_path,
    find_topic,
    group_config,
)
from cordwood.broker.portions import patience_of
from cordwood.cluster.controller import set_config
from cordwood.config import Change, alter_broker, alter_group, alter_topic
from cordwood.errors import Error, Refused
from cordwood.ports import StoreOp
from cordwood.wire.messages import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestResource,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseResource,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

ResourceKey = tuple[int, str]
Texts = Callable[[ResourceKey], dict[str, str]]
Finished = Callable[[dict[ResourceKey, Refused | None]], None]


def handle(broker: "Broker", call: Call, request: IncrementalAlterConfigsRequest) -> None:
    resources = {(r.resource_type, r.resource_name): r for r in request.resources}
    keys = [(r.resource_type, r.resource_name) for r in request.resources]

    def respond(outcomes: dict[ResourceKey, Refused | None]) -> None:
        answers = [
            IncrementalAlterConfigsResponseResource(
                resource_type=key[0],
                resource_name=key[1],
                error_code=outcome.error if outcome else Error.NONE,
                error_message=outcome.message if outcome else None,
            )
            for key, outcome in outcomes.items()
        ]
        broker.reply(call, IncrementalAlterConfigsResponse(responses=answers))

    alter(
        broker, call, keys, lambda key: _altered(broker, resources[key]), respond, validate_only=request.validate_only
    )


def alter(
    broker: "Broker", call: Call, keys: Sequence[ResourceKey], texts: Texts, finished: Finished, *, validate_only: bool
) -> None:
    """Replace the settings of each resource by what *texts* gives for it, unless that is refused."""
    outcomes: dict[ResourceKey, Refused | None] = {}
    counts = Counter(keys)

    def plan() -> Sequence[StoreOp]:
        operations: list[StoreOp] = []
        for key in keys:
            try:
                if counts[key] > 1:
                    raise Refused(Error.INVALID_REQUEST, "The resource is named twice in one request.")
                operations += set_config(broker.image, config_path(broker, *key), texts(key))
                outcomes[key] = None
            except Refused as refusal:
                outcomes[key] = refusal
        return [] if validate_only else operations

    def done(refusal: Refused | None) -> None:
        finished({key: outcomes.get(key) or refusal for key in counts})

    broker.propose(plan, done, patience_of(broker, call))


def _altered(broker: "Broker", resource: IncrementalAlterConfigsRequestResource) -> dict[str, str]:
    changes = [Change(config.name, config.config_operation, config.value) for config in resource.configs]
    layers = broker.settings.layers
    if resource.resource_type == TOPIC:
        return alter_topic(find_topic(broker, resource.resource_name).config, changes, layers)
    if resource.resource_type == GROUP:
        return alter_group(group_config(broker, resource.resource_name), changes, layers)
    return alter_broker(changes, layers, for_all=check_broker_name(broker, resource.resource_name))
