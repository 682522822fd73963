"""``cordwood groups describe``: members, who has which partition, committed offset, end offset, lag.

A partition is shown if it has an owner or a committed offset; a dash stands for whatever it does not have, and a
question mark for what could not be found out, such as the end of a topic that is gone.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from confluent_kafka.admin import AdminClient, OffsetSpec, TopicMetadata

from cordwood.client.connect import all_topics
from cordwood.client.groups import Group, Member, committed_offsets, describe_groups, list_groups, unknown_group
from cordwood.client.offsets import Partition, list_offsets

from .options import Once, group_name
from .table import print_table


@dataclass(frozen=True, slots=True)
class Progress:
    """A group's progress in one partition."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    owner: str | None

    @property
    def lag(self) -> int | None:
        """Records still to be read; negative if the partition has lost what the group had read."""
        return None if self.committed is None or self.end is None else self.end - self.committed


def configure(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("groups", metavar="GROUP", type=group_name, action=Once, nargs="*", default=[])
    which.add_argument("--all", action="store_true", help="every group of the cluster")
    parser.add_argument("--json", action="store_true", help="one JSON object for each group")
    parser.set_defaults(act=describe)


def describe(admin: AdminClient, arguments: argparse.Namespace) -> int:
    names = [group.name for group in list_groups(admin)[0]] if arguments.all else arguments.groups
    groups = describe_groups(admin, names)
    missing = [] if arguments.all else [group for group in groups if group.is_missing]
    topics = all_topics(admin)
    for position, group in enumerate(group for group in groups if group not in missing):
        rows = progress_of(group, *_offsets(admin, group, topics))
        if arguments.json:
            print(json.dumps(_as_json(group, rows), ensure_ascii=False))
        else:
            print(end="\n" if position else "")
            _print_group(group, rows)
    for group in missing:
        print(f"cordwood: {unknown_group(group.name)}", file=sys.stderr)
    return 1 if missing else 0


def _offsets(
    admin: AdminClient, group: Group, topics: Mapping[str, TopicMetadata]
) -> tuple[dict[Partition, int], dict[Partition, int]]:
    """What the group has committed, and where all its partitions end."""
    committed = committed_offsets(admin, group.name)
    held = [partition for member in group.members for partition in member.partitions]
    known = [p for p in dict.fromkeys([*committed, *held]) if p[0] in topics and p[1] in topics[p[0]].partitions]
    return committed, list_offsets(admin, known, OffsetSpec.latest())


def progress_of(group: Group, committed: Mapping[Partition, int], ends: Mapping[Partition, int]) -> list[Progress]:
    """A row for each partition that has an owner or a committed offset."""
    owners = {partition: member.id for member in group.members for partition in member.partitions}
    return [
        Progress(*partition, committed.get(partition), ends.get(partition), owners.get(partition))
        for partition in sorted({*committed, *owners})
    ]


def _print_group(group: Group, rows: list[Progress]) -> None:
    facts = [group.state, f"{group.type} protocol", f"assignor {group.assignor}" * bool(group.assignor)]
    print(f"{group.name}: {', '.join(filter(None, facts))}, coordinated by {group.coordinator}")
    if group.members:
        print_table(
            ["member", "client id", "host", "instance id", "partitions"], map(_member_cells, group.members), indent="  "
        )
    else:
        print("  no members")
    if rows:
        print()
        head = ["topic", "partition", "committed", "end", "lag", "owner"]
        print_table(head, map(_progress_cells, rows), indent="  ")
        print()
    print(f"  {_total(rows)}")


def _member_cells(member: Member) -> list[str]:
    held = groupby(member.partitions, key=lambda partition: partition[0])
    texts = [f"{topic}:{','.join(str(number) for _, number in numbers)}" for topic, numbers in held]
    return [member.id, member.client_id or "-", member.host, member.instance_id or "-", " ".join(texts) or "-"]


def _progress_cells(row: Progress) -> list[str]:
    return [
        row.topic,
        str(row.partition),
        _number(row.committed, missing="-"),
        _number(row.end, missing="?"),
        _number(row.lag, missing="-" if row.committed is None else "?"),
        row.owner or "-",
    ]


def _number(value: int | None, *, missing: str) -> str:
    return missing if value is None else str(value)


def _total(rows: Iterable[Progress]) -> str:
    """The lag of all partitions together, and what could not be counted.

    >>> _total([Progress("t", 0, 5, 9, "m"), Progress("t", 1, None, 7, "m")])
    'total lag 4; 1 partition has no committed offset'
    """
    seen = list(rows)
    if not any(row.committed is not None for row in seen):
        return "nothing is committed"
    text = f"total lag {_lag(seen)}"
    if new := sum(row.committed is None for row in seen):
        text += f"; {_partitions(new)} no committed offset"
    if gone := sum(row.committed is not None and row.end is None for row in seen):
        text += f"; {_partitions(gone)} no known end"
    return text


def _lag(rows: Iterable[Progress]) -> int:
    return sum(max(0, row.lag) for row in rows if row.lag is not None)


def _partitions(count: int) -> str:
    return "1 partition has" if count == 1 else f"{count} partitions have"


def _as_json(group: Group, rows: list[Progress]) -> dict[str, object]:
    return {
        "group": group.name,
        "state": group.state,
        "type": group.type,
        "assignor": group.assignor or None,
        "coordinator": group.coordinator,
        "members": [
            {
                "id": member.id,
                "client_id": member.client_id,
                "host": member.host,
                "instance_id": member.instance_id,
                "partitions": [{"topic": topic, "partition": number} for topic, number in member.partitions],
            }
            for member in group.members
        ],
        "partitions": [
            {
                "topic": row.topic,
                "partition": row.partition,
                "committed": row.committed,
                "end": row.end,
                "lag": row.lag,
                "owner": row.owner,
            }
            for row in rows
        ],
        "lag": _lag(rows),
    }
