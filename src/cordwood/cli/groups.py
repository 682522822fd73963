"""``cordwood groups``: list, describe, reset-offsets, delete. Describing and resetting have modules of their own."""

import argparse
import json
import sys

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from cordwood.client.connect import Cluster, sentence
from cordwood.client.groups import (
    STATES,
    TYPES,
    Listing,
    crowd,
    delete_groups,
    describe_groups,
    list_groups,
    unknown_group,
)

from . import groups_describe, groups_reset
from .options import Once, add_cluster_options, group_name, pairs
from .table import print_table


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    listing = actions.add_parser("list", help="list groups", description="List groups with their type and state.")
    listing.add_argument(
        "--state",
        dest="states",
        action="append",
        choices=list(STATES.values()),
        help="only groups in this state; may be repeated",
    )
    listing.add_argument(
        "--type",
        dest="types",
        action="append",
        choices=list(TYPES.values()),
        help="only groups of this type; may be repeated",
    )
    listing.add_argument("--json", action="store_true", help="one JSON object for each group")
    listing.set_defaults(act=_list)

    describe = actions.add_parser(
        "describe",
        help="show members, offsets and lag",
        description="Show groups: which member reads what, and how far it is behind.",
    )
    groups_describe.configure(describe)

    reset = actions.add_parser(
        "reset-offsets",
        help="move a group's committed offsets",
        description="Move the committed offsets of a group without members. Shows what would change, and changes "
        "nothing, unless --execute is given.",
    )
    groups_reset.configure(reset)

    delete = actions.add_parser(
        "delete", help="delete groups with their offsets", description="Delete groups with all their committed offsets."
    )
    delete.add_argument("groups", metavar="GROUP", type=group_name, action=Once, nargs="+")
    delete.set_defaults(act=_delete)

    for action in (listing, describe, reset, delete):
        add_cluster_options(action)


def run(arguments: argparse.Namespace) -> int:
    cluster = Cluster(arguments.bootstrap, pairs("-X", arguments.properties))
    status: int = arguments.act(cluster.admin(), arguments)
    return status


def _list(admin: AdminClient, arguments: argparse.Namespace) -> int:
    groups, silent = list_groups(admin)
    wanted = [
        group
        for group in groups
        if group.state in (arguments.states or [group.state]) and group.type in (arguments.types or [group.type])
    ]
    if arguments.json:
        for group in wanted:
            print(json.dumps({"group": group.name, "type": group.type, "state": group.state}, ensure_ascii=False))
    else:
        print_table(["group", "type", "state"], map(_cells, wanted))
    for reason in silent:
        print(f"cordwood: groups are missing here, since a broker did not tell its own: {reason}", file=sys.stderr)
    return 1 if silent else 0


def _cells(group: Listing) -> list[str]:
    return [group.name, group.type, group.state]


def _delete(admin: AdminClient, arguments: argparse.Namespace) -> int:
    """Delete what can be deleted, and report why the rest was not."""
    failed = False
    for name, error in delete_groups(admin, arguments.groups).items():
        if error is None:
            print(f"deleted {name}")
        else:
            failed = True
            print(f"cordwood: {_why_not(admin, name, error)}", file=sys.stderr)
    return 1 if failed else 0


def _why_not(admin: AdminClient, name: str, error: KafkaError) -> str:
    if error.code() == KafkaError.GROUP_ID_NOT_FOUND:
        return str(unknown_group(name))
    if error.code() != KafkaError.NON_EMPTY_GROUP:
        return f"{name} was not deleted: {sentence(error)}"
    (group,) = describe_groups(admin, [name])
    return f"{name} was not deleted: it has {crowd(group.members)}; stop them first, then delete it"
