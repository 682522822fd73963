"""One client's socket: bytes in, whole frames to the broker; chunks of replies out, file slices by ``sendfile``.

It uses plain non-blocking sockets with the loop's readiness callbacks, not transports: a frame is parsed where it was
received, a file slice goes from the page cache to the socket, and there is no queue on a request's path.

``receive_buffers`` decides which buffer to read into.
"""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from struct import Struct
from time import monotonic
from typing import Final

from cordwood.broker.connection import Connection
from cordwood.errors import ProtocolError
from cordwood.ports import Buffer, Chunk, FileSlice, Instant
from cordwood.run.clock import now
from cordwood.run.disk import RealFile
from cordwood.run.receive_buffers import SHARED_BYTES, ReceiveBuffers
from cordwood.wire.native import native

BELIEVED_BYTES: Final = (
    1 << 17
)  # a claimed length is trusted up to here; beyond, the buffer doubles as bytes really arrive
MOVED_BYTES_MAX: Final = 1 << 16  # of a partial frame; more than this stays where it is, if there is a spare buffer
SLICE_MS: Final = 10  # how long the requests of one client are handled before others get their turn
SMALL_BYTES: Final = 1024  # smaller replies are copied together at once
JOINED_BYTES_MAX: Final = 1 << 16  # unsent replies that are copied together rather than sent one by one
TOGETHER_MAX: Final = 256  # unsent chunks that are passed to C at once; the socket may accept only the first

_LENGTH: Final = Struct(">i")

OnFrame = Callable[["ClientSocket", memoryview, Instant], None]
OnLost = Callable[["ClientSocket", str, bool], None]
"""Called with the reason, and whether the client broke the protocol."""
_Piece = Buffer | tuple[int, int, int]
"""A chunk as C can read it. A file slice becomes (descriptor, position, length), as ``FileSlice`` may be compiled."""
_SendChunks = Callable[[int, list[_Piece]], int]
"""Sends to a socket, and returns how many bytes are left."""


class ClientSocket:
    """A connection's socket, and the bytes on their way between it and the broker."""

    __slots__ = (
        "_buffers",
        "_end",
        "_fd",
        "_gathering",
        "_lacks_bytes",
        "_loop",
        "_on_frame",
        "_on_lost",
        "_own",
        "_reading",
        "_recv_into",
        "_request_bytes_max",
        "_requests_max",
        "_resting",
        "_resuming",
        "_send",
        "_send_chunks",
        "_socket",
        "_start",
        "_unsent",
        "_unsent_bytes",
        "_unsent_bytes_max",
        "_writing",
        "closing",
        "connection",
    )

    def __init__(
        self,
        sock: socket.socket,
        connection: Connection,
        loop: asyncio.AbstractEventLoop,
        buffers: ReceiveBuffers,
        *,
        on_frame: OnFrame,
        on_lost: OnLost,
        request_bytes_max: int,
        requests_max: int,
        unsent_bytes_max: int,
    ) -> None:
        # For the server's life
        self._loop = loop
        self._buffers = buffers
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._request_bytes_max = request_bytes_max
        self._requests_max = requests_max
        self._unsent_bytes_max = unsent_bytes_max
        # For the connection's life
        self.connection = connection
        self._socket = sock
        self._fd = sock.fileno()
        self._recv_into = sock.recv_into
        self._send = sock.send
        self._send_chunks = _SEND_CHUNKS
        self._reading = False
        self._writing = False
        self._gathering = False
        self._resting = False
        self._resuming = False
        self.closing = False
        # Between two reads: a partial frame, or frames that must wait because the client is ahead of its replies
        self._own: memoryview | None = None
        self._start = 0
        self._end = 0
        self._lacks_bytes = 0  # room that is missing for a frame: until there is, the socket is not read
        # Between two writes
        self._unsent: deque[Chunk] = deque()
        self._unsent_bytes = 0
        self._resume_reading()

    # ------------------------------------------------------------------ in

    def _readable(self) -> None:
        own = self._own
        try:
            if own is None:
                received = self._recv_into(self._buffers.shared)
            else:
                received = self._recv_into(own[self._end : self._wanted(own)])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lost(error.strerror or str(error))
            return
        if received == 0:
            self._lost("the client closed it")
        elif own is None:
            self._take(self._buffers.shared, 0, received)
        else:
            self._end += received
            self._take(own, self._start, self._end)

    def _wanted(self, own: memoryview) -> int:
        """Where to stop reading into the socket's own buffer: after its first frame, so that it is then empty."""
        return min(self._start + _claimed(own, self._start, self._end), len(own))

    def _take(self, view: memoryview, start: int, end: int) -> None:
        """Handle as many frames in a buffer as possible, and keep the rest in a buffer of this socket's own.

        Afterwards the own buffer begins with an incomplete frame, or reading is paused until replies have left.
        """
        start = self._frames(view, start, end)
        # Replies that made a frame wait while they were being collected may have left since.
        while start < end and start + _claimed(view, start, end) <= end and not (self.closing or self._must_wait()):
            start = self._frames(view, start, end)
        if self.closing:
            return
        if start < end:
            self._keep(view, start, end)
        elif self._own is not None:
            self._own, self._start, self._end = None, 0, 0
            self._buffers.give_back(view)
            self._reserve(0)

    def _frames(self, view: memoryview, start: int, end: int) -> int:
        """Pass on every whole frame from *start* on; return the position of the first byte that must wait.

        Meanwhile replies are collected, to leave together: one system call, and one wake-up of the client, for all.
        """
        moment = now()  # everything in one read arrived at one time
        try:
            while end - start >= 4:
                (length,) = _LENGTH.unpack_from(view, start)
                if not 0 < length <= self._request_bytes_max:
                    raise ProtocolError(
                        _length_refusal(bytes(view[start : start + 4]), length, self._request_bytes_max)
                    )
                after = start + 4 + length
                if after > end or self._must_wait():
                    break
                self._gathering |= after < end  # a request that arrived alone is answered at once
                self._on_frame(self, view[start + 4 : after], moment)
                start = after
                if self.closing:
                    return end
                if start < end and monotonic() * 1000 - moment.mono_ms > SLICE_MS:
                    self._rest()
                    break
        except ProtocolError as error:
            self._lost(str(error), broke_protocol=True)
            return end
        finally:
            self._gathering = False
            if self._unsent and not self._writing:
                self._flush()
        return start

    def _keep(self, view: memoryview, start: int, end: int) -> None:
        """Keep what is left over in the socket's own buffer, with space for more of its first frame."""
        own, left, claimed = self._own, end - start, _claimed(view, start, end)
        if self.connection.room_bytes != max(left, claimed):
            self._find_room(left, claimed)
        fits = MOVED_BYTES_MAX < left < claimed <= SHARED_BYTES - start and not self._lacks_bytes
        if own is None and fits and self._buffers.keep(view):
            own = self._own = view
            self._start, self._end = start, end
        if own is None or start > self._start or left == len(own) < claimed:
            wanted = max(left, min(claimed, max(2 * left, BELIEVED_BYTES))) if not self._lacks_bytes else left
            kept = self._buffers.take(wanted)
            kept[:left] = view[start:end]
            self._own, self._start, self._end = kept, 0, left
            if own is not None:
                self._buffers.give_back(own)
        if self._must_wait():
            self._pause_reading()

    def _find_room(self, left: int, claimed: int) -> None:
        """Reserve room for what is left over, and for the whole of its first frame if that is incomplete; or wait."""
        assert not self._lacks_bytes
        needed = max(left, claimed) if left >= 4 else left
        if needed > left and not self._buffers.has_room:
            # What it holds while it waits does not count: otherwise waiting sockets could use up all the room together,
            # and none of them could continue.
            self._lacks_bytes, needed = needed, 0
            self.connection.waits_for_room = True
            self._buffers.wait(self)
        self._reserve(needed)

    def _reserve(self, size: int) -> None:
        connection = self.connection
        more, connection.room_bytes = size - connection.room_bytes, size
        self._buffers.reserve(more)

    def let_in(self) -> int:
        """There is now room for the frame that had to wait for it; return how many bytes that takes."""
        connection = self.connection
        connection.room_bytes, self._lacks_bytes = self._lacks_bytes, 0
        connection.waits_for_room = False
        connection.active_ms = now().mono_ms
        self.go_on()
        return connection.room_bytes

    def _must_wait(self) -> bool:
        """Must the client's next request wait, because it is too far ahead of its replies or there is no room?"""
        connection = self.connection
        return (
            self._unsent_bytes + connection.kept_bytes > self._unsent_bytes_max
            or len(connection.waiting) >= self._requests_max
            or connection.takes_turns
            or self._resting
            or self._lacks_bytes > 0
        )

    def _rest(self) -> None:
        """Give others a turn: this client's requests take long, and there may be a hundred of them."""
        self._resting = True
        self._loop.call_soon(self._rested)

    def _rested(self) -> None:
        self._resting = False
        self.go_on()

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def _resume_reading(self) -> None:
        if not self._reading and not self.closing:
            self._reading = True
            self._loop.add_reader(self._fd, self._readable)

    def go_on(self) -> None:
        """Replies have left: handle requests that had to wait, then continue reading.

        This happens in another iteration of the loop, because the replies to them may let another client's requests
        continue, and so on.
        """
        if not (self._reading or self._resuming or self.closing or self._must_wait()):
            self._resuming = True
            self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        self._resuming = False
        if self._own is not None and not self._reading and not self._must_wait():
            self._take(self._own, self._start, self._end)
        if not self._must_wait():
            self._resume_reading()

    # ------------------------------------------------------------------ out

    def send(self, chunks: Sequence[Chunk]) -> None:
        if self.closing:
            return
        if self._unsent or self._gathering:
            self._queue(chunks)
        elif len(chunks) == 1 and not isinstance(chunks[0], FileSlice):
            self._send_one(chunks[0])
        elif self._send_chunks is not None:
            self._send_at_once(chunks, self._send_chunks)
        else:
            small = [chunk for chunk in chunks if type(chunk) is bytes and len(chunk) < SMALL_BYTES]
            if len(small) == len(chunks):  # several replies: queueing them would take twice as long
                self._send_one(b"".join(small))
            else:
                self._queue(chunks)
                self._flush()

    def _send_one(self, chunk: bytes | bytearray | memoryview) -> None:
        """The usual reply: one small piece that the socket accepts at once."""
        try:
            sent = self._send(chunk)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._lost(error.strerror or str(error))
            return
        if sent < len(chunk):
            self._queue([memoryview(chunk)[sent:]])
            self._wait_writable()

    def _send_at_once(self, chunks: Sequence[Chunk], send_chunks: _SendChunks) -> None:
        """Send what the socket accepts, and queue only the rest."""
        try:
            left = send_chunks(self._fd, _pieces(list(chunks)))
        except OSError as error:
            self._lost(error.strerror or str(error))
            return
        if left:
            self._queue(chunks)
            self._forget(self._unsent_bytes - left)
            self._wait_writable()

    def _queue(self, chunks: Sequence[Chunk]) -> None:
        self._unsent.extend(chunks)
        self._unsent_bytes += sum(len(chunk) for chunk in chunks)

    def _writable(self) -> None:
        self.connection.active_ms = now().mono_ms  # the client reads what it was sent: it is slow, but not idle
        self._flush()
        self.go_on()

    def _flush(self) -> None:
        try:
            self._send_unsent()
        except (BlockingIOError, InterruptedError):
            self._wait_writable()
            return
        except OSError as error:
            self._lost(error.strerror or str(error))
            return
        if self._writing:
            self._writing = self.connection.unread = False
            self._loop.remove_writer(self._fd)

    def _send_unsent(self) -> None:
        """Send everything unsent. ``BlockingIOError``: the rest must wait until the socket is writable."""
        if self._send_chunks is not None:
            self._send_together(self._send_chunks)
        else:
            self._send_one_by_one()

    def _send_together(self, send_chunks: _SendChunks) -> None:
        while self._unsent:
            first = list(islice(self._unsent, TOGETHER_MAX))
            size = sum([len(chunk) for chunk in first])
            left = send_chunks(self._fd, _pieces(first))
            self._forget(size - left)
            if left:
                raise BlockingIOError

    def _send_one_by_one(self) -> None:
        while self._unsent:
            chunk = self._unsent[0] if len(self._unsent) == 1 else self._join_first()
            self._forget(self._send_chunk(chunk))

    def _forget(self, sent: int) -> None:
        """This many bytes have left."""
        unsent = self._unsent
        self._unsent_bytes -= sent
        while unsent and sent >= len(unsent[0]):
            sent -= len(unsent.popleft())
        if sent:
            unsent[0] = _rest(unsent[0], sent)

    def _join_first(self) -> Chunk:
        """Join the small chunks in front, so that they take one system call."""
        unsent = self._unsent
        first = unsent[0]
        if isinstance(first, FileSlice) or isinstance(unsent[1], FileSlice) or len(first) > JOINED_BYTES_MAX:
            return first
        joined, size = [first], len(first)
        for index in range(1, len(unsent)):
            chunk = unsent[index]
            size += len(chunk)
            if isinstance(chunk, FileSlice) or size > JOINED_BYTES_MAX:
                break
            joined.append(chunk)
        for _ in joined:
            unsent.popleft()
        unsent.appendleft(b"".join(joined))
        return unsent[0]

    def _send_chunk(self, chunk: Chunk) -> int:
        if isinstance(chunk, FileSlice):
            assert isinstance(chunk.file, RealFile)
            sent = os.sendfile(self._fd, chunk.file.fileno(), chunk.position, chunk.length)
            if sent == 0:
                # The file is shorter than the reply says: there is a bug, or somebody has changed our files.
                raise OSError("a segment file ended before its slice")
            return sent
        # More is coming: without this hint, the client would be woken just for the header.
        return self._send(chunk, _MSG_MORE if len(self._unsent) > 1 else 0)

    def _wait_writable(self) -> None:
        if not self._writing and not self.closing:
            self._writing = self.connection.unread = True
            self._loop.add_writer(self._fd, self._writable)

    @property
    def unsent_bytes(self) -> int:
        return self._unsent_bytes

    # ------------------------------------------------------------------ end

    def _lost(self, reason: str, *, broke_protocol: bool = False) -> None:
        if not self.closing:
            self.close()
            self._on_lost(self, reason, broke_protocol)

    def close(self) -> None:
        """Close the socket. What the kernel already has is still sent; the rest is dropped."""
        if self.closing:
            return
        self.closing = True
        if self._gathering:  # replies to requests that arrived together with the one that ends the connection
            with suppress(OSError):
                self._send_unsent()
        self._pause_reading()
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)
        self._unsent.clear()
        self._unsent_bytes = 0
        if self._own is not None:
            self._buffers.give_back(self._own)
            self._own = None
        self._socket.close()
        if self._lacks_bytes:
            self._buffers.wait_no_more(self)
        self._reserve(0)


_MSG_MORE: Final = getattr(socket, "MSG_MORE", 0)  # Linux has it


_SEND_CHUNKS: Final[_SendChunks | None] = getattr(native, "send_chunks", None)
"""``_send_one_by_one`` in a single call to C (``native/send.c``, which describes the small differences)."""


def _pieces(chunks: list[Chunk]) -> list[_Piece]:
    return [_piece(chunk) for chunk in chunks]


def _piece(chunk: Chunk) -> _Piece:
    if isinstance(chunk, FileSlice):
        assert isinstance(chunk.file, RealFile)
        return chunk.file.fileno(), chunk.position, chunk.length
    return chunk


def _claimed(view: memoryview, start: int, end: int) -> int:
    """How long the frame at *start* claims to be, with its length prefix: at least as long as the prefix."""
    return 4 + int(_LENGTH.unpack_from(view, start)[0]) if end - start >= 4 else 4


def _rest(chunk: Chunk, sent: int) -> Chunk:
    if isinstance(chunk, FileSlice):
        return FileSlice(chunk.file, chunk.position + sent, chunk.length - sent)
    return memoryview(chunk)[sent:]


def _length_refusal(prefix: bytes, length: int, limit: int) -> str:
    """Why a length is refused: say what the four bytes probably are instead."""
    if prefix[:2] == b"\x16\x03":
        return "a TLS handshake came in on a plain listener; set the client's security.protocol to PLAINTEXT"
    if prefix in (b"GET ", b"POST", b"HEAD", b"PUT "):
        return "an HTTP request came in on a Kafka listener"
    if length <= 0:
        return f"a request of length {length}"
    return f"a request of {length} bytes is longer than socket.request.max.bytes = {limit}"
