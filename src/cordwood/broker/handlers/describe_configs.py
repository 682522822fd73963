"""DescribeConfigs (32), versions 1-4: the settings of topics and brokers, where each comes from, and what it means.

- 1: synonyms; 3: types and documentation. Secrets have no value in the answer.
"""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.handlers.config_resources import (
    BROKER,
    TOPIC,
    check_broker_name,
    find_topic,
    unserved,
)
from cordwood.config import Entry, describe_broker, describe_cluster, describe_topic
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
    return DescribeConfigsResponse(results=[_resource(broker, request, wanted) for wanted in request.resources])


def _resource(
    broker: "Broker", request: DescribeConfigsRequest, wanted: DescribeConfigsRequestResource
) -> DescribeConfigsResponseResource:
    answer = DescribeConfigsResponseResource(resource_type=wanted.resource_type, resource_name=wanted.resource_name)
    try:
        entries = _entries(broker, wanted)
    except Refused as refusal:
        answer.error_code, answer.error_message = refusal.error, refusal.message
        return answer
    answer.configs = [_config(entry, request) for entry in entries]
    return answer


def _entries(broker: "Broker", wanted: DescribeConfigsRequestResource) -> list[Entry]:
    layers, names = broker.settings.layers, wanted.configuration_keys
    if wanted.resource_type == TOPIC:
        return describe_topic(find_topic(broker, wanted.resource_name).config, layers, names)
    if wanted.resource_type == BROKER:
        describe = describe_cluster if check_broker_name(broker, wanted.resource_name) else describe_broker
        return describe(layers, names)
    raise unserved(wanted.resource_type)


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
