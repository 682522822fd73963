"""``cordwood topics``: create, list, describe, delete. Moving and electing have modules of their own."""

import argparse
import sys
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    ConfigSource,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicMetadata,
)

from cordwood.client.connect import (
    ANSWER_TIMEOUT_S,
    INTERNAL_TOPICS,
    ClientError,
    Cluster,
    all_topics,
    error_of,
    one_topic,
    sentence,
    unknown_topic,
)
from cordwood.client.insist import insist
from cordwood.client.offsets import list_offsets

from . import topics_elect, topics_reassign
from .options import Once, add_cluster_options, pairs, topic_name, utf8, whole_number
from .table import print_table

# The most that librdkafka asks a cluster for.
PARTITIONS_MAX = 100_000
REPLICAS_MAX = 10_000


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    create = actions.add_parser("create", help="create topics", description="Create topics.")
    create.add_argument("topics", metavar="TOPIC", type=topic_name, action=Once, nargs="+")
    create.add_argument(
        "--partitions",
        type=partial(whole_number, least=1, most=PARTITIONS_MAX),
        default=-1,
        help="how many; default: the broker's num.partitions",
    )
    create.add_argument(
        "--replication-factor",
        type=partial(whole_number, least=1, most=REPLICAS_MAX),
        default=-1,
        help="copies of each partition; default: the broker's default.replication.factor",
    )
    create.add_argument(
        "--config",
        metavar="NAME=VALUE",
        type=utf8,
        action="append",
        default=[],
        help="a topic setting, such as retention.ms=3600000",
    )
    create.add_argument("--if-not-exists", action="store_true", help="accept that a topic exists already")
    create.set_defaults(act=_create)

    listing = actions.add_parser("list", help="list topics", description="List the topics' names.")
    listing.add_argument("-l", "--long", action="store_true", help="also show how many partitions and replicas")
    listing.add_argument("--internal", action="store_true", help="also list the cluster's internal topics")
    listing.set_defaults(act=_list)

    describe = actions.add_parser("describe", help="show topics in detail", description="Show topics in detail.")
    describe.add_argument(
        "topics",
        metavar="TOPIC",
        type=topic_name,
        action=Once,
        nargs="*",
        help="default: all except internal topics",
    )
    describe.set_defaults(act=_describe)

    delete = actions.add_parser(
        "delete", help="delete topics with all their records", description="Delete topics with all their records."
    )
    delete.add_argument("topics", metavar="TOPIC", type=topic_name, action=Once, nargs="+")
    delete.set_defaults(act=_delete)

    topics_reassign.configure(
        actions.add_parser(
            "reassign",
            help="move partitions to other brokers",
            description="Move a topic's partitions to other brokers.",
        )
    )
    topics_elect.configure(
        actions.add_parser(
            "elect-leaders",
            help="give partitions back to their preferred leaders",
            description="Give partitions back to their preferred leaders, or let any replica lead.",
        )
    )

    for action in (create, listing, describe, delete):
        add_cluster_options(action)


def run(arguments: argparse.Namespace) -> int:
    cluster = Cluster(arguments.bootstrap, pairs("-X", arguments.properties))
    status: int = arguments.act(cluster.admin(), arguments)
    return status


def _create(admin: AdminClient, arguments: argparse.Namespace) -> int:
    """Create what can be created, and report why the rest was not."""
    failed = False
    config = pairs("--config", arguments.config)
    new = {
        name: NewTopic(name, arguments.partitions, arguments.replication_factor, config=config)
        for name in arguments.topics
    }

    def ask(*names: str) -> "dict[str, Future[None]]":
        return admin.create_topics([new[name] for name in names], request_timeout=ANSWER_TIMEOUT_S)

    def ask_one(name: str) -> "Future[None]":
        return ask(name)[name]

    for name, future in ask(*new).items():
        outcome = insist(partial(ask_one, name), future)
        error = outcome.error
        is_there = error is not None and error.code() == KafkaError.TOPIC_ALREADY_EXISTS
        if error is None or (is_there and outcome.in_doubt):
            with suppress(ClientError):  # it exists; whether all brokers know that by now does not matter
                one_topic(admin, name, patience_s=5)
            print(f"created {name}")
        elif not (is_there and arguments.if_not_exists):
            failed = True
            exists = "exists already; add --if-not-exists to accept that"
            print(f"cordwood: {name} {exists if is_there else f'was not created: {outcome.text}'}", file=sys.stderr)
    return 1 if failed else 0


def _list(admin: AdminClient, arguments: argparse.Namespace) -> int:
    found = all_topics(admin)
    names = sorted(found if arguments.internal else found.keys() - INTERNAL_TOPICS)
    if arguments.long:
        print_table(["topic", "partitions", "replicas"], ([n, *_shape(found[n])] for n in names))
    else:
        for name in names:
            print(name)
    return 0


def _shape(topic: TopicMetadata) -> list[str]:
    replicas = {len(p.replicas) for p in topic.partitions.values()}
    return [str(len(topic.partitions)), "/".join(map(str, sorted(replicas)))]


def _describe(admin: AdminClient, arguments: argparse.Namespace) -> int:
    known = all_topics(admin)
    names = arguments.topics or sorted(known.keys() - INTERNAL_TOPICS)
    for position, name in enumerate(name for name in names if name in known):
        print(end="\n" if position else "")
        _describe_one(admin, name, known[name])
    missing = [name for name in names if name not in known]
    for name in missing:
        print(f"cordwood: {unknown_topic(name)}", file=sys.stderr)
    return 1 if missing else 0


def _describe_one(admin: AdminClient, name: str, topic: TopicMetadata) -> None:
    print(f"{name}: {len(topic.partitions)} partition{'s' * (len(topic.partitions) != 1)}")
    for setting, value in _altered_settings(admin, name).items():
        print(f"  {setting}={value}")
    partitions = sorted(topic.partitions)
    first = list_offsets(admin, [(name, p) for p in partitions], OffsetSpec.earliest())
    end = list_offsets(admin, [(name, p) for p in partitions], OffsetSpec.latest())
    rows = [
        [
            str(p),
            str(topic.partitions[p].leader),
            ",".join(map(str, topic.partitions[p].replicas)),
            ",".join(map(str, topic.partitions[p].isrs)),
            _offset_text(first.get((name, p))),
            _offset_text(end.get((name, p))),
        ]
        for p in partitions
    ]
    print_table(["partition", "leader", "replicas", "in sync", "first offset", "end offset"], rows, indent="  ")


def _offset_text(offset: int | None) -> str:
    return "?" if offset is None else str(offset)


def _altered_settings(admin: AdminClient, name: str) -> Mapping[str, str]:
    """The settings of the topic's own."""
    resource = ConfigResource(ResourceType.TOPIC, name)
    future = admin.describe_configs([resource], request_timeout=ANSWER_TIMEOUT_S)[resource]
    if (error := error_of(future)) is not None:
        raise ClientError(f"the settings of {name} could not be read: {sentence(error)}")
    entries = sorted(future.result().items())
    return {n: str(e.value) for n, e in entries if e.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}


def _delete(admin: AdminClient, arguments: argparse.Namespace) -> int:
    """Delete what can be deleted, and report why the rest was not."""
    failed = False

    def ask(*names: str) -> "dict[str, Future[None]]":
        return admin.delete_topics(list(names), request_timeout=ANSWER_TIMEOUT_S)

    def ask_one(name: str) -> "Future[None]":
        return ask(name)[name]

    for name, future in ask(*arguments.topics).items():
        outcome = insist(partial(ask_one, name), future)
        error = outcome.error
        is_gone = error is not None and error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        if error is None or (is_gone and outcome.in_doubt):
            print(f"deleted {name}")
        else:
            failed = True
            reason = unknown_topic(name) if is_gone else f"{name} was not deleted: {outcome.text}"
            print(f"cordwood: {reason}", file=sys.stderr)
    return 1 if failed else 0
