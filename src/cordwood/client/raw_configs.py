"""Topic settings, by DescribeConfigs."""

from collections.abc import Sequence

from cordwood.errors import Error
from cordwood.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsRequestResource,
    DescribeConfigsResponse,
)

from .raw_cluster import Cluster, raise_for
from .raw_errors import UnknownTopic, error_of

_TOPIC = 2


def topic_settings(cluster: Cluster, topics: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """The values of these settings for each topic; those without a value are left out. Not retried."""
    resources = [
        DescribeConfigsRequestResource(resource_type=_TOPIC, resource_name=topic, configuration_keys=list(names))
        for topic in topics
    ]
    answer = cluster.any_connection().ask(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
    found: dict[str, dict[str, str]] = {}
    for result in answer.results:
        what = f"the settings of topic {result.resource_name} cannot be read"
        if error_of(result.error_code) is Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise UnknownTopic(result.resource_name)
        raise_for(what, result.error_code, result.error_message)
        found[result.resource_name] = {entry.name: entry.value for entry in result.configs if entry.value is not None}
    return found
