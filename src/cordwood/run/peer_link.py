"""A link to another broker: dialled by this one, and from then on a socket like a client's, seen from the other end."""

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from typing import Final

from cordwood.broker.connection import Connection, Peer
from cordwood.ids import ConnectionId, LinkId
from cordwood.ports import Chunk, Instant, LinkLoss
from cordwood.run.client_socket import ClientSocket
from cordwood.run.receive_buffers import ReceiveBuffers

FRAME_BYTES_MAX: Final = (1 << 31) - 1
NO_CONNECTION: Final = ConnectionId(0)

OnUp = Callable[[LinkId], None]
OnFrame = Callable[[LinkId, memoryview, Instant], None]
OnLost = Callable[[LinkId, LinkLoss, str], None]


class PeerLink:
    """One link, from dialling to its end. Once ``close`` was called, it reports no more events."""

    def __init__(
        self,
        link: LinkId,
        host: str,
        port: int,
        loop: asyncio.AbstractEventLoop,
        buffers: ReceiveBuffers,
        *,
        on_up: OnUp,
        on_frame: OnFrame,
        on_lost: OnLost,
    ) -> None:
        self._link = link
        self._host = host
        self._port = port
        self._loop = loop
        self._buffers = buffers
        self._on_up = on_up
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._stream: ClientSocket | None = None
        self._dialling: asyncio.Task[None] | None = loop.create_task(self._dial())

    async def _dial(self) -> None:
        try:
            sock = await self._connect()
        except OSError as error:
            self._dialling = None
            self._on_lost(self._link, _loss_of(error), error.strerror or str(error))
            return
        self._dialling = None
        self._stream = ClientSocket(
            sock,
            Connection(NO_CONNECTION, Peer(self._host, self._port, "", 0), 0),
            self._loop,
            self._buffers,
            on_frame=self._received,
            on_lost=self._ended,
            request_bytes_max=FRAME_BYTES_MAX,
            requests_max=1,
            unsent_bytes_max=FRAME_BYTES_MAX,
        )
        self._on_up(self._link)

    async def _connect(self) -> socket.socket:
        """A socket connected to the first of the host's addresses that accepts."""
        found = await self._loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        failure = OSError(errno.EADDRNOTAVAIL, "no address")
        for family, kind, protocol, _, address in found:
            sock = socket.socket(family, kind, protocol)
            try:
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await self._loop.sock_connect(sock, address)
                return sock
            except BaseException as error:
                sock.close()
                if not isinstance(error, OSError):
                    raise
                failure = error
        raise failure

    def send(self, chunks: Sequence[Chunk]) -> None:
        if self._stream is not None:
            self._stream.send(chunks)

    def _received(self, _: ClientSocket, frame: memoryview, moment: Instant) -> None:
        self._on_frame(self._link, frame, moment)

    def _ended(self, _: ClientSocket, reason: str, broke_protocol: bool) -> None:
        self._on_lost(self._link, LinkLoss.CLOSED, reason)

    def close(self) -> None:
        if self._dialling is not None:
            self._dialling.cancel()
        if self._stream is not None:
            self._stream.close()


def _loss_of(error: OSError) -> LinkLoss:
    return LinkLoss.REFUSED if error.errno == errno.ECONNREFUSED else LinkLoss.UNREACHABLE
