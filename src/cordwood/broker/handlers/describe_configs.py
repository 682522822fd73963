"""DescribeConfigs (32), versions 1-4: settings of topics, brokers, groups and loggers, their sources and meanings.

- 1: synonyms; 3: types and documentation. Secrets have no value in the answer.
"""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.handlers.config_resources import (
    BROKER,
    BROKER_LOGGER,
    GROUP,
    TOPIC,
    check_broker_name,
    check_logger_name,
    find_topic,
    group_config,
    unserved,
)
from cordwood.config import Entry, describe_broker, describe_cluster, describe_group, describe_loggers, describe_topic
from cordwood.errors import Refused
from cordwood.wire.messages import (
    DescribeConfigsRequest,
    DescribeConfigsRequestResource,
    DescribeConfigsResponse,
    DescribeConfigsResponseConfig,
    DescribeConfigsResponseResource,
    DescribeConfigsResponseSynonym,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def handle(broker: "Broker", call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[_resource(broker, request, *wanted, keys) for wanted, keys in _wanted(request.resources).items()]
    )


def _wanted(resources: list[DescribeConfigsRequestResource]) -> dict[tuple[int, str], set[str] | None]:
    """Which settings of which resource; None means all. One that is named twice is described once: it takes 100 KB."""
    wanted: dict[tuple[int, str], set[str] | None] = {}
    for resource in resources:
        keys = wanted.setdefault((resource.resource_type, resource.resource_name), set())
        if not resource.configuration_keys:
            wanted[resource.resource_type, resource.resource_name] = None
        elif keys is not None:
            keys.update(resource.configuration_keys)
    return wanted


def _resource(
    broker: "Broker", request: DescribeConfigsRequest, kind: int, name: str, keys: set[str] | None
) -> DescribeConfigsResponseResource:
    answer = DescribeConfigsResponseResource(resource_type=kind, resource_name=name)
    try:
        entries = _entries(broker, kind, name, keys)
    except Refused as refusal:
        answer.error_code, answer.error_message = refusal.error, refusal.message
        return answer
    answer.configs = [_config(entry, request) for entry in entries]
    return answer


def _entries(broker: "Broker", kind: int, name: str, keys: set[str] | None) -> list[Entry]:
    layers = broker.settings.layers
    if kind == TOPIC:
        return describe_topic(find_topic(broker, name).config, layers, keys)
    if kind == BROKER:
        describe = describe_cluster if check_broker_name(broker, name) else describe_broker
        return describe(layers, keys)
    if kind == BROKER_LOGGER:
        check_logger_name(broker, name)
        return describe_loggers(broker.log_levels.all(), keys)
    if kind == GROUP:
        return describe_group(group_config(broker, name), layers, keys)
    raise unserved(kind)


def _config(entry: Entry, request: DescribeConfigsRequest) -> DescribeConfigsResponseConfig:
    return DescribeConfigsResponseConfig(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            DescribeConfigsResponseSynonym(name=given.name, value=given.value, source=given.source)
            for given in entry.synonyms
        ]
        if request.include_synonyms
        else [],
        config_type=entry.kind,
        documentation=entry.doc if request.include_documentation else None,
    )
