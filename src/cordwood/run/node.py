"""A whole broker, made from its settings (data directory, metadata, logs, sockets): started, run and stopped."""

import asyncio
import logging
import os
import random
import socket
from collections.abc import Mapping
from errno import EADDRNOTAVAIL

from cordwood.broker.broker import Broker
from cordwood.broker.replicas import Replicas
from cordwood.broker.settings import Settings
from cordwood.config import BrokerConfig
from cordwood.errors import ConfigError
from cordwood.ids import NodeId
from cordwood.log.directory import LogDirectory
from cordwood.run.clock import now
from cordwood.run.data_directory import DirectoryLock
from cordwood.run.descriptors import partitions_max
from cordwood.run.disk import RealDisk
from cordwood.run.driver import Driver
from cordwood.run.listener import open_listener
from cordwood.run.log_levels import ProcessLogLevels
from cordwood.run.metadata import Metadata, Place, open_shared, open_standalone
from cordwood.run.store_events import StoreEvents


class Node:
    """One running broker."""

    def __init__(self, static: Mapping[str, str], logger: logging.Logger) -> None:
        self._static = dict(static)
        self._config = BrokerConfig.parse(self._static)
        self._logger = logger
        self._driver: Driver | None = None
        self._lock: DirectoryLock | None = None
        self._events: StoreEvents | None = None
        self.ended = asyncio.Event()
        """When this is set, ``run`` returns."""
        self.address = ""
        """host:port of the first listener, once it listens."""
        self.addresses: dict[str, str] = {}
        """The same for every listener, by its name."""

    async def start(self) -> None:
        """Open everything and listen. If that is impossible, raises ``ConfigError``, which says what to do."""
        directory = self._config.data_directory()
        try:
            os.makedirs(directory, exist_ok=True)
        except FileExistsError:
            raise ConfigError(f"the data directory {directory} is a file; choose another --data") from None
        except OSError as error:
            raise ConfigError(
                f"the data directory {directory} cannot be made: {error.strerror}; choose another --data"
            ) from None
        self._lock = DirectoryLock(directory)
        try:
            self._open(directory)
        except BaseException:
            self._lock.release()
            raise

    def _open(self, directory: str) -> None:
        listeners = self._listen()
        try:
            entropy = random.SystemRandom()
            disk = RealDisk(directory)
            ports = {name: listener.getsockname()[1] for name, listener in listeners.items()}
            store, image, applicant = self._metadata(Place(self._config, directory, disk, ports), entropy)
            settings = Settings(self._static, image, self._config.node_id, self._logger)
            logs = LogDirectory(
                disk,
                decompressed_bytes_max=settings.config.max_decompressed_message_bytes,
                logger=self._logger,
            )
            replicas = Replicas(
                logs,
                NodeId(self._config.node_id),
                os.path.abspath(directory),
                self._logger,
                partitions_max=partitions_max(),
            )
            replicas.open(image, settings, now())
            broker = Broker(
                settings=settings,
                image=image,
                replicas=replicas,
                entropy=entropy,
                logger=self._logger,
                log_levels=ProcessLogLevels(self._logger),
                now=now(),
                applicant=applicant,
            )
            self._driver = Driver(broker, disk, store, self._logger, on_failure=self.ended.set)
        except BaseException:
            for listener in listeners.values():
                listener.close()
            raise
        if self._events is not None:
            # Begin before this broker writes anything: its own changes must be reported in order with those of others.
            self._events.begin(self._driver)
        self._driver.start(listeners)

    def _metadata(self, place: Place, entropy: random.Random) -> Metadata:
        """Open this broker's own store, or the one that it shares with others."""
        if place.config.zookeeper_connect is None:
            return open_standalone(place, entropy)
        self._events = StoreEvents(place.config, self._logger)
        try:
            return open_shared(place, self._events.store, entropy)
        except BaseException:
            self._events.store.close()
            raise

    def _listen(self) -> dict[str, socket.socket]:
        listeners: dict[str, socket.socket] = {}
        for endpoint in self._config.endpoints():
            try:
                sock = open_listener(endpoint.host, endpoint.port, backlog=self._config.socket_listen_backlog_size)
            except OSError as error:
                for listener in listeners.values():
                    listener.close()
                wrong = "--host" if isinstance(error, socket.gaierror) or error.errno == EADDRNOTAVAIL else "--port"
                where = f"{endpoint.host or '*'}:{endpoint.port}"
                raise ConfigError(f"cannot listen on {where}: {error.strerror}; choose another {wrong}") from None
            listeners[endpoint.name] = sock
        self.addresses = {name: _address(listener) for name, listener in listeners.items()}
        self.address = next(iter(self.addresses.values()))
        return listeners

    async def run(self) -> None:
        """Run until somebody sets ``ended``; raise whatever stopped the broker, if it failed."""
        assert self._driver is not None
        await self.ended.wait()
        if self._driver.failure is not None:
            raise self._driver.failure

    async def stop(self) -> None:
        assert self._driver is not None
        assert self._lock is not None
        await self._driver.stop()
        self._lock.release()


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
