"""From the threads of a shared store to the broker's loop: what happens there becomes an event here."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cordwood.config import BrokerConfig
from cordwood.errors import ConfigError, StorageError
from cordwood.ports import MetadataChange, Node, SessionState
from cordwood.run.lease import Lease

if TYPE_CHECKING:
    from cordwood.run.driver import Driver
    from cordwood.run.zookeeper_client import Credentials
    from cordwood.run.zookeeper_store import ZooKeeperStore


class StoreEvents:
    """A shared store, and the driver that is told, in order, what happens there. Nothing is told before ``begin``."""

    def __init__(self, config: BrokerConfig, logger: logging.Logger) -> None:
        """Connect to the cluster's ZooKeeper.

        Raises:
            ConfigError: there is no ZooKeeper, or it does not let us in.
        """
        self._loop = asyncio.get_running_loop()
        self._driver: Driver | None = None
        self._lease = Lease(lambda: self.store.certain_until_s, self._lease_ended)
        try:
            self.store = _connect(config, self, logger)
        except StorageError as error:
            raise ConfigError(f"{error}; start one with `cordwood zookeeper`, or correct --zookeeper") from None

    def begin(self, driver: "Driver") -> None:
        """From now on *driver* is told of everything."""
        self._driver = driver
        driver.trust(self._lease)
        self.store.begin()

    def changed(self, changes: Sequence[MetadataChange]) -> None:
        self._tell(lambda driver: driver.metadata_changed(changes))

    def reloaded(self, nodes: Sequence[Node]) -> None:
        self._tell(lambda driver: driver.metadata_reloaded(nodes))

    def session_changed(self, state: SessionState) -> None:
        self._tell(lambda driver: self._session_changed(driver, state))

    def _session_changed(self, driver: "Driver", state: SessionState) -> None:
        if state is SessionState.ALIVE:
            self._lease.renew()
        elif state is SessionState.LOST:
            self._lease.rest()
        driver.session_changed(state)

    def _lease_ended(self) -> None:
        """The driver has noticed the session's end before the store's thread; that must not decide otherwise later."""
        assert self._driver is not None
        self._driver.session_changed(SessionState.LOST)
        self.store.give_up_session()

    def _tell(self, event: "Callable[[Driver], None]") -> None:
        self._loop.call_soon_threadsafe(self._now, event)

    def _now(self, event: "Callable[[Driver], None]") -> None:
        if self._driver is not None:  # otherwise the start has failed
            event(self._driver)


def _connect(config: BrokerConfig, events: StoreEvents, logger: logging.Logger) -> "ZooKeeperStore":
    from cordwood.run.zookeeper_store import ZooKeeperStore  # a standalone broker starts faster without kazoo

    assert config.zookeeper_connect is not None
    timeout_ms = config.zookeeper_connection_timeout_ms
    return ZooKeeperStore(
        config.zookeeper_connect,
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        connection_timeout_ms=config.zookeeper_session_timeout_ms if timeout_ms is None else timeout_ms,
        credentials=_credentials(config),
        logger=logger,
        deliver=events.changed,
        reloaded=events.reloaded,
        session_changed=events.session_changed,
    )


def _credentials(config: BrokerConfig) -> "Credentials | None":
    if config.zookeeper_user is None:
        return None
    from cordwood.run.zookeeper_client import Credentials  # see above

    return Credentials(config.zookeeper_user, config.zookeeper_password or "")
