"""``cordwood cluster status``: brokers, controller, leaders, and missing replicas. It works with any Kafka cluster."""

import argparse
import json

from cordwood.client.connect import Cluster
from cordwood.client.health import Health, Partition, Trouble, read_health

from .options import add_cluster_options, pairs, raw_settings
from .table import print_table

SHOWN_MAX = 20


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--all", action="store_true", help=f"show all partitions in trouble, not only {SHOWN_MAX}")
    parser.set_defaults(act=run)
    add_cluster_options(parser)


def run(arguments: argparse.Namespace) -> int:
    admin = Cluster(arguments.bootstrap, pairs("-X", arguments.properties)).admin()
    health = read_health(admin, raw_settings(arguments))
    if arguments.json:
        print(json.dumps(_as_json(health), ensure_ascii=False))
    else:
        _show(health, None if arguments.all else SHOWN_MAX)
    return 0


def _show(health: Health, shown_max: int | None) -> None:
    print(
        f"cluster {health.cluster_id}: {_count(health.topics, 'topic')}, {_count(len(health.partitions), 'partition')}"
    )
    rows = [
        [
            str(broker.id),
            broker.address or "away",
            broker.rack or "-",
            "yes" if broker.id == health.controller else "",
            *map(str, (broker.leads, broker.replicas, broker.in_sync)),
        ]
        for broker in health.brokers
    ]
    print_table(["broker", "address", "rack", "controller", "leads", "replicas", "in sync"], rows)
    counts = {trouble: len(health.with_trouble(trouble)) for trouble in Trouble}
    print(", ".join(f"{trouble.value}: {count}" for trouble, count in reversed(counts.items())))
    troubled = sorted((p for p in health.partitions if p.troubles), key=_worst_first)
    if troubled:
        shown = troubled[:shown_max]
        print_table(["topic", "partition", "leader", "replicas", "in sync", "trouble"], map(_row, shown))
        if len(shown) < len(troubled):
            print(f"… and {len(troubled) - len(shown)} more; --all shows them")


def _worst_first(partition: Partition) -> tuple[int, str, int]:
    return list(Trouble).index(partition.troubles[0]), partition.topic, partition.number


def _row(partition: Partition) -> list[str]:
    return [
        partition.topic,
        str(partition.number),
        "-" if partition.leader < 0 else str(partition.leader),
        _list(partition.replicas),
        _list(partition.in_sync),
        ", ".join(trouble.value for trouble in partition.troubles),
    ]


def _list(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers)) or "-"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _as_json(health: Health) -> dict[str, object]:
    return {
        "cluster": health.cluster_id,
        "controller": health.controller,
        "topics": health.topics,
        "partitions": len(health.partitions),
        "brokers": [
            {
                "broker": broker.id,
                "address": broker.address,
                "rack": broker.rack,
                "leads": broker.leads,
                "replicas": broker.replicas,
                "in_sync": broker.in_sync,
            }
            for broker in health.brokers
        ],
        "troubled": [
            {
                "topic": partition.topic,
                "partition": partition.number,
                "leader": partition.leader,
                "replicas": partition.replicas,
                "in_sync": partition.in_sync,
                "troubles": [trouble.value for trouble in partition.troubles],
            }
            for partition in health.partitions
            if partition.troubles
        ],
    }
