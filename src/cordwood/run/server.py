"""``cordwood serve``: one broker in this process, until a signal ends it."""

import asyncio
import gc
import logging
import resource
import signal
from collections.abc import Callable, Mapping

from cordwood.errors import ConfigError
from cordwood.run.loop import new_event_loop
from cordwood.run.node import Node


def serve(settings: Mapping[str, str], logger: logging.Logger, *, ready: Callable[[Node], None]) -> None:
    """Run a broker with these settings; *ready* is called once it accepts connections. Returns after SIGTERM or SIGINT.

    Raises:
        ConfigError: it cannot start with this configuration; the text says what to do.
    """
    if not __debug__:
        raise ConfigError("the broker does not run under python -O: its assertions guard your data")
    _raise_file_limit()
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(_serve(settings, logger, ready))
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _serve(settings: Mapping[str, str], logger: logging.Logger, ready: Callable[[Node], None]) -> None:
    node = Node(settings, logger)
    await node.start()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, node.ended.set)
    _calm_garbage_collector()
    ready(node)
    try:
        await node.run()
    finally:
        await node.stop()


def _raise_file_limit() -> None:
    """Every partition keeps files open, and every client a socket: take all descriptors that the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):  # macOS has a lower limit than it reports
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 10_240), hard))


def _calm_garbage_collector() -> None:
    """Make collections rare: what exists after the start stays, and reference counts free what requests leave behind.

    A full collection would make every client wait while it looks at all objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
