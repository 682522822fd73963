"""Metrics that clients push to the broker."""

from uuid import UUID

from cordwood.wire.types import i8, i16, i32, message, v


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest:
    """Ask which metrics the broker wants."""

    client_instance_id: UUID = v()  # zero at first: the broker gives one


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse:
    """The metrics wanted, how often, and how compressed."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    client_instance_id: UUID = v()
    subscription_id: i32 = 0
    accepted_compression_types: list[i8] = v()
    push_interval_ms: i32 = 0
    telemetry_max_bytes: i32 = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = v()


@message(key=72, versions="0", flexible="0+")
class PushTelemetryRequest:
    """Metrics of a client, in OpenTelemetry's encoding; `terminating` with the last ones."""

    client_instance_id: UUID = v()
    subscription_id: i32 = 0
    terminating: bool = False
    compression_type: i8 = 0
    metrics: bytes = b""


@message(key=72, versions="0", flexible="0+")
class PushTelemetryResponse:
    """Whether they were accepted."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
