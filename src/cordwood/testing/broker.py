"""``with Broker() as broker``: a whole broker in a background thread, on a free port, gone at the end."""

import asyncio
import logging
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from cordwood.errors import ConfigError
from cordwood.run.loop import new_event_loop
from cordwood.run.node import Node

_ARGUMENTS: Final = {"log.dirs": "data", "log.dir": "data", "node.id": "node_id", "broker.id": "node_id"}


class Broker:
    """A broker in this process, for tests and notebooks.

    It is the same broker that ``cordwood serve`` runs: real sockets, real files. Without *data* the files go to a
    temporary directory that is removed at the end; with it they stay, and a later broker continues from them.

    Args:
        data: The directory of the logs.
        host: The address to listen on.
        port: The port to listen on; 0 is any free one.
        node_id: This broker's id.
        settings: Kafka's broker settings, such as ``{"num.partitions": "4"}``. Values may be plain Python values.

    >>> with Broker() as broker:
    ...     broker.bootstrap.startswith("127.0.0.1:")
    True
    """

    def __init__(
        self,
        *,
        data: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        node_id: int = 1,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        for name in settings or {}:
            if name in _ARGUMENTS:
                raise ConfigError(f"{name} is given to Broker() as {_ARGUMENTS[name]}, not among the settings")
        self._data = None if data is None else os.fspath(data)
        self._own_directory: str | None = None
        self._remove_own: weakref.finalize[[str, int], Self] | None = None
        self._settings = {
            "listeners": f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:{port}",
            # A broker usually waits a while for more members to join a new group; tests have no crowd to wait for.
            "group.initial.rebalance.delay.ms": "0",
            **{name: _text(value) for name, value in (settings or {}).items()},
            "node.id": str(node_id),
        }
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._node: Node | None = None
        self._failure: BaseException | None = None

    @property
    def data(self) -> str:
        """The directory of the logs; a temporary one exists only while the broker runs."""
        directory = self._data if self._data is not None else self._own_directory
        assert directory is not None, "the broker is not running: it has no temporary directory"
        return directory

    @property
    def bootstrap(self) -> str:
        """The address to give to clients as ``bootstrap.servers``."""
        assert self._node is not None, "the broker is not running: use it in a with statement, or call start()"
        return self._node.address

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each listener, by the listener's name, for *settings* with several listeners."""
        assert self._node is not None, "the broker is not running"
        return self._node.addresses

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])

    def start(self) -> Self:
        """Start, and return once the broker accepts connections."""
        assert self._thread is None, "the broker is running already"
        if self._data is None:
            self._own_directory = tempfile.mkdtemp(prefix="cordwood-")
            # Also called when the interpreter exits, for a broker that nobody has stopped.
            self._remove_own = weakref.finalize(self, _remove, self._own_directory, os.getpid())
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="cordwood-broker", daemon=True)
        self._thread.start()
        started.wait()
        if self._failure is not None:
            self._finish()
            raise self._failure
        return self

    def stop(self) -> None:
        """Stop cleanly: when this returns, everything is on disk."""
        if self._thread is None:
            return
        assert self._loop is not None
        if self._node is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._node.ended.set)
        self._finish()
        if self._failure is not None:
            raise self._failure

    def _finish(self) -> None:
        assert self._thread is not None
        self._thread.join()
        self._thread = None
        self._node = None
        if self._remove_own is not None:
            self._remove_own()
        self._own_directory = self._remove_own = None

    def _run(self, started: threading.Event) -> None:
        loop = new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._serve(started))
        except BaseException as failure:
            self._failure = failure
        finally:
            asyncio.set_event_loop(None)
            loop.close()
            started.set()

    async def _serve(self, started: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        node = Node({**self._settings, "log.dirs": self.data}, logging.getLogger("cordwood"))
        await node.start()
        self._node = node
        started.set()
        try:
            await node.run()
        finally:
            await node.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _remove(directory: str, owner: int) -> None:
    """Remove the files of a broker that process *owner* started: a forked child must leave them alone."""
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


def _text(value: object) -> str:
    """A setting as Kafka writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(str(part) for part in value)
    return str(value)
