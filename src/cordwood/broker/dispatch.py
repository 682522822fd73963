"""From a frame to its handler."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from cordwood.broker.connection import Call, Connection
from cordwood.broker.handlers import HANDLERS, Handler
from cordwood.broker.handlers.api_versions import PRODUCE, served_versions, unsupported_version
from cordwood.errors import ProtocolError
from cordwood.wire.frame import RequestHead, read_request_head, request_reader
from cordwood.wire.types import API_VERSIONS_KEY

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


class Route:
    """How to decode a version of an API, and who handles it."""

    __slots__ = ("handler", "read")

    def __init__(self, read: Callable[[memoryview, int], object], handler: Handler) -> None:
        self.read = read
        self.handler = handler


_routes: Final[dict[int, Route]] = {}
"""The versions that are served and have been asked for, by ``api_key << 16 | api_version``."""


def serve(broker: "Broker", connection: Connection, frame: memoryview) -> None:
    """Handle one request: answer it, park it, or raise ``ProtocolError`` if it cannot be decoded."""
    head = read_request_head(frame)
    api_key, api_version = head.api_key, head.api_version
    route = _routes.get(api_key << 16 | api_version) if api_version >= 0 else None
    if route is None:
        route = _route(api_key, api_version)
        if route is None:
            _unknown(broker, connection, head)
            return
    if api_key != PRODUCE and len(frame) > broker.config.max_recordless_request_bytes:
        raise ProtocolError(f"a request of {len(frame)} bytes that brings no records")
    request = route.read(frame, head.body)
    call = Call(connection, api_key, api_version, head.correlation_id, head.client_id)
    connection.waiting.append(call)
    response = route.handler(broker, call, request)
    if response is not None:
        broker.reply(call, response)


def _route(api_key: int, api_version: int) -> Route | None:
    """The route of a version that is asked for the first time; None if it is not served."""
    handler = HANDLERS.get(api_key)
    if handler is None or api_version not in served_versions(api_key):
        return None
    route = _routes[api_key << 16 | api_version] = Route(request_reader(api_key, api_version), handler)
    return route


def _unknown(broker: "Broker", connection: Connection, head: RequestHead) -> None:
    if head.api_key == API_VERSIONS_KEY:
        call = Call(connection, API_VERSIONS_KEY, 0, head.correlation_id, head.client_id)
        connection.waiting.append(call)
        broker.reply(call, unsupported_version())
        return
    name = head.api.name if head.api is not None else f"API {head.api_key}"
    raise ProtocolError(f"{name} version {head.api_version} is not served here")
