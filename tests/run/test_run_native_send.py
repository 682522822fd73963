"""Chunks sent in C (``native/send.c``): all of them, in order, in as few packets as can be, whatever it is handed."""

import ctypes
import errno
import fcntl
import os
import resource
import select
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from threading import Thread

import pytest

from cordwood.run.client_socket import JOINED_BYTES_MAX
from support.waiting import eventually
from wire.native_build import native

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere Python sends chunk by chunk")

Piece = bytes | bytearray | memoryview | tuple[int, int, int]
Pair = tuple[socket.socket, socket.socket]

CONTENT = Random(1).randbytes(3 << 20)
LONG_BYTES = 1 << 18  # of a slice that goes through a pipe
PIPE_BYTES = 1 << 20
ENDED = "a segment file ended before its slice"


def send(to: socket.socket, pieces: list[Piece]) -> int:
    left: int = native().send_chunks(to.fileno(), pieces)
    return left


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "segment"
    path.write_bytes(CONTENT)
    with path.open("rb") as opened:
        yield opened.fileno()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def tcp(stack: ExitStack) -> Pair:
    return tcp_pair(stack)


def tcp_pair(stack: ExitStack, buffer_bytes: int = 1 << 20) -> Pair:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        ours = stack.enter_context(socket.create_connection(listener.getsockname()))
        theirs = stack.enter_context(listener.accept()[0])
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
    ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return non_blocking(ours, theirs)


def unix_pair(stack: ExitStack, kind: int = socket.SOCK_STREAM, buffer_bytes: int = 1 << 20) -> Pair:
    ours, theirs = map(stack.enter_context, socket.socketpair(socket.AF_UNIX, kind))
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
    return non_blocking(ours, theirs)


def non_blocking(ours: socket.socket, theirs: socket.socket) -> Pair:
    ours.setblocking(False)
    theirs.setblocking(False)
    return ours, theirs


def received(theirs: socket.socket) -> bytes:
    """All that has come."""
    parts = []
    try:
        while part := theirs.recv(1 << 20):
            parts.append(part)
    except BlockingIOError:
        pass
    return b"".join(parts)


def messages(theirs: socket.socket) -> Iterator[bytes]:
    try:
        while message := theirs.recv(1 << 20):
            yield message
    except BlockingIOError:
        return


def bytes_of(pieces: list[Piece]) -> bytes:
    """What pieces of ``CONTENT`` and of bytes stand for."""
    return b"".join(CONTENT[piece[1] : piece[1] + piece[2]] if isinstance(piece, tuple) else piece for piece in pieces)


def rest_of(pieces: list[Piece], sent: int) -> list[Piece]:
    rest: list[Piece] = []
    for piece in pieces:
        size = piece[2] if isinstance(piece, tuple) else len(piece)
        gone = min(sent, size)
        sent -= gone
        if isinstance(piece, tuple):
            rest.append((piece[0], piece[1] + gone, size - gone))
        else:
            rest.append(memoryview(piece)[gone:])
    return rest


def random_pieces(random: Random, file: int) -> list[Piece]:
    pieces: list[Piece] = []
    small = [0, 1, 3, 70, 2_000]
    count, sizes = random.choice([(7, [*small, JOINED_BYTES_MAX - 1, JOINED_BYTES_MAX, LONG_BYTES]), (200, small)])
    for _ in range(count):
        size = random.choice(sizes)
        position = random.randrange(len(CONTENT) - size)
        data = CONTENT[position : position + size]
        if random.random() < 0.5:
            pieces.append((file, position, size))
        else:
            pieces.append(random.choice([bytes, bytearray, memoryview])(data))
    return pieces


@pytest.mark.parametrize("pair", [tcp_pair, unix_pair])
@pytest.mark.parametrize("seed", range(30))
def test_pieces_arrive_once_and_in_order(stack: ExitStack, file: int, pair: Callable[..., Pair], seed: int) -> None:
    random = Random(seed)
    ours, theirs = pair(stack, buffer_bytes=random.choice([1, 20_000, 1 << 20]))
    pieces = random_pieces(random, file)
    whole = bytes_of(pieces)
    came = b""
    sent = 0
    while sent < len(whole):
        before = sent
        sent = len(whole) - send(ours, rest_of(pieces, sent))
        assert before <= sent
        came += received(theirs)
        assert len(came) <= sent
    assert send(ours, []) == 0

    def all_came() -> bool:
        nonlocal came
        came += received(theirs)
        return len(came) >= len(whole)

    eventually(all_came, within_s=5, what="the last bytes")
    assert came == whole


def test_a_full_socket_leaves_all(stack: ExitStack, file: int) -> None:
    ours, theirs = unix_pair(stack)
    while send(ours, [CONTENT]) < len(CONTENT):
        pass
    assert send(ours, [b"more", (file, 0, 100)]) == 104
    received(theirs)
    assert send(ours, [b"more", (file, 0, 100)]) == 0
    assert received(theirs) == b"more" + CONTENT[:100]


def test_small_neighbours_take_one_system_call(stack: ExitStack, file: int) -> None:
    ours, theirs = unix_pair(stack, socket.SOCK_SEQPACKET)  # every call is a message
    half = bytes(JOINED_BYTES_MAX // 2)
    assert send(ours, [b"a", bytearray(b"b"), b"", memoryview(b"c"), (file, 0, 9), b"d", (file, 9, 0), b"e"]) == 0
    assert list(messages(theirs)) == [b"abc", CONTENT[:9], b"de"]
    assert send(ours, [half, half, b"x", half + b"y", half, b"z"]) == 0
    assert list(map(len, messages(theirs))) == [2 * len(half), len(half) + 2, len(half) + 1]


def test_many_small_pieces_take_few_system_calls(stack: ExitStack) -> None:
    ours, theirs = unix_pair(stack, socket.SOCK_SEQPACKET)
    pieces: list[Piece] = [bytes([number % 256]) for number in range(1000)]
    assert send(ours, pieces) == 0
    came = list(messages(theirs))
    assert b"".join(came) == bytes_of(pieces)
    assert len(came) == 8


# ---------------------------------------------------------------------- packets


def packets(ours: socket.socket) -> int:
    """Those with data that have left: ``tcpi_data_segs_out``."""
    at = 156
    return int.from_bytes(ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, at + 4)[at:], sys.byteorder)


def is_corked(ours: socket.socket) -> bool:
    return ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK) != 0


def test_a_small_answer_is_one_packet_with_its_end(tcp: Pair, file: int) -> None:
    assert send(tcp[0], [b"header", (file, 0, 5_000), b"end"]) == 0
    assert packets(tcp[0]) == 1
    assert send(tcp[0], [b"header", (file, 0, 5_000), b"en", b"d"]) == 0
    assert packets(tcp[0]) == 2
    assert not is_corked(tcp[0])


@pytest.mark.parametrize("size", [5_000, 30_000])
def test_a_header_waits_for_its_file(tcp: Pair, file: int, size: int) -> None:
    pieces: list[Piece] = [b"head", b"er", (file, 3, size), b"between", (file, 0, 9)]
    assert send(tcp[0], pieces) == 0
    assert packets(tcp[0]) == 1


@pytest.mark.parametrize("header", [b"header", b""])
def test_every_packet_of_a_long_answer_is_full(stack: ExitStack, file: int, header: bytes) -> None:
    """Whatever the reader acknowledges meanwhile: that made packets leave that were not."""
    ours, theirs = tcp_pair(stack, buffer_bytes=2 << 20)
    theirs.setblocking(True)
    answer: list[Piece] = [header, (file, 1, len(CONTENT) - 1)]
    size, answers = len(bytes_of(answer)), 40

    def read() -> None:
        room, left = bytearray(size), answers * size
        while left > 0:
            left -= theirs.recv_into(room)

    reader = Thread(target=read)
    reader.start()
    for _ in range(answers):
        left = size
        while left := send(ours, rest_of(answer, size - left)):
            select.select([], [ours], [])
    reader.join()
    full_packets = size // ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    assert packets(ours) <= 1.02 * answers * (full_packets + 1)


def test_no_cork_is_left_when_the_socket_is_full(stack: ExitStack, file: int) -> None:
    ours, _ = tcp_pair(stack, buffer_bytes=20_000)
    assert send(ours, [b"header", (file, 0, len(CONTENT)), b"end"]) > 3
    assert not is_corked(ours)


@pytest.mark.parametrize("before", [b"", b"header"])
def test_no_cork_is_left_by_an_error(tcp: Pair, file: int, before: bytes) -> None:
    for failing in ((file, len(CONTENT), 9), (999_999, 0, 9)):
        try:
            assert send(tcp[0], [before, failing, b"end"]) == 12
            assert before
        except OSError:
            assert not before
        assert not is_corked(tcp[0])


# ---------------------------------------------------------------------- long slices, through a pipe


def pipes() -> list[int]:
    """The descriptors of those that are as large as that for long slices."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # gone by now, or no pipe
            if fcntl.fcntl(int(name), fcntl.F_GETPIPE_SZ) == PIPE_BYTES:
                found.append(int(name))
    return found


@pytest.mark.parametrize("at", [0, 1])
def test_a_slice_may_be_longer_than_the_pipe(stack: ExitStack, file: int, at: int) -> None:
    ours, theirs = unix_pair(stack, buffer_bytes=4 << 20)
    assert send(ours, [(file, at, len(CONTENT) - at)]) == 0
    assert received(theirs) == CONTENT[at:]


def test_what_a_socket_does_not_take_reaches_nobody_else(stack: ExitStack, file: int) -> None:
    ours, theirs = unix_pair(stack, buffer_bytes=20_000)
    others, their_peer = unix_pair(stack)
    left = send(ours, [(file, 0, PIPE_BYTES)])
    assert 0 < left < PIPE_BYTES
    assert send(others, [(file, PIPE_BYTES, LONG_BYTES)]) == 0
    assert received(their_peer) == CONTENT[PIPE_BYTES : PIPE_BYTES + LONG_BYTES]
    assert received(theirs) == CONTENT[: PIPE_BYTES - left]


def test_who_finds_the_pipe_in_use_does_without(stack: ExitStack, file: int) -> None:
    blocked, reader = unix_pair(stack, buffer_bytes=1)
    blocked.setblocking(True)
    reader.setblocking(True)
    waits = Thread(target=lambda: send(blocked, [(file, 0, LONG_BYTES)]))
    waits.start()
    came = reader.recv(1)  # it has the pipe, and waits for the rest to be read
    ours, theirs = unix_pair(stack)
    assert send(ours, [(file, PIPE_BYTES, LONG_BYTES)]) == 0
    assert received(theirs) == CONTENT[PIPE_BYTES : PIPE_BYTES + LONG_BYTES]
    while len(came) < LONG_BYTES:
        came += reader.recv(1 << 20)
    waits.join()
    assert came == CONTENT[:LONG_BYTES]


def test_what_was_left_in_a_pipe_is_gone_with_it(stack: ExitStack, file: int) -> None:
    full, _ = unix_pair(stack, buffer_bytes=20_000)
    assert send(full, [(file, 0, LONG_BYTES)]) > 0
    assert pipes() == []


def in_child(is_well: Callable[[], bool]) -> None:
    """See whether something is so in a process that is forked for it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if is_well() else 1
        finally:
            os._exit(code)
    assert os.waitpid(child, 0) == (child, 0)


FORKS = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@FORKS
def test_a_process_that_was_forked_has_a_pipe_of_its_own(stack: ExitStack, file: int) -> None:
    ours, theirs = unix_pair(stack)
    assert send(ours, [(file, 0, LONG_BYTES)]) == 0
    assert received(theirs) == CONTENT[:LONG_BYTES]
    assert len(pipes()) == 2
    in_child(lambda: pipes() == [] and send(ours, [(file, 0, LONG_BYTES)]) == 0 and len(pipes()) == 2)
    assert received(theirs) == CONTENT[:LONG_BYTES]


@FORKS
def test_who_gets_no_pipe_does_without(stack: ExitStack, file: int) -> None:
    ours, theirs = unix_pair(stack)

    def is_sent_without() -> bool:
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, allowed[1]))
        left = send(ours, [b"header", (file, 0, LONG_BYTES), b"end"])
        resource.setrlimit(resource.RLIMIT_NOFILE, allowed)
        return left == 0 and pipes() == []

    in_child(is_sent_without)
    assert received(theirs) == b"header" + CONTENT[:LONG_BYTES] + b"end"


def lose_splice() -> None:
    """This process has no such system call from now on (a filter of seccomp)."""
    number = {"x86_64": 275, "aarch64": 76}[os.uname().machine]
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | errno.ENOSYS), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HP", len(steps), ctypes.addressof(code)))
    system = ctypes.CDLL(None, use_errno=True)
    assert system.prctl(38, 1, 0, 0, 0) == 0, "no new privileges"
    assert system.prctl(22, 2, program) == 0, os.strerror(ctypes.get_errno())


@FORKS
def test_where_there_is_no_splice_it_is_done_without(stack: ExitStack, file: int) -> None:
    ours, theirs = unix_pair(stack)

    def is_sent_without() -> bool:
        lose_splice()
        return send(ours, [b"header", (file, 0, LONG_BYTES), b"end"]) == 0

    in_child(is_sent_without)
    assert received(theirs) == b"header" + CONTENT[:LONG_BYTES] + b"end"


def test_a_long_slice_of_a_file_that_ended_is_an_error_once_it_comes_first(stack: ExitStack, file: int) -> None:
    ours, theirs = unix_pair(stack)
    position = len(CONTENT) - LONG_BYTES
    assert send(ours, [(file, position, 2 * LONG_BYTES), b"end"]) == LONG_BYTES + 3
    assert received(theirs) == CONTENT[position:]
    with pytest.raises(OSError, match=ENDED):
        send(ours, [(file, len(CONTENT), LONG_BYTES), b"end"])


# ---------------------------------------------------------------------- errors


def test_a_file_that_ended_is_an_error_once_it_comes_first(stack: ExitStack, file: int) -> None:
    ours, theirs = unix_pair(stack)
    size = len(CONTENT)
    assert send(ours, [b"header", (file, size - 10, 15), b"end"]) == 8
    assert received(theirs) == b"header" + CONTENT[-10:]
    with pytest.raises(OSError, match=ENDED) as caught:
        send(ours, [(file, size, 5), b"end"])
    assert caught.value.strerror is None
    assert received(theirs) == b""


def test_an_error_is_raised_when_nothing_was_sent(stack: ExitStack) -> None:
    ours, theirs = unix_pair(stack)
    assert send(ours, [b"sent", (999_999, 0, 9)]) == 9
    for to, pieces, expected in (
        (ours.fileno(), [(999_999, 0, 9)], errno.EBADF),
        (999_999, [b"data"], errno.EBADF),
        (ours.fileno(), [(ours.fileno(), 0, 9)], errno.ESPIPE),
    ):
        with pytest.raises(OSError, match=os.strerror(expected)) as caught:
            native().send_chunks(to, pieces)
        assert caught.value.errno == expected
    assert received(theirs) == b"sent"


@pytest.mark.parametrize("is_file_first", [True, False])
def test_a_peer_that_is_gone_is_an_error(stack: ExitStack, file: int, is_file_first: bool) -> None:
    ours, theirs = unix_pair(stack)
    theirs.close()
    with pytest.raises(BrokenPipeError):
        send(ours, [(file, 0, 9), b"data"] if is_file_first else [b"data", (file, 0, 9)])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), TypeError),
        ((1,), TypeError),
        ((1, [], 3), TypeError),
        ((1, (b"data",)), TypeError),
        ((1, b"data"), TypeError),
        (("1", []), TypeError),
        ((None, []), TypeError),
        ((-1, []), ValueError),
        ((1 << 31, []), ValueError),
        ((1 << 64, []), OverflowError),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: tuple[object, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        native().send_chunks(*arguments)


RELEASED = memoryview(b"data")
RELEASED.release()


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        (["text"], TypeError),
        ([None], TypeError),
        ([[b"data"]], TypeError),
        ([RELEASED], ValueError),
        ([memoryview(b"data")[::2]], BufferError),
        ([3], TypeError),
        ([()], ValueError),
        ([(3, 0)], ValueError),
        ([(3, 0, 1, 1)], ValueError),
        ([(3, 0, b"data")], TypeError),
        ([(3, None, 1)], TypeError),
        ([("3", 0, 1)], TypeError),
        ([(-1, 0, 1)], ValueError),
        ([(3, -1, 1)], ValueError),
        ([(3, 0, -1)], ValueError),
        ([(1 << 31, 0, 1)], ValueError),
        ([(3, 1 << 63, 1)], OverflowError),
        ([(3, 0, 1 << 63)], OverflowError),
        ([(3, 0, (1 << 63) - 1), (3, 0, 1)], OverflowError),
    ],
)
@pytest.mark.parametrize("count", [0, 100])
def test_pieces_that_make_no_sense_are_refused_before_any_is_sent(
    stack: ExitStack, pieces: list[object], error: type[Exception], count: int
) -> None:
    ours, theirs = unix_pair(stack)
    held = bytearray(b"held")
    with pytest.raises(error):
        native().send_chunks(ours.fileno(), [*[held] * count, held, *pieces])
    assert received(theirs) == b""
    held.clear()  # fails while somebody holds its buffer


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no code runs when a buffer is asked for")
def test_a_list_that_a_buffer_changes_is_sent_as_it_was(stack: ExitStack) -> None:
    pieces: list[object] = []

    class Changes:
        def __buffer__(self, flags: int) -> memoryview:
            pieces[:] = [b"x"] * 1000
            return memoryview(b"first")

    pieces += [Changes(), b"second"]
    ours, theirs = unix_pair(stack)
    assert native().send_chunks(ours.fileno(), pieces) == 0
    assert received(theirs) == b"firstsecond"


def test_other_threads_run_meanwhile_and_change_nothing(stack: ExitStack, file: int) -> None:
    ours, theirs = unix_pair(stack, buffer_bytes=1)
    ours.setblocking(True)
    theirs.setblocking(True)
    changing = bytearray(Random(2).randbytes(1 << 20))
    pieces: list[Piece] = [b"header", changing, (file, 0, len(CONTENT)), Random(3).randbytes(99)]
    whole, left = bytes_of(pieces), list[int]()
    sender = Thread(target=lambda: left.append(send(ours, pieces)))
    sender.start()
    came = theirs.recv(1)  # and it waits for the rest to be read
    pieces[:] = [b"x"] * 1000  # nobody else refers to what stood there
    with pytest.raises(BufferError):
        changing.clear()
    while len(came) < len(whole):
        came += theirs.recv(1 << 20)
    sender.join()
    changing.clear()
    assert came == whole
    assert left == [0]
