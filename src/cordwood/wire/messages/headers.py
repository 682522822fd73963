"""The headers of requests and responses. ``frame.py`` handles them by hand, for speed, and is tested against these."""

from cordwood.wire.types import i16, i32, message, v


@message(versions="1-2", flexible="2+")
class RequestHeader:
    """What comes before each request: version 2 where the request is flexible, else 1."""

    request_api_key: i16 = 0
    request_api_version: i16 = 0
    correlation_id: i32 = 0
    client_id: str | None = v(compact=False)


@message(versions="0-1", flexible="1+")
class ResponseHeader:
    """What comes before each response: version 1 where it is flexible, except for ApiVersions, else 0."""

    correlation_id: i32 = 0
