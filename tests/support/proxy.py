"""A road between a client and a server that can be cut, or go silent, or carry nonsense."""

import selectors
import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class Proxy:
    """Takes connections and passes bytes on, both ways, as long as it is not told otherwise."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = socket.socketpair()
        self._other_end: dict[socket.socket, socket.socket] = {}
        self._from_server: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._silent_to_server = self._silent_to_client = False
        self._refusing = False
        self._ended = False
        self.bytes_to_clients = 0
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    # ------------------------------------------------------------------ what a test does

    def lead_to(self, port: int) -> None:
        """For a server that has to know this address before it has one of its own."""
        self._target = (self._target[0], port)

    def cut(self) -> None:
        """Close everything; whoever comes is closed at once."""
        with self._lock:
            self._refusing = True
            self._drop_all()
        self._wake()

    def break_once(self) -> None:
        """Close what is open; new connections are welcome."""
        with self._lock:
            self._drop_all()
        self._wake()

    def go_silent(self, *, to_server: bool = True, to_client: bool = True) -> None:
        """Connections stay, and take bytes, and nothing arrives. What was sent meanwhile arrives after ``heal``."""
        with self._lock:
            self._silent_to_server, self._silent_to_client = to_server, to_client
            self._set_interest()
        self._wake()

    def heal(self) -> None:
        with self._lock:
            self._refusing = False
            self._silent_to_server = self._silent_to_client = False
            self._set_interest()
        self._wake()

    def send_nonsense(self, data: bytes) -> None:
        """Each client gets these bytes, as if the server had sent them."""
        with self._lock:
            for sock in self._other_end:
                if sock not in self._from_server:
                    _send(sock, data)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True
        self._wake()
        self._thread.join()
        with self._lock:
            self._drop_all()
        self._listener.close()
        self._wake_read.close()
        self._wake_write.close()
        self._selector.close()

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        while not self._ended:
            for key, _ in self._selector.select():
                sock = key.fileobj
                assert isinstance(sock, socket.socket)
                if sock is self._wake_read:
                    self._wake_read.recv(4096)
                    continue
                with self._lock:
                    if sock is self._listener:
                        self._accept()
                    elif sock in self._other_end:
                        self._pass_on(sock)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        if self._refusing:
            client.close()
            return
        try:
            server = socket.create_connection(self._target, timeout=5.0)
        except OSError:
            client.close()
            return
        self._other_end[client], self._other_end[server] = server, client
        self._from_server.add(server)
        self._set_interest()

    def _pass_on(self, sock: socket.socket) -> None:
        if self._is_silent(sock):
            return
        try:
            data = sock.recv(1 << 16)
        except OSError:
            data = b""
        if data:
            self.bytes_to_clients += len(data) if sock in self._from_server else 0
            _send(self._other_end[sock], data)
        else:
            self._drop(sock)

    def _is_silent(self, sock: socket.socket) -> bool:
        return self._silent_to_client if sock in self._from_server else self._silent_to_server

    def _set_interest(self) -> None:
        for sock in self._other_end:
            registered = sock in self._selector.get_map()
            if self._is_silent(sock) and registered:
                self._selector.unregister(sock)
            elif not self._is_silent(sock) and not registered:
                self._selector.register(sock, selectors.EVENT_READ)

    def _drop_all(self) -> None:
        for sock in list(self._other_end):
            self._drop(sock)

    def _drop(self, sock: socket.socket) -> None:
        for end in (sock, self._other_end.get(sock)):
            if end is not None and end in self._other_end:
                if end in self._selector.get_map():
                    self._selector.unregister(end)
                del self._other_end[end]
                self._from_server.discard(end)
                end.close()

    def _wake(self) -> None:
        self._wake_write.send(b"!")


def _send(sock: socket.socket, data: bytes) -> None:
    with suppress(OSError):  # whoever reads there will see that it is gone
        sock.sendall(data)
