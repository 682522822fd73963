"""From a frame to its handler."""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call, Connection
from cordwood.broker.handlers import HANDLERS
from cordwood.broker.handlers.api_versions import unsupported_version
from cordwood.errors import ProtocolError
from cordwood.wire.frame import RequestHead, read_request, read_request_head
from cordwood.wire.registry import API_VERSIONS_KEY

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker


def serve(broker: "Broker", connection: Connection, frame: memoryview) -> None:
    """Deal with one request: answer it, park it, or raise ``ProtocolError`` if it can not be understood."""
    head = read_request_head(frame)
    handler = HANDLERS.get(head.api_key)
    if handler is None or not head.known:
        _unknown(broker, connection, head)
        return
    request = read_request(head, frame)
    call = Call(connection, head.api_key, head.api_version, head.correlation_id, head.client_id)
    connection.waiting.append(call)
    response = handler(broker, call, request)
    if response is not None:
        broker.reply(call, response)


def _unknown(broker: "Broker", connection: Connection, head: RequestHead) -> None:
    if head.api_key == API_VERSIONS_KEY:
        call = Call(connection, API_VERSIONS_KEY, 0, head.correlation_id, head.client_id)
        connection.waiting.append(call)
        broker.reply(call, unsupported_version())
        return
    name = head.api.name if head.api is not None else f"API {head.api_key}"
    raise ProtocolError(f"{name} version {head.api_version} is not served here")
