"""``cordwood serve``: one broker, from its arguments to the moment when it is ready."""

import argparse
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path

from cordwood.config import BROKER_SETTINGS, BrokerConfig, parse_properties, without_effect
from cordwood.errors import ConfigError
from cordwood.run.node import Node
from cordwood.run.server import serve

from .options import pairs, port_or_any, whole_number

HOST = "127.0.0.1"
PORT = 9092


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Settings have Kafka's names: docs/configuration.md lists them. The command line overrides the file; --host "
        "or --port replaces its listeners. Without --host, and without listeners in the file, only "
        "this machine can connect; --host 0.0.0.0 lets everybody in, and so does listeners=PLAINTEXT://:9092. SIGTERM "
        "or Ctrl-C ends it."
    )
    parser.add_argument(
        "--data", metavar="DIR", help="the directory of the logs; default: log.dirs, or ./cordwood-data"
    )
    parser.add_argument("--host", help=f"the address to listen on; default: {HOST}")
    parser.add_argument("--port", type=port_or_any, help=f"the port to listen on, 0 for any; default: {PORT}")
    parser.add_argument("--node-id", type=whole_number, help="this broker's number; default: node.id, or 1")
    parser.add_argument(
        "--zookeeper",
        metavar="HOST:PORT,…/CHROOT",
        help="join the cluster whose metadata is there, instead of running alone",
    )
    parser.add_argument("--config", metavar="FILE", help="a properties file, such as Kafka's server.properties")
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="a setting, such as log.retention.hours=24"
    )
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")


def run(arguments: argparse.Namespace) -> int:
    start_s = time.monotonic()
    settings = settings_from(arguments)
    logger = _logger(arguments.log_level)
    for line in without_effect(settings, BROKER_SETTINGS):
        logger.warning("%s", line)
    serve(settings, logger, ready=_announce(BrokerConfig.parse(settings), start_s))
    return 0


def settings_from(arguments: argparse.Namespace) -> dict[str, str]:
    """The file's settings, overridden by those of the command line."""
    settings = {} if arguments.config is None else parse_properties(_read(arguments.config))
    settings |= pairs("--set", arguments.set)
    if arguments.data is not None:
        settings["log.dirs"] = arguments.data
    if arguments.zookeeper is not None:
        settings["zookeeper.connect"] = arguments.zookeeper
    if arguments.node_id is not None:
        settings.pop("broker.id", None)
        settings["node.id"] = str(arguments.node_id)
    if arguments.host is not None or arguments.port is not None:
        host = arguments.host if arguments.host is not None else HOST
        port = arguments.port if arguments.port is not None else PORT
        settings["listeners"] = f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:{port}"
    return settings


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}; --config wants a properties file") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not a text in UTF-8; --config wants a properties file") from None


def _logger(level: str) -> logging.Logger:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("cordwood")
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    return logger


def _announce(config: BrokerConfig, start_s: float) -> Callable[[Node], None]:
    """Say in one line that the broker accepts connections, and where."""

    def ready(node: Node) -> None:
        took_s = time.monotonic() - start_s
        where = ",".join(node.addresses.values())
        print(
            f"broker {config.node_id} is ready at {where}, data in {config.data_directory()} ({took_s:.2f} s)",
            flush=True,
        )

    return ready
