"""From a frame to its handler."""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call, Connection
from cordwood.broker.handlers import HANDLERS, Handler
from cordwood.broker.handlers.api_versions import PRODUCE, served_versions, unsupported_version
from cordwood.errors import ProtocolError
from cordwood.wire.frame import RequestHead, read_request_head, request_reader
from cordwood.wire.types import API_VERSIONS_KEY

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def serve(broker: "Broker", connection: Connection, frame: memoryview) -> None:
    """Deal with one request: answer it, park it, or raise ``ProtocolError`` if it can not be understood."""
    head = read_request_head(frame)
    api_key, api_version, correlation_id, client_id, body = head
    route = _route(api_key, api_version)
    if route is None:
        _unknown(broker, connection, head)
        return
    if api_key != PRODUCE and len(frame) > broker.config.max_recordless_request_bytes:
        raise ProtocolError(f"a request of {len(frame)} bytes that brings no records")
    read, handler = route
    request = read(frame, body)
    call = Call(connection, api_key, api_version, correlation_id, client_id)
    connection.waiting.append(call)
    response = handler(broker, call, request)
    if response is not None:
        broker.reply(call, response)


@lru_cache(maxsize=1024)  # bounded, because a client chooses what is looked up
def _route(api_key: int, api_version: int) -> tuple[Callable[[memoryview, int], object], Handler] | None:
    """How to read and who handles a version of an API; None if it is not served."""
    handler = HANDLERS.get(api_key)
    if handler is None or api_version not in served_versions(api_key):
        return None
    return request_reader(api_key, api_version), handler


def _unknown(broker: "Broker", connection: Connection, head: RequestHead) -> None:
    if head.api_key == API_VERSIONS_KEY:
        call = Call(connection, API_VERSIONS_KEY, 0, head.correlation_id, head.client_id)
        connection.waiting.append(call)
        broker.reply(call, unsupported_version())
        return
    name = head.api.name if head.api is not None else f"API {head.api_key}"
    raise ProtocolError(f"{name} version {head.api_version} is not served here")
