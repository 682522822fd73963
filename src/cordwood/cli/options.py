"""Options that several commands share."""

import argparse
import os
import re
from collections.abc import Sequence

from cordwood.client.raw_settings import RawSettings
from cordwood.errors import ConfigError

BOOTSTRAP = "127.0.0.1:9092"


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        default=os.environ.get("CORDWOOD_BOOTSTRAP", BOOTSTRAP),
        help=f"a broker of the cluster; default: $CORDWOOD_BOOTSTRAP, or {BOOTSTRAP}",
    )
    parser.add_argument(
        "-X",
        dest="properties",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a property of librdkafka, such as security.protocol=SASL_SSL; may be repeated",
    )


def raw_settings(arguments: argparse.Namespace) -> RawSettings:
    """The cluster options for what confluent-kafka has no call for; somebody waits, so no long patience."""
    properties = {"default.api.timeout.ms": "10000", **pairs("-X", arguments.properties)}
    return RawSettings.of_properties({**properties, "bootstrap.servers": arguments.bootstrap})


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` texts as a dictionary.

    >>> pairs("--set", ["log.retention.hours=24"])
    {'log.retention.hours': '24'}
    """
    split = [text.partition("=") for text in texts]
    for name, equals, _ in split:
        if not name or not equals:
            raise ConfigError(f"{option} {name} has no value; write {option} NAME=VALUE")
    return {name.strip(): value for name, _, value in split}


def whole_number(text: str) -> int:
    """For argparse: a number that is not negative."""
    if not re.fullmatch("[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number")
    return int(text)


def positive(text: str) -> int:
    """For argparse: a number of at least 1."""
    if (number := whole_number(text)) < 1:
        raise argparse.ArgumentTypeError("it must be at least 1")
    return number


def group_name(text: str) -> str:
    """For argparse: any text is a group's name, but for none at all."""
    if not text:
        raise argparse.ArgumentTypeError("a group's name can not be empty")
    return text
