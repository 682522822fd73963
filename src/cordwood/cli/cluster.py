"""``cordwood cluster``: start a cluster on this machine, or show the status of any. Each has a module of its own."""

import argparse
from collections.abc import Callable

from . import cluster_status, cluster_up


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    cluster_up.configure(
        actions.add_parser(
            "up", help="run several brokers and a ZooKeeper", description="Run a cluster on this machine."
        )
    )
    cluster_status.configure(
        actions.add_parser(
            "status",
            help="show brokers, leaders, and partitions in trouble",
            description="Show a cluster's brokers and leaders, and the partitions that lack replicas or a leader.",
        )
    )


def run(arguments: argparse.Namespace) -> int:
    act: Callable[[argparse.Namespace], int] = arguments.act
    return act(arguments)
