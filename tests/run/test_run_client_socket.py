"""The buffers of a client's socket: whatever way its bytes arrive, every frame comes out once, whole and in order."""

import asyncio
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from select import select
from typing import Self

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cordwood.broker.connection import Call, Connection, Peer
from cordwood.errors import StorageError
from cordwood.ids import ConnectionId
from cordwood.ports import Chunk, FileSlice, Instant
from cordwood.run.client_socket import (
    _SEND_CHUNKS,
    BELIEVED_BYTES,
    JOINED_BYTES_MAX,
    TOGETHER_MAX,
    ClientSocket,
    _SendChunks,
)
from cordwood.run.disk import Names, RealFile
from cordwood.run.loop import new_event_loop
from cordwood.run.receive_buffers import PINCHED_BYTES, SHARED_BYTES, SPARES, ReceiveBuffers
from support.raw import framed
from support.waiting import eventually
from wire.native_build import native

REQUEST_BYTES_MAX = 4 << 20
UNSENT_BYTES_MAX = 1 << 20
LONG_BYTES = 1 << 18


class Server:
    """A client's socket, with a server behind it that notes frames and answers them at once, or later, or never."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        reply_bytes: int = 0,
        answer_at_once: bool = True,
        requests_max: int = 128,
        buffers: ReceiveBuffers | None = None,
        pair: tuple[socket.socket, socket.socket] | None = None,
    ) -> None:
        self.loop = loop
        self.reply_bytes = reply_bytes
        self.answer_at_once = answer_at_once
        self.frames: list[bytes] = []
        self.lost: list[str] = []
        ours, self.peer = pair or _tcp_pair()
        ours.setblocking(False)
        self.peer.setblocking(False)
        self.client = ClientSocket(
            ours,
            Connection(ConnectionId(1), Peer("here", 1, "there", 2), 0),
            loop,
            buffers or ReceiveBuffers(),
            on_frame=self._frame,
            on_lost=lambda _, reason, *__: self.lost.append(reason),
            request_bytes_max=REQUEST_BYTES_MAX,
            requests_max=requests_max,
            unsent_bytes_max=UNSENT_BYTES_MAX,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.peer.close()

    def _frame(self, client: ClientSocket, frame: memoryview, _: Instant) -> None:
        self.frames.append(bytes(frame))
        client.connection.waiting.append(Call(client.connection, 0, 0, 0, None))
        if self.answer_at_once:
            self.answer(1)

    def answer(self, count: int) -> None:
        for _ in range(count):
            self.client.connection.waiting.popleft()
            self.client.send([b"r" * self.reply_bytes])
            self.client.go_on()

    def answer_all(self) -> None:
        self.answer(len(self.client.connection.waiting))

    def turn(self) -> None:
        """Let the loop do what is ready to be done."""
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def feed(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self.peer.send(view) :]
            except BlockingIOError:
                self.turn()
                self.drain()
                self.answer_all()
        self.turn()

    def drain(self) -> int:
        """Read all replies that have come; how many bytes."""
        total = 0
        while True:
            try:
                data = self.peer.recv(1 << 20)
            except BlockingIOError:
                return total
            if not data:
                return total
            total += len(data)

    def feed_part(self, data: bytes) -> memoryview:
        """Feed a part of a frame, until all of it has come; the buffer that it came into."""

        def done() -> bool:
            self.turn()
            return self.client._end == len(data)

        self.feed(data)
        eventually(done, within_s=5, what="the arrival of a part of a frame")
        assert self.client._own is not None
        return self.client._own

    def settle(self, frame_count: int) -> None:
        """Go on until this many frames have come."""

        def done() -> bool:
            self.turn()
            self.drain()
            return len(self.frames) >= frame_count or bool(self.lost)

        eventually(done, within_s=5, what=f"the arrival of {frame_count} frames, {len(self.frames)} came")


def _tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a connection. Not a ``socketpair``: what TCP buffers is larger than the limit for unsent replies."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * UNSENT_BYTES_MAX)
    return ours, peer


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = new_event_loop()
    yield loop
    loop.close()


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    return [data[a:b] for a, b in pairwise(places) if a != b]


def test_frames_split_at_every_position(loop: asyncio.AbstractEventLoop) -> None:
    sent = [b"a", b"bb" * 20, b"c"]
    data = b"".join(map(framed, sent))
    for cut in range(1, len(data)):
        with Server(loop) as server:
            server.feed(data[:cut])
            server.feed(data[cut:])
            server.settle(len(sent))
            assert server.frames == sent
            assert not server.lost


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.one_of(st.integers(1, 60), st.sampled_from([4092, BELIEVED_BYTES - 4, 300_000])), max_size=8),
    cuts=st.lists(st.integers(0, 1 << 20), max_size=12),
    requests_max=st.integers(1, 3),
    reply_bytes=st.sampled_from([0, 10, 400_000, UNSENT_BYTES_MAX + 1]),
    at_once=st.booleans(),
)
def test_frames_come_out_once_and_in_order(
    loop: asyncio.AbstractEventLoop,
    sizes: list[int],
    cuts: list[int],
    requests_max: int,
    reply_bytes: int,
    at_once: bool,
) -> None:
    sent = [bytes([number]) * size for number, size in enumerate(sizes)]
    with Server(loop, reply_bytes=reply_bytes, requests_max=requests_max, answer_at_once=at_once) as server:
        for piece in pieces(b"".join(map(framed, sent)), cuts):
            server.feed(piece)
            server.drain()
            server.answer_all()
        while len(server.frames) < len(sent):
            server.settle(len(server.frames) + 1)
            server.answer_all()
        assert server.frames == sent
        assert not server.lost


def test_a_request_whose_turn_comes_while_replies_gather_is_not_forgotten(loop: asyncio.AbstractEventLoop) -> None:
    """Replies of more than the limit gather, then leave all at once: what waited because of them must go on."""
    with Server(loop, reply_bytes=UNSENT_BYTES_MAX // 2) as server:
        server.feed(b"".join(framed(bytes([number])) for number in range(20)))
        server.settle(20)
        assert server.frames == [bytes([number]) for number in range(20)]


def test_requests_that_waited_are_dealt_with_once(loop: asyncio.AbstractEventLoop) -> None:
    with Server(loop, answer_at_once=False, requests_max=2) as server:
        server.feed(b"".join(framed(bytes([number])) for number in range(100)))
        assert len(server.frames) == 2
        server.answer_at_once = True
        server.answer(2)
        server.settle(100)
        assert server.frames == [bytes([number]) for number in range(100)]


def test_a_frame_completed_while_its_client_must_wait_is_kept(loop: asyncio.AbstractEventLoop) -> None:
    """The rest of a request comes while too many replies are unsent: it waits, and the connection lives."""
    with Server(loop) as server:
        request = framed(b"late")
        server.feed(request[:6])
        server.client.send([b"r" * (UNSENT_BYTES_MAX * 40)])
        assert server.client.unsent_bytes > UNSENT_BYTES_MAX
        server.feed(request[6:])
        server.feed(framed(b"later"))
        assert server.frames == []
        server.settle(2)
        assert server.frames == [b"late", b"later"]
        assert not server.lost


def test_a_client_that_never_reads_is_read_no_further(loop: asyncio.AbstractEventLoop) -> None:
    with Server(loop, reply_bytes=100_000) as server:
        sent = 0
        try:
            while sent < 10_000:
                server.peer.send(framed(b"x" * 1000))
                sent += 1
                server.turn()
        except BlockingIOError:
            pass
        assert sent < 10_000, "the kernel took everything: nobody pushed back"
        assert server.client.unsent_bytes <= UNSENT_BYTES_MAX + 100_000


def test_requests_behind_one_that_takes_turns_wait_for_its_answer(loop: asyncio.AbstractEventLoop) -> None:
    with Server(loop, answer_at_once=False) as server:
        server.client.connection.takes_turns = True
        server.feed(framed(b"first") + framed(b"second"))
        assert server.frames == []
        server.client.connection.takes_turns = False
        server.client.go_on()
        server.settle(2)
        assert server.frames == [b"first", b"second"]


def test_a_connection_knows_whether_its_answers_are_read(loop: asyncio.AbstractEventLoop) -> None:
    with Server(loop) as server:
        connection = server.client.connection
        server.client.send([b"r"])
        assert not connection.unread
        server.client.send([b"r" * (UNSENT_BYTES_MAX * 40)])
        assert connection.unread

        def all_read() -> bool:
            server.turn()
            server.drain()
            return not connection.unread

        eventually(all_read, within_s=5, what="the end of the answer")
        assert server.client.unsent_bytes == 0


@pytest.mark.parametrize("length", [0, -1, -(2**31), REQUEST_BYTES_MAX + 1, 2**31 - 1])
def test_a_length_out_of_range_ends_the_connection(loop: asyncio.AbstractEventLoop, length: int) -> None:
    with Server(loop) as server:
        server.feed(framed(b"first") + length.to_bytes(4, "big", signed=True) + b"rest")
        assert server.frames == [b"first"]
        assert len(server.lost) == 1


def test_memory_follows_what_came_not_what_was_claimed(loop: asyncio.AbstractEventLoop) -> None:
    with Server(loop) as server:
        server.feed(REQUEST_BYTES_MAX.to_bytes(4, "big") + b"x")
        own = server.client._own
        assert own is not None
        assert len(own) <= BELIEVED_BYTES


def test_an_idle_connection_holds_no_buffer(loop: asyncio.AbstractEventLoop) -> None:
    with Server(loop) as server:
        server.feed(framed(b"x" * 500_000)[:100_000])
        assert server.client._own is not None
        server.feed(framed(b"x" * 500_000)[100_000:])
        server.settle(1)
        assert server.client._own is None


def test_most_of_a_large_frame_stays_where_it_came(loop: asyncio.AbstractEventLoop) -> None:
    buffers = ReceiveBuffers()
    sent = [bytes([number]) * 500_000 for number in range(3)]
    with Server(loop, buffers=buffers) as server, Server(loop, buffers=buffers) as other:
        for count, frame in enumerate(sent, 1):
            shared = buffers.shared
            assert server.feed_part(framed(frame)[:250_000]) is shared
            other.feed(framed(b"meanwhile"))
            server.feed(framed(frame)[250_000:])
            server.settle(count)
        assert server.frames == sent
        assert other.frames == [b"meanwhile"] * 3


@pytest.mark.parametrize("stays", [True, False])
def test_what_came_behind_a_whole_frame_stays_there_if_all_of_it_can(
    loop: asyncio.AbstractEventLoop, stays: bool
) -> None:
    buffers = ReceiveBuffers()
    first, second = b"1" * 300_000, b"2" * (700_000 if stays else 800_000)
    both = framed(first) + framed(second)
    with Server(loop, buffers=buffers) as server, Server(loop, buffers=buffers) as other:
        for count in (2, 4):
            shared = buffers.shared
            shared[:400_000] = both[:400_000]
            server.client._take(shared, 0, 400_000)  # as if one read had brought it
            assert (server.client._own is shared) is stays
            other.feed(framed(b"meanwhile"))
            server.feed(both[400_000:])
            server.settle(count)
            assert server.client._own is None
        assert server.frames == [first, second] * 2
        assert buffers.reserved_bytes == 0


def test_frames_left_unfinished_take_no_more_than_the_spare_buffers(loop: asyncio.AbstractEventLoop) -> None:
    buffers = ReceiveBuffers()
    half = framed(b"x" * 200_000)[:100_000]
    with ExitStack() as stack:
        for _ in range(2):
            servers = [stack.enter_context(Server(loop, buffers=buffers)) for _ in range(SPARES + 3)]
            held = [len(server.feed_part(half)) for server in servers]
            assert held == [SHARED_BYTES] * SPARES + [200_000] * 3
            for server in servers:
                server.client.close()  # so that the next round finds all spare buffers again


LONG = framed(b"x" * 1_000_000)
"""More than half of the room in the tests that follow."""


@pytest.fixture
def pinched() -> ReceiveBuffers:
    """Room for one long request; another is let in while there is any left."""
    return ReceiveBuffers(bytes_max=1_500_000)


def test_half_a_request_waits_in_its_socket_while_there_is_no_room(
    loop: asyncio.AbstractEventLoop, pinched: ReceiveBuffers
) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(loop, buffers=pinched)) for _ in range(5)]
        for server in servers:
            server.feed(LONG[:50_000])
        assert pinched.reserved_bytes == 2 * len(LONG)
        assert [server.client._end for server in servers[2:]] == [PINCHED_BYTES] * 3
        for server in servers:
            server.feed(LONG[50_000:])
            server.settle(1)
            assert server.frames == [LONG[4:]]
        assert pinched.reserved_bytes == 0


def test_room_goes_to_those_who_waited_longest(loop: asyncio.AbstractEventLoop, pinched: ReceiveBuffers) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(loop, buffers=pinched)) for _ in range(4)]
        for server in servers:
            server.feed(LONG[:50_000])
        servers[0].feed(LONG[50_000:])
        servers[0].settle(1)
        servers[3].feed(LONG[50_000:])
        assert servers[3].frames == []
        servers[2].feed(LONG[50_000:])
        servers[2].settle(1)
        servers[3].settle(1)


def test_a_connection_that_ends_gives_its_room_and_its_place_up(
    loop: asyncio.AbstractEventLoop, pinched: ReceiveBuffers
) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(loop, buffers=pinched)) for _ in range(4)]
        for server in servers:
            server.feed(LONG[:50_000])
        for server in (servers[2], servers[0], servers[1]):
            server.client.close()
        servers[3].feed(LONG[50_000:])
        servers[3].settle(1)
        assert pinched.reserved_bytes == 0


def test_requests_that_came_whole_are_served_without_room(
    loop: asyncio.AbstractEventLoop, pinched: ReceiveBuffers
) -> None:
    with ExitStack() as stack:
        one, two, three = (stack.enter_context(Server(loop, buffers=pinched)) for _ in range(3))
        for server in (one, two):
            server.feed(LONG[:50_000])
        for number in range(200):
            three.feed(framed(bytes([number]) * 100))
            three.settle(number + 1)


def test_a_prefix_in_pieces_asks_for_room_when_it_is_whole(
    loop: asyncio.AbstractEventLoop, pinched: ReceiveBuffers
) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(loop, buffers=pinched)) for _ in range(3)]
        for piece in (LONG[:1], LONG[1:3], LONG[3:10]):
            for server in servers:
                server.feed(piece)
        assert pinched.reserved_bytes == 2 * len(LONG)
        servers[0].client.close()
        servers[2].feed(LONG[10:])
        servers[2].settle(1)


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 20_000), min_size=1, max_size=4),
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9_000)), max_size=60),
    bytes_max=st.integers(1, 30_000),
)
def test_however_little_room_there_is_all_requests_come_out(
    loop: asyncio.AbstractEventLoop, lengths: list[int], steps: list[tuple[int, int]], bytes_max: int
) -> None:
    buffers = ReceiveBuffers(bytes_max)
    bodies = [bytes([number]) * length for number, length in enumerate(lengths)]
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(loop, buffers=buffers)) for _ in range(4)]
        left = [b"".join(map(framed, bodies))] * 4
        for number, size in [*steps, *((number, 80_016) for number in range(4))]:
            piece, left[number] = left[number][:size], left[number][size:]
            servers[number].feed(piece)
        for server in servers:
            server.settle(len(bodies))
            assert server.frames == bodies
        assert buffers.reserved_bytes == 0


def test_room_and_replies_may_come_in_any_order(loop: asyncio.AbstractEventLoop, pinched: ReceiveBuffers) -> None:
    """A client that is ahead of its replies waits for both."""
    for room_first in (True, False):
        with ExitStack() as stack:
            one, two = (stack.enter_context(Server(loop, buffers=pinched)) for _ in range(2))
            ahead = stack.enter_context(Server(loop, answer_at_once=False, requests_max=1, buffers=pinched))
            for server in (one, two):
                server.feed(LONG[:50_000])
            ahead.feed(framed(b"first") + LONG[:1000])
            ahead.answer_at_once = True
            for step in (one.client.close, ahead.answer_all) if room_first else (ahead.answer_all, one.client.close):
                assert not ahead.client._reading
                step()
                ahead.turn()
            ahead.feed(LONG[1000:])
            ahead.settle(2)
            assert ahead.frames == [b"first", LONG[4:]]


def test_who_goes_on_and_finds_no_room_waits_for_it(loop: asyncio.AbstractEventLoop, pinched: ReceiveBuffers) -> None:
    """The reply to the request that had waited would have it go on once more."""
    failures: list[object] = []
    loop.set_exception_handler(lambda _, context: failures.append(context))
    with ExitStack() as stack:
        ahead = stack.enter_context(Server(loop, answer_at_once=False, requests_max=1, buffers=pinched))
        ahead.feed(framed(b"first") + framed(b"second") + LONG[:1000])
        one, two = (stack.enter_context(Server(loop, buffers=pinched)) for _ in range(2))
        for server in (one, two):
            server.feed(LONG[:50_000])
        ahead.answer_at_once = True
        ahead.answer_all()
        for _ in range(3):
            ahead.turn()
        assert not failures
        one.client.close()
        ahead.feed(LONG[1000:])
        ahead.settle(3)
        assert ahead.frames == [b"first", b"second", LONG[4:]]


def test_a_connection_knows_what_room_it_takes_or_waits_for(
    loop: asyncio.AbstractEventLoop, pinched: ReceiveBuffers
) -> None:
    with ExitStack() as stack:
        one, two, three = (stack.enter_context(Server(loop, buffers=pinched)) for _ in range(3))
        for server in (one, two, three):
            server.feed(LONG[:50_000])
        connections = [server.client.connection for server in (one, two, three)]
        assert [connection.room_bytes for connection in connections] == [len(LONG), len(LONG), 0]
        assert [connection.waits_for_room for connection in connections] == [False, False, True]
        one.client.close()
        assert not connections[2].waits_for_room
        assert connections[2].active_ms > 0, "what it waited for was no fault of its own"
        three.feed(LONG[50_000:])
        three.settle(1)
        assert connections[2].room_bytes == 0


@pytest.mark.skipif(not hasattr(socket, "MSG_MORE"), reason="elsewhere nothing waits for what comes next")
def test_what_stands_before_a_file_waits_for_it(loop: asyncio.AbstractEventLoop, tmp_path: Path) -> None:
    (tmp_path / "segment").write_bytes(bytes(LONG_BYTES))
    file = RealFile(str(tmp_path / "segment"), create=False, names=Names(str(tmp_path)))
    records = FileSlice(file, 0, LONG_BYTES)
    seen: dict[bytes, int] = {}
    with Server(loop) as server:
        server.client._send_chunks = None
        send = server.client._send

        def watched(data: bytes, flags: int = 0) -> int:
            seen[bytes(data)] = flags
            return send(data, flags)

        server.client._send = watched  # type: ignore[assignment]
        server.client.send([b"header", records, b"between", records, b"tail"])
        total = 0

        def all_came() -> bool:
            nonlocal total
            server.turn()
            total += server.drain()
            return total == 2 * LONG_BYTES + len(b"headerbetweentail")

        eventually(all_came, within_s=5, what="the whole answer")
    file.close()
    assert seen == {b"header": socket.MSG_MORE, b"between": socket.MSG_MORE, b"tail": 0}


# ---------------------------------------------------------------------- both ways to send chunks


@pytest.fixture(params=["Python", "C"])
def send_chunks(request: pytest.FixtureRequest) -> _SendChunks | None:
    if request.param == "Python":
        return None
    if sys.platform != "linux":
        pytest.skip("C sends chunks on Linux alone")
    way: _SendChunks = native().send_chunks
    return way


CONTENT = os.urandom(1 << 20)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[RealFile]:
    (tmp_path / "segment").write_bytes(CONTENT)
    file = RealFile(str(tmp_path / "segment"), create=False, names=Names(str(tmp_path)))
    yield file
    file.close()


class Reader(Server):
    """A client that reads all answers, and a look at what is unsent meanwhile."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        send_chunks: _SendChunks | None,
        pair: tuple[socket.socket, socket.socket] | None = None,
    ) -> None:
        super().__init__(loop, pair=pair)
        self.client._send_chunks = send_chunks
        self.came = b""

    def read(self, size: int) -> bytes:
        """So many bytes, or fewer if the connection ends before."""

        def done() -> bool:
            self.turn()
            assert self.client.unsent_bytes == sum(map(len, self.client._unsent))
            data = None
            with suppress(BlockingIOError):
                data = self.peer.recv(1 << 20)
            self.came += data or b""
            return data == b"" or len(self.came) >= size

        eventually(done, within_s=5, what=f"{size} bytes")
        return self.came


def _narrow_pair(buffer_bytes: int) -> tuple[socket.socket, socket.socket]:
    """Not TCP, which takes its time when buffers are small."""
    ours, peer = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
    return ours, peer


def bytes_of(chunks: list[Chunk]) -> bytes:
    return b"".join(chunk.read() if isinstance(chunk, FileSlice) else chunk for chunk in chunks)


def test_a_compiled_broker_sends_chunks_in_c() -> None:
    """On Linux. Where nothing is compiled there is no C either."""
    is_compiled = "cordwood.wire._native" in sys.modules
    assert (_SEND_CHUNKS is not None) is (is_compiled and sys.platform == "linux")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    answers=st.lists(
        st.lists(
            st.tuples(st.booleans(), st.sampled_from([0, 1, 3, 1_000, 1_024, JOINED_BYTES_MAX, LONG_BYTES])),
            min_size=1,
            max_size=6,
        ),
        min_size=1,
        max_size=3,
    ),
    buffer_bytes=st.sampled_from([None, 1, 100_000]),
    gathers=st.booleans(),
)
def test_answers_arrive_whole_however_little_the_socket_takes(
    loop: asyncio.AbstractEventLoop,
    send_chunks: _SendChunks | None,
    file: RealFile,
    answers: list[list[tuple[bool, int]]],
    buffer_bytes: int | None,
    gathers: bool,
) -> None:
    sent: list[Chunk] = []
    with Reader(loop, send_chunks, None if buffer_bytes is None else _narrow_pair(buffer_bytes)) as reader:
        reader.client._gathering = gathers
        for answer in answers:
            chunks = [_chunk(file, is_slice, size) for is_slice, size in answer]
            sent += chunks
            reader.client.send(chunks)
        if gathers:
            reader.client._gathering = False
            reader.client._flush()
        whole = bytes_of(sent)
        assert reader.read(len(whole)) == whole
        assert not reader.client._unsent
        assert not reader.client._writing
        assert not reader.lost


def _chunk(file: RealFile, is_slice: bool, size: int) -> Chunk:
    """No empty slice: nobody makes one."""
    return FileSlice(file, size, size) if is_slice and size else CONTENT[-size:] if size else b""


def test_more_chunks_than_are_handed_over_at_once_arrive_whole(
    loop: asyncio.AbstractEventLoop, send_chunks: _SendChunks | None, file: RealFile
) -> None:
    chunks: list[Chunk] = []
    for number in range(2 * TOGETHER_MAX + 1):
        chunks += [number.to_bytes(4, "big"), FileSlice(file, number, 2_000)]
    with Reader(loop, send_chunks, _narrow_pair(30_000)) as reader:
        reader.client._gathering = True
        reader.client.send(chunks)
        reader.client._gathering = False
        reader.client._flush()
        whole = bytes_of(chunks)
        assert reader.read(len(whole)) == whole


@pytest.mark.parametrize("header", [b"", b"header"])
def test_a_segment_that_ended_too_early_ends_the_connection(
    loop: asyncio.AbstractEventLoop, send_chunks: _SendChunks | None, file: RealFile, header: bytes
) -> None:
    with Reader(loop, send_chunks) as reader:
        reader.client.send([header, FileSlice(file, len(CONTENT) - 10, 15), b"end"])
        assert header + CONTENT[-10:] == reader.read(1 << 20)
        assert reader.lost == ["a segment file ended before its slice"]


def test_a_slice_of_a_closed_file_is_a_failure_of_the_disk(
    loop: asyncio.AbstractEventLoop, send_chunks: _SendChunks | None, file: RealFile
) -> None:
    file.close()
    with Reader(loop, send_chunks) as reader, pytest.raises(StorageError, match="the file is closed"):
        reader.client.send([b"header", FileSlice(file, 0, 10)])


def test_a_client_that_is_gone_is_lost_once(
    loop: asyncio.AbstractEventLoop, send_chunks: _SendChunks | None, file: RealFile
) -> None:
    with Reader(loop, send_chunks) as reader:
        reader.client._pause_reading()  # or that finds out first
        reader.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # closes by a reset
        reader.peer.close()
        for _ in range(3):
            reader.client.send([b"header", FileSlice(file, 0, len(CONTENT)), b"end"])
            reader.turn()
        assert len(reader.lost) == 1
        assert not reader.client._unsent


@pytest.mark.skipif(sys.platform != "linux", reason="C sends chunks on Linux alone")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chunks=st.lists(
        st.tuples(st.booleans(), st.sampled_from([1, 3, 4_000, JOINED_BYTES_MAX - 3, JOINED_BYTES_MAX])),
        min_size=2,
        max_size=30,
    )
)
def test_both_ways_make_the_same_system_calls(
    loop: asyncio.AbstractEventLoop, file: RealFile, chunks: list[tuple[bool, int]]
) -> None:
    """On a socket where every call is a message of its own."""
    calls = [
        _messages(
            loop, way, [_chunk(file, is_slice and size < JOINED_BYTES_MAX // 2, size) for is_slice, size in chunks]
        )
        for way in (None, native().send_chunks)
    ]
    assert calls[0] == calls[1]


def _messages(loop: asyncio.AbstractEventLoop, way: _SendChunks | None, chunks: list[Chunk]) -> list[bytes]:
    with Reader(loop, way) as reader:
        ours, peer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, peer:
            ours.setblocking(False)
            reader.client._fd, descriptor = ours.fileno(), reader.client._fd
            reader.client._send = ours.send
            reader.client._queue(chunks)
            seen: list[bytes] = []
            while reader.client._unsent:
                with suppress(BlockingIOError):
                    reader.client._send_unsent()
                while select([peer], [], [], 0)[0]:
                    seen.append(peer.recv(1 << 20))
            reader.client._fd = descriptor
        return seen
