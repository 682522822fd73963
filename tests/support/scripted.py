"""A broker that answers what it is told to: frames in, any bytes out."""

import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from struct import Struct
from types import TracebackType
from typing import Self

from cordwood.wire.frame import read_request_head, response_frame
from cordwood.wire.messages import ApiVersionsResponse, ApiVersionsResponseApi
from cordwood.wire.registry import APIS

_LENGTH = Struct(">i")

Answer = Callable[[memoryview], bytes | None]
"""From a request's frame to the bytes to send; None hangs up."""


class ScriptedBroker:
    """Listens on a free port; each connection gets the answers in their order, the last one again and again."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.connections = 0

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as received:
            number = 0
            with suppress(OSError):  # the client may hang up at any time
                while len(head := received.read(_LENGTH.size)) == _LENGTH.size:
                    frame = memoryview(received.read(_LENGTH.unpack(head)[0]))
                    reply = self._answers[min(number, len(self._answers) - 1)](frame)
                    number += 1
                    if reply is None:
                        return
                    connection.sendall(reply)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)


def versions(frame: memoryview) -> bytes:
    """An ApiVersions answer: all that the wire layer knows."""
    entries = [
        ApiVersionsResponseApi(api_key=api.key, min_version=api.versions.start, max_version=api.versions.stop - 1)
        for api in APIS.values()
    ]
    return message(ApiVersionsResponse(api_keys=entries))(frame)


def message(response: object) -> Callable[[memoryview], bytes]:
    """Answer with this message, in the version of the question."""

    def answer(frame: memoryview) -> bytes:
        head = read_request_head(frame)
        chunks = response_frame(
            correlation_id=head.correlation_id, api_key=head.api_key, api_version=head.api_version, message=response
        )
        return b"".join(bytes(chunk) for chunk in chunks if isinstance(chunk, (bytes, bytearray, memoryview)))

    return answer


def raw(data: bytes) -> Answer:
    return lambda frame: data


def hang_up(frame: memoryview) -> None:
    return None
