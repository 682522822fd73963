"""Settings: DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources, and client quotas."""

from cordwood.wire.types import f64, i8, i16, i32, message, v


@message
class DescribeConfigsRequestResource:
    """Types: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""

    resource_type: i8 = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = v(default=[])


@message(key=32, versions="1-4", flexible="4+")
class DescribeConfigsRequest:
    """Ask for the settings of topics, brokers, groups; no keys means all settings."""

    resources: list[DescribeConfigsRequestResource] = v()
    include_synonyms: bool = False
    include_documentation: bool = v("3+")


@message
class DescribeConfigsResponseSynonym:
    """Another place where this setting could come from, in the order in which they count."""

    name: str = ""
    value: str | None = None
    source: i8 = 0


@message
class DescribeConfigsResponseConfig:
    """Sources: 1 topic, 2 broker, 3 all brokers, 4 broker's file, 5 default, 6 logger, 7 client metrics, 8 group."""

    name: str = ""
    value: str | None = None
    read_only: bool = False
    config_source: i8 = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsResponseSynonym] = v()
    config_type: i8 = v("3+")
    documentation: str | None = v("3+")


@message
class DescribeConfigsResponseResource:
    error_code: i16 = 0
    error_message: str | None = None
    resource_type: i8 = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResponseConfig] = v()


@message(key=32, versions="1-4", flexible="4+")
class DescribeConfigsResponse:
    """The settings with their sources; a secret has no value."""

    throttle_time_ms: i32 = 0
    results: list[DescribeConfigsResponseResource] = v()


@message
class AlterConfigsRequestConfig:
    name: str = ""
    value: str | None = None


@message
class AlterConfigsRequestResource:
    resource_type: i8 = 0
    resource_name: str = ""
    configs: list[AlterConfigsRequestConfig] = v()


@message(key=33, versions="0-2", flexible="2+")
class AlterConfigsRequest:
    """Replace all settings of a resource: what is not named goes back to its default."""

    resources: list[AlterConfigsRequestResource] = v()
    validate_only: bool = False


@message
class AlterConfigsResponseResource:
    error_code: i16 = 0
    error_message: str | None = None
    resource_type: i8 = 0
    resource_name: str = ""


@message(key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    """What became of each resource."""

    throttle_time_ms: i32 = 0
    responses: list[AlterConfigsResponseResource] = v()


@message
class IncrementalAlterConfigsRequestConfig:
    """Operations: 0 set, 1 delete, 2 append to a list, 3 subtract from a list."""

    name: str = ""
    config_operation: i8 = 0
    value: str | None = None


@message
class IncrementalAlterConfigsRequestResource:
    resource_type: i8 = 0
    resource_name: str = ""
    configs: list[IncrementalAlterConfigsRequestConfig] = v()


@message(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    """Change single settings."""

    resources: list[IncrementalAlterConfigsRequestResource] = v()
    validate_only: bool = False


@message
class IncrementalAlterConfigsResponseResource:
    error_code: i16 = 0
    error_message: str | None = None
    resource_type: i8 = 0
    resource_name: str = ""


@message(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    """What became of each resource."""

    throttle_time_ms: i32 = 0
    responses: list[IncrementalAlterConfigsResponseResource] = v()


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    """Ask which resources have settings of their own. Version 0 asks for client metrics."""

    resource_types: list[i8] = v("1+")


@message
class ListConfigResourcesResponseResource:
    resource_name: str = ""
    resource_type: i8 = v("1+", default=16)


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    """The resources with settings of their own."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    config_resources: list[ListConfigResourcesResponseResource] = v()


@message
class DescribeClientQuotasRequestComponent:
    """Match types: 0 this very name, 1 the default, 2 any that is set."""

    entity_type: str = ""
    match_type: i8 = 0
    match: str | None = None


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    """Ask for quotas whose entities match."""

    components: list[DescribeClientQuotasRequestComponent] = v()
    strict: bool = False


@message
class ClientQuotaEntity:
    """Part of the entity that a quota applies to; no name means the default."""

    entity_type: str = ""
    entity_name: str | None = None


@message
class DescribeClientQuotasResponseValue:
    key: str = ""
    value: f64 = 0.0


@message
class DescribeClientQuotasResponseEntry:
    entity: list[ClientQuotaEntity] = v()
    values: list[DescribeClientQuotasResponseValue] = v()


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    """The quotas found."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    entries: list[DescribeClientQuotasResponseEntry] | None = v(default=[])


@message
class AlterClientQuotasRequestOp:
    key: str = ""
    value: f64 = 0.0
    remove: bool = False


@message
class AlterClientQuotasRequestEntry:
    entity: list[ClientQuotaEntity] = v()
    ops: list[AlterClientQuotasRequestOp] = v()


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    """Set and remove quotas."""

    entries: list[AlterClientQuotasRequestEntry] = v()
    validate_only: bool = False


@message
class AlterClientQuotasResponseEntry:
    error_code: i16 = 0
    error_message: str | None = None
    entity: list[ClientQuotaEntity] = v()


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    """What became of each entity."""

    throttle_time_ms: i32 = 0
    entries: list[AlterClientQuotasResponseEntry] = v()
