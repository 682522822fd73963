"""The wires between brokers, and between brokers and ZooKeeper: cut both ways or one way, slowed down, and mended.

Every address that a broker is told leads through a small proxy in the test's own process, so this works on any machine
and needs no rights. A proxy knows who dials it: ZooKeeper's proxies are one for each broker, and of a broker's own
proxy's visitors the system tells which process they are.

What is cut is silent, as behind a broken switch: what was sent waits and arrives late when the wire is mended, as TCP
would have it; whoever dials hears nothing; whoever hangs up is not heard. A broker that is *gone* is something else:
its proxy stops listening, so that dialling it is refused, as on its own port.
"""

import asyncio
import socket
import sys
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from struct import Struct

import psutil

CHUNK = 1 << 16
_NO_LINGER = Struct("ii").pack(1, 0)
Node = int | str
KEEPER: Node = "zookeeper"
CLIENTS: Node = "clients"


class Network:
    """All proxies of a cluster, served by a thread of their own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._open: defaultdict[tuple[Node, Node], asyncio.Event] = defaultdict(_set_event)
        self._delay_s: dict[tuple[Node, Node], float] = {}
        self._pids: dict[int, Callable[[], int | None]] = {}
        self._listeners: dict[tuple[Node, int], _Listener] = {}
        self._talks: set[asyncio.Task[None]] = set()
        self._thread.start()

    # Making

    def to_broker(self, node: int, port: int, pid: Callable[[], int | None]) -> int:
        """A proxy in front of a broker that listens on *port*; the port to tell others. *pid* tells its process."""
        self._pids[node] = pid
        return self._listen(_Listener(node, port, None))

    def to_keeper(self, node: int, port: int) -> int:
        """A proxy for one broker in front of one ZooKeeper server."""
        return self._listen(_Listener(KEEPER, port, node))

    def _listen(self, listener: "_Listener") -> int:
        self._do(self._start(listener))
        self._listeners[listener.target, listener.proxy_port] = listener
        return listener.proxy_port

    # Faults

    def cut(self, one: Node, other: Node) -> None:
        """Nothing passes, either way."""
        self.cut_one_way(one, other)
        self.cut_one_way(other, one)

    def cut_one_way(self, source: Node, target: Node) -> None:
        """Nothing that *source* sends reaches *target*, whoever of them dialled."""
        self._do(self._set_gate((source, target), False))

    def slow(self, source: Node, target: Node, delay_s: float) -> None:
        """What *source* sends reaches *target* so much later."""
        self._delay_s[source, target] = delay_s

    def isolate(self, node: int, others: Iterable[Node]) -> None:
        """From all of these."""
        for other in others:
            self.cut(node, other)

    def join(self, one: Node, other: Node) -> None:
        """Between these two everything passes again; what has waited first."""
        for wire in ((one, other), (other, one)):
            self._delay_s.pop(wire, None)
            self._do(self._set_gate(wire, True))

    def mend(self) -> None:
        """Everything passes again; what has waited first."""
        self._delay_s.clear()
        for wire in list(self._open):
            self._do(self._set_gate(wire, True))

    def gone(self, node: int) -> None:
        """The broker's process has ended: nobody listens any more."""
        for listener in self._listeners.values():
            if listener.target == node:
                self._do(self._stop(listener))

    def back(self, node: int) -> None:
        """The broker's process is about to start."""
        for listener in self._listeners.values():
            if listener.target == node:
                self._do(self._start(listener))

    def close(self) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # In the loop's thread

    def _do(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    async def _set_gate(self, wire: tuple[Node, Node], is_open: bool) -> None:
        gate = self._open[wire]
        if is_open:
            gate.set()
        else:
            gate.clear()

    async def _start(self, listener: "_Listener") -> None:
        if listener.sock is None:
            listener.sock = socket.create_server(("127.0.0.1", listener.proxy_port))
            listener.sock.setblocking(False)
            listener.proxy_port = listener.sock.getsockname()[1]
            self._loop.add_reader(listener.sock, self._accept, listener)

    async def _stop(self, listener: "_Listener") -> None:
        if listener.sock is not None:
            self._loop.remove_reader(listener.sock)
            listener.sock.close()
            listener.sock = None

    async def _close(self) -> None:
        for listener in self._listeners.values():
            await self._stop(listener)
        await asyncio.sleep(0)  # a talk that has just begun must reach its first line to be ended well
        talks = list(self._talks)
        for task in talks:
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)

    def _accept(self, listener: "_Listener") -> None:
        assert listener.sock is not None
        try:
            near, _ = listener.sock.accept()
        except OSError:
            return  # whoever dialled has gone already
        near.setblocking(False)
        task = self._loop.create_task(self._talk(listener, near))
        self._talks.add(task)
        task.add_done_callback(self._talks.discard)

    async def _talk(self, listener: "_Listener", near: socket.socket) -> None:
        far = socket.socket()
        far.setblocking(False)
        try:
            source = listener.source if listener.source is not None else self._owner(near)
            await self._open[source, listener.target].wait()
            await self._open[listener.target, source].wait()
            await self._loop.sock_connect(far, ("127.0.0.1", listener.port))
            pumps = [
                self._loop.create_task(self._pump(near, far, source, listener.target)),
                self._loop.create_task(self._pump(far, near, listener.target, source)),
            ]
            try:
                # The first to end ends both: brokers and clients do not talk one way.
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        except OSError:
            pass  # whoever is left learns of it by the end of its connection
        finally:
            for wire in (near, far):
                _hang_up(wire)

    async def _pump(self, near: socket.socket, far: socket.socket, source: Node, target: Node) -> None:
        data = b"-"
        while data:
            try:
                data = await self._loop.sock_recv(near, CHUNK)
            except ConnectionError:
                data = b""
            if delay_s := self._delay_s.get((source, target), 0.0):
                await asyncio.sleep(delay_s)
            await self._open[source, target].wait()
            await self._loop.sock_sendall(far, data)

    def _owner(self, near: socket.socket) -> Node:
        """Which broker has dialled, by the port it dialled from; else a client."""
        running = {node: number for node, pid in self._pids.items() if (number := pid()) is not None}
        has_dialled = _has_dialled_on_linux if sys.platform == "linux" else _has_dialled
        return next((node for node, found in has_dialled(near, running).items() if found), CLIENTS)


def _has_dialled(near: socket.socket, pids: Mapping[int, int]) -> dict[int, bool]:
    """Which of these processes is at the other end."""
    port, found = near.getpeername()[1], dict.fromkeys(pids, False)
    for node, pid in pids.items():
        with suppress(psutil.Error):
            dialled = psutil.Process(pid).net_connections(kind="tcp4")
            found[node] = any(one.laddr and one.laddr.port == port for one in dialled)
    return found


def _has_dialled_on_linux(near: socket.socket, pids: Mapping[int, int]) -> dict[int, bool]:
    """The same with one look at the table of all connections, which takes the system milliseconds to make."""
    ends = [f":{port:04X}" for port in (near.getpeername()[1], near.getsockname()[1])]
    links = set()
    for line in Path("/proc/net/tcp").read_text().splitlines():
        fields = line.split()
        if fields[1].endswith(ends[0]) and fields[2].endswith(ends[1]):
            links.add(f"socket:[{fields[9]}]")
    found = dict.fromkeys(pids, False)
    for node, pid in pids.items():
        with suppress(OSError):
            found[node] = any(_link(file) in links for file in Path(f"/proc/{pid}/fd").iterdir())
    return found


def _link(file: Path) -> str:
    """What a descriptor stands for; it may have been closed meanwhile."""
    with suppress(OSError):
        return str(file.readlink())
    return ""


class _Listener:
    """One proxy: whom it stands for, on which port, and who alone may dial it (None: anybody)."""

    def __init__(self, target: Node, port: int, source: Node | None) -> None:
        self.target = target
        self.port = port
        self.source = source
        self.proxy_port = 0
        self.sock: socket.socket | None = None


def _set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


def _hang_up(wire: socket.socket) -> None:
    """Without waiting for what is not sent."""
    with suppress(OSError):
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    wire.close()
