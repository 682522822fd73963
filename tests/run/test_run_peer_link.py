"""Links to other brokers on real sockets: made, refused, lost, hung up."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress

from cordwood.ids import LinkId
from cordwood.ports import Instant, LinkLoss
from cordwood.run.loop import new_event_loop
from cordwood.run.peer_link import PeerLink
from cordwood.run.receive_buffers import ReceiveBuffers

LINK = LinkId(7)


class Heard:
    """What a link has told."""

    def __init__(self) -> None:
        self.up = asyncio.Event()
        self.lost = asyncio.Event()
        self.frame = asyncio.Event()
        self.frames: list[bytes] = []
        self.losses: list[LinkLoss] = []

    def on_up(self, link: LinkId) -> None:
        assert link == LINK
        self.up.set()

    def on_frame(self, link: LinkId, frame: memoryview, moment: Instant) -> None:
        self.frames.append(bytes(frame))
        self.frame.set()

    def on_lost(self, link: LinkId, loss: LinkLoss, reason: str) -> None:
        assert reason
        self.losses.append(loss)
        self.lost.set()


def dial(heard: Heard, port: int, host: str = "127.0.0.1") -> PeerLink:
    return PeerLink(
        LINK,
        host,
        port,
        asyncio.get_running_loop(),
        ReceiveBuffers(),
        on_up=heard.on_up,
        on_frame=heard.on_frame,
        on_lost=heard.on_lost,
    )


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send every frame back until one says bye, or nobody is there any more; then close."""
    with closing(writer), suppress(asyncio.IncompleteReadError):
        while (length := int.from_bytes(await reader.readexactly(4), "big")) != 3:
            writer.write(length.to_bytes(4, "big") + await reader.readexactly(length))


def run(test: Callable[[Heard, int], Awaitable[None]]) -> None:
    async def with_server() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server:
            await asyncio.wait_for(test(Heard(), server.sockets[0].getsockname()[1]), 20)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(with_server())


def test_frames_go_there_and_back_until_the_other_end_closes() -> None:
    async def test(heard: Heard, port: int) -> None:
        link = dial(heard, port, host="localhost")
        link.send([b"nobody is there yet"])
        await heard.up.wait()
        large = bytes(3_000_000)
        link.send([len(large).to_bytes(4, "big"), large])
        await heard.frame.wait()
        assert heard.frames == [large]
        link.send([b"\0\0\0\3bye"])
        await heard.lost.wait()
        assert heard.losses == [LinkLoss.CLOSED]

    run(test)


def test_nobody_listens() -> None:
    async def test(heard: Heard, port: int) -> None:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            dial(heard, sock.getsockname()[1])
            await heard.lost.wait()
        assert heard.losses == [LinkLoss.REFUSED]
        assert not heard.up.is_set()

    run(test)


def test_a_host_that_nobody_knows() -> None:
    async def test(heard: Heard, port: int) -> None:
        dial(heard, port, host="no such host")
        await heard.lost.wait()
        assert heard.losses == [LinkLoss.UNREACHABLE]

    run(test)


def test_nothing_is_heard_after_hanging_up() -> None:
    async def test(heard: Heard, port: int) -> None:
        other = Heard()
        early, late = dial(heard, port), dial(other, port)
        early.close()
        await other.up.wait()
        late.close()
        late.close()
        third = Heard()
        last = dial(third, port)
        await third.up.wait()
        assert not heard.up.is_set()
        assert heard.losses == other.losses == []
        last.close()

    run(test)
