"""``cordwood topics elect-leaders``: give partitions back to their preferred leaders, or let any replica lead."""

import argparse

from confluent_kafka.admin import AdminClient

from cordwood.client.connect import ClientError, all_topics, unknown_topic
from cordwood.client.raw_replicas import Partition, Replicas
from cordwood.errors import Error

from .options import Once, add_cluster_options, raw_settings, topic_name
from .table import print_table

PLAIN_WORDS = {
    Error.PREFERRED_LEADER_NOT_AVAILABLE: "its preferred leader is away or not in sync",
    Error.ELIGIBLE_LEADERS_NOT_AVAILABLE: "no replica that could lead is there",
    Error.UNKNOWN_TOPIC_OR_PARTITION: "it is gone",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "The preferred leader of a partition is the first of its replicas. An unclean election lets a replica lead "
        "that was not in sync: records that only the others have are lost."
    )
    parser.add_argument("topics", metavar="TOPIC", type=topic_name, action=Once, nargs="*", help="default: all topics")
    parser.add_argument(
        "--unclean",
        action="store_true",
        help="let any replica lead where none that is in sync is left; may lose records",
    )
    parser.set_defaults(act=run)
    add_cluster_options(parser)


def run(admin: AdminClient, arguments: argparse.Namespace) -> int:
    if arguments.unclean and not arguments.topics:
        raise ClientError("--unclean may lose records: name the topics")
    asked = _partitions(admin, arguments.topics) if arguments.topics else None
    with Replicas(raw_settings(arguments)) as replicas:
        results = replicas.elect(asked, unclean=arguments.unclean)
    elected = sum(refusal is None for refusal in results.values())
    failed = [
        [topic, str(partition), PLAIN_WORDS.get(refusal.error) or refusal.text]
        for (topic, partition), refusal in results.items()
        if refusal is not None and refusal.error is not Error.ELECTION_NOT_NEEDED
    ]
    print(f"{elected} partition{'s' * (elected != 1)} elected")
    if failed:
        print_table(["topic", "partition", "why it did not"], failed)
    return 1 if failed else 0


def _partitions(admin: AdminClient, topics: list[str]) -> list[Partition]:
    """All partitions of these topics."""
    known = all_topics(admin)
    for topic in topics:
        if topic not in known:
            raise unknown_topic(topic)
    return [(topic, p) for topic in topics for p in sorted(known[topic].partitions)]
