"""IncrementalAlterConfigs (44), versions 0-1: set, unset, add to or take from settings of topics, brokers and groups.

Each resource succeeds or fails on its own, as a whole. The request has no field for how long to wait for a metadata
store that is away.

The levels of this broker's loggers are not settings: they change at once, and are not stored.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.handlers.config_resources import (
    BROKER_LOGGER,
    GROUP,
    TOPIC,
    check_broker_name,
    check_logger_name,
    config_path,
    find_topic,
    group_config,
)
from cordwood.broker.portions import patience_of
from cordwood.cluster.controller import set_config
from cordwood.config import Change, alter_broker, alter_group, alter_loggers, alter_topic
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
    levels = _set_levels(broker, [key for key in keys if key[0] == BROKER_LOGGER], resources, request.validate_only)
    stored = [key for key in keys if key[0] != BROKER_LOGGER]

    def respond(outcomes: dict[ResourceKey, Refused | None]) -> None:
        answers = [
            IncrementalAlterConfigsResponseResource(
                resource_type=key[0],
                resource_name=key[1],
                error_code=outcome.error if outcome else Error.NONE,
                error_message=outcome.message if outcome else None,
            )
            for key, outcome in (outcomes | levels).items()
        ]
        broker.reply(call, IncrementalAlterConfigsResponse(responses=answers))

    def texts(key: ResourceKey) -> dict[str, str]:
        return _altered(broker, resources[key])

    if stored or not levels:
        alter(broker, call, stored, texts, respond, validate_only=request.validate_only)
    else:  # for this, it does not matter whether the store is away
        respond({})


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
                _check_named_once(counts[key])
                operations += set_config(broker.image, config_path(broker, *key), texts(key))
                outcomes[key] = None
            except Refused as refusal:
                outcomes[key] = refusal
        return [] if validate_only else operations

    def done(refusal: Refused | None) -> None:
        finished({key: outcomes.get(key) or refusal for key in counts})

    broker.propose(plan, done, patience_of(broker, call))


def _check_named_once(count: int) -> None:
    if count > 1:
        raise Refused(Error.INVALID_REQUEST, "The resource is named twice in one request.")


def _set_levels(
    broker: "Broker",
    keys: Sequence[ResourceKey],
    resources: Mapping[ResourceKey, IncrementalAlterConfigsRequestResource],
    validate_only: bool,
) -> dict[ResourceKey, Refused | None]:
    """Apply the requested changes to loggers."""
    outcomes: dict[ResourceKey, Refused | None] = {}
    for key, count in Counter(keys).items():
        try:
            _check_named_once(count)
            check_logger_name(broker, key[1])
            levels = alter_loggers(broker.log_levels.all(), _changes(resources[key]))
            outcomes[key] = None
        except Refused as refusal:
            outcomes[key] = refusal
            continue
        if validate_only:
            continue
        for name, level in levels.items():
            broker.log_levels.set(name, level)
            broker.logger.warning("the level of logger %s was set to %s", name, level or "its parent's")
    return outcomes


def _changes(resource: IncrementalAlterConfigsRequestResource) -> list[Change]:
    return [Change(config.name, config.config_operation, config.value) for config in resource.configs]


def _altered(broker: "Broker", resource: IncrementalAlterConfigsRequestResource) -> dict[str, str]:
    changes = _changes(resource)
    layers = broker.settings.layers
    if resource.resource_type == TOPIC:
        return alter_topic(find_topic(broker, resource.resource_name).config, changes, layers)
    if resource.resource_type == GROUP:
        return alter_group(group_config(broker, resource.resource_name), changes, layers)
    return alter_broker(changes, layers, for_all=check_broker_name(broker, resource.resource_name))
