"""Options that several commands share."""

import argparse
import os
import re
from collections.abc import Sequence

from cordwood.client.raw_settings import RawSettings
from cordwood.errors import ConfigError

PATIENCE_MS = "30000"
"""As long as ``client.insist`` keeps trying with librdkafka."""

BOOTSTRAP = "127.0.0.1:9092"
PORT_MAX = 65_535
NUMBER_MAX = (1 << 31) - 1  # for brokers and partitions, which are 32 bits in Kafka's protocol


class Once(argparse.Action):
    """Takes several names, each of them once, however often it was given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[str] | None,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, list(dict.fromkeys(values or ())))


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        type=utf8,
        default=os.environ.get("CORDWOOD_BOOTSTRAP", BOOTSTRAP),
        help=f"a broker of the cluster; default: $CORDWOOD_BOOTSTRAP, or {BOOTSTRAP}",
    )
    parser.add_argument(
        "-X",
        dest="properties",
        metavar="NAME=VALUE",
        type=utf8,
        action="append",
        default=[],
        help="a property of librdkafka, such as security.protocol=SASL_SSL; may be repeated",
    )


def raw_settings(arguments: argparse.Namespace) -> RawSettings:
    """The cluster options, for what confluent-kafka lacks; since a person waits, with half of Kafka's timeout."""
    properties = {"default.api.timeout.ms": PATIENCE_MS, **pairs("-X", arguments.properties)}
    return RawSettings.of_properties({**properties, "bootstrap.servers": arguments.bootstrap})


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` texts as a dictionary.

    >>> pairs("--set", ["log.retention.hours=24"])
    {'log.retention.hours': '24'}
    """
    split = [(text, *text.partition("=")) for text in texts]
    for text, name, equals, _ in split:
        if not name.strip() or not equals:
            raise ConfigError(
                f"{option} {text} has no {'value' if name.strip() else 'name'}; write {option} NAME=VALUE"
            )
    return {name.strip(): value for _, name, _, value in split}


def whole_number(text: str, *, least: int = 0, most: int = NUMBER_MAX) -> int:
    """For argparse: a number in this range."""
    if not re.fullmatch("[0-9]{1,10}", text) or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from {least} to {most}")
    return int(text)


def positive(text: str) -> int:
    """For argparse: a number of at least 1."""
    return whole_number(text, least=1)


def port(text: str) -> int:
    """For argparse: a definite port."""
    return whole_number(text, least=1, most=PORT_MAX)


def port_or_any(text: str) -> int:
    """For argparse: a port, or 0 for any that is free."""
    return whole_number(text, most=PORT_MAX)


def utf8(text: str) -> str:
    """For argparse: a text. A word of the command line can be any bytes; Python hides invalid ones in the text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"it is not a text in UTF-8: {shown(text)}") from None
    return text


def shown(word: str) -> str:
    """A word of the command line in a printable form, including bytes that are not text."""
    return os.fsencode(word).decode(errors="backslashreplace")


def topic_name(text: str) -> str:
    """For argparse: a valid topic name, as far as that can be told without the cluster."""
    if not text:
        raise argparse.ArgumentTypeError("a topic's name cannot be empty")
    if not utf8(text).isprintable():
        raise argparse.ArgumentTypeError(f"{text!r} has a character that no topic's name has")
    return text


def group_name(text: str) -> str:
    """For argparse: any text but the empty one is a group's name."""
    if not text:
        raise argparse.ArgumentTypeError("a group's name cannot be empty")
    return utf8(text)
