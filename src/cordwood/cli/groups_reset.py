"""``cordwood groups reset-offsets``: where a group should continue reading.

The changes are shown first, and nothing changes without ``--execute``. New offsets stay inside their partition: one
before its first record or behind its end becomes that first offset or that end.
"""

import argparse
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient, OffsetSpec, TopicMetadata

from cordwood.client.connect import ClientError, all_topics, sentence, unknown_topic
from cordwood.client.groups import Group, commit_offsets, committed_offsets, crowd, describe_groups, unknown_group
from cordwood.client.offsets import Partition, list_offsets

from .options import group_name, utf8
from .position import DURATION_HELP, HELP, Position, Where, before, parse_duration_ms, parse_position
from .table import print_table

MEMBERS = (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP, KafkaError.REBALANCE_IN_PROGRESS)


@dataclass(frozen=True, slots=True)
class Shift:
    """How many records to move from the committed offset, forward or back."""

    by: int


Target = Position | Shift


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a partition begins and ends, and the offset for the requested time (-1: after the last record)."""

    first: int
    end: int
    at_time: int = -1


@dataclass(frozen=True, slots=True)
class Change:
    """One partition's committed offset, before and after. ``new`` is None if it stays, and ``note`` says why."""

    partition: Partition
    old: int | None
    new: int | None
    note: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP", type=group_name)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--topic",
        dest="topics",
        metavar="TOPIC[:P,P]",
        type=_topic,
        action="append",
        help="a topic, or some of its partitions; may be repeated",
    )
    which.add_argument(
        "--all-topics", action="store_true", help="every partition for which the group has a committed offset"
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--to", dest="target", metavar="WHERE", type=_position, help=HELP)
    where.add_argument(
        "--by-duration", dest="target", metavar="DURATION", type=_ago, help=f"to this long before now: {DURATION_HELP}"
    )
    where.add_argument(
        "--shift",
        dest="target",
        metavar="N",
        type=_shift,
        help="N records forward, or back (-N), from the committed offset",
    )
    parser.add_argument("--execute", action="store_true", help="do it; without this, only show what would change")
    parser.set_defaults(act=reset)


def _topic(text: str) -> tuple[str, tuple[int, ...] | None]:
    """A topic and its requested partitions, None for all."""
    name, colon, numbers = utf8(text).partition(":")
    if not name or (colon and not re.fullmatch("[0-9]{1,9}(,[0-9]{1,9})*", numbers)):
        raise argparse.ArgumentTypeError(f"{text} names no partitions; write it as topic or topic:0,2")
    return name, tuple(map(int, numbers.split(","))) if colon else None


def _position(text: str) -> Position:
    try:
        return parse_position(text, now_ms=_now_ms())
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is neither a place nor a time; it may be {HELP}") from None


def _ago(text: str) -> Position:
    try:
        return before(_now_ms(), parse_duration_ms(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not {DURATION_HELP}") from None


def _shift(text: str) -> Shift:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(f"{text} is not a number of records, such as 100 or -100")
    return Shift(int(text))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def reset(admin: AdminClient, arguments: argparse.Namespace) -> int:
    (group,) = describe_groups(admin, [arguments.group])
    if group.members:
        raise _still_running(group)
    committed = committed_offsets(admin, group.name)
    topics = all_topics(admin)
    if arguments.all_topics:
        partitions = _committed_partitions(group, committed, topics)
    else:
        partitions = _named_partitions(arguments.topics, topics)
    changes = plan(arguments.target, committed, _bounds(admin, partitions, arguments.target))
    _show(changes)
    wanted = {change.partition: change.new for change in changes if change.new is not None}
    if not wanted:
        raise ClientError(f"nothing to reset: no partition asked for has a committed offset of {group.name} to shift")
    if not arguments.execute:
        new = " The group does not exist yet; that would create it." if group.is_missing else ""
        print(f"\nNothing was changed; add --execute to commit these offsets.{new}")
        return 0
    return _execute(admin, group, wanted)


def _still_running(group: Group) -> ClientError:
    return ClientError(
        f"{group.name} has {crowd(group.members)}, and running consumers would not notice new offsets and soon commit "
        "their own again; stop them first (one that died without a word counts until its session ends), then try again"
    )


def _committed_partitions(
    group: Group, committed: Mapping[Partition, int], topics: Mapping[str, TopicMetadata]
) -> list[Partition]:
    """Partitions with a committed offset, of topics that still exist."""
    if group.is_missing:
        raise unknown_group(group.name)
    if not committed:
        raise ClientError(f"{group.name} has committed nothing yet; name the topics with --topic")
    known = [p for p in committed if p[0] in topics and p[1] in topics[p[0]].partitions]
    for topic in sorted({p[0] for p in committed} - {p[0] for p in known}):
        print(f"cordwood: the topic {topic} is gone; what {group.name} committed there stays", file=sys.stderr)
    if not known:
        raise ClientError(f"nothing to reset: all topics for which {group.name} has committed offsets are gone")
    return known


def _named_partitions(
    named: Sequence[tuple[str, tuple[int, ...] | None]], topics: Mapping[str, TopicMetadata]
) -> list[Partition]:
    wanted: list[Partition] = []
    for topic, numbers in named:
        if topic not in topics:
            raise unknown_topic(topic)
        there = sorted(topics[topic].partitions)
        for number in numbers or ():
            if number not in there:
                raise ClientError(f"{topic} has no partition {number}; it has 0 to {len(there) - 1}")
        wanted += [(topic, number) for number in (there if numbers is None else numbers)]
    return sorted(set(wanted))


def _bounds(admin: AdminClient, partitions: Sequence[Partition], target: Target) -> dict[Partition, Bounds]:
    first = list_offsets(admin, partitions, OffsetSpec.earliest())
    end = list_offsets(admin, partitions, OffsetSpec.latest())
    at_time: dict[Partition, int] = {}
    if isinstance(target, Position) and target.where is Where.TIME_MS:
        at_time = list_offsets(admin, partitions, OffsetSpec.for_timestamp(target.number))
    for topic, number in partitions:
        if not ((topic, number) in first and (topic, number) in end):
            raise ClientError(f"{topic} has no leader for partition {number} that knows its offsets; try again later")
    return {p: Bounds(first[p], end[p], at_time.get(p, -1)) for p in partitions}


def plan(target: Target, committed: Mapping[Partition, int], bounds: Mapping[Partition, Bounds]) -> list[Change]:
    """What to do with every partition."""
    return [_change(p, target, committed.get(p), bounds[p]) for p in bounds]


def _change(partition: Partition, target: Target, old: int | None, bounds: Bounds) -> Change:
    wanted = _wanted(target, old, bounds)
    if wanted is None:
        return Change(partition, old, None, "nothing is committed that could be shifted")
    if wanted < bounds.first:
        return Change(partition, old, bounds.first, f"{wanted} is before the first record")
    if wanted > bounds.end:
        return Change(partition, old, bounds.end, f"{wanted} is behind the end")
    return Change(partition, old, wanted)


def _wanted(target: Target, old: int | None, bounds: Bounds) -> int | None:
    """The offset asked for, wherever that is; None if there is no offset to start from."""
    match target:
        case Shift(by):
            return None if old is None else old + by
        case Position(Where.EARLIEST):
            return bounds.first
        case Position(Where.OFFSET, offset):
            return offset
        case Position(Where.BEFORE_END, count):
            return bounds.end - count
        case Position(Where.TIME_MS):
            return bounds.at_time if bounds.at_time >= 0 else bounds.end
        case _:
            return bounds.end


def _show(changes: Sequence[Change]) -> None:
    head = ["topic", "partition", "committed", "new", "change"]
    noted = any(change.note for change in changes)
    print_table([*head, *["note"] * noted], ([*_cells(change), *[change.note] * noted] for change in changes))


def _cells(change: Change) -> list[str]:
    topic, number = change.partition
    moved = None if change.old is None or change.new is None else change.new - change.old
    return [topic, str(number), *("-" if n is None else str(n) for n in (change.old, change.new, moved))]


def _execute(admin: AdminClient, group: Group, wanted: Mapping[Partition, int]) -> int:
    errors = commit_offsets(admin, group.name, wanted)
    if any(error.code() in MEMBERS for error in errors.values()):
        (group,) = describe_groups(admin, [group.name])
        raise _still_running(group)
    for (topic, number), error in errors.items():
        print(f"cordwood: {topic} partition {number} was not reset: {sentence(error)}", file=sys.stderr)
    done = len(wanted) - len(errors)
    print(f"\n{group.name} goes on at the new offset in {done} partition{'s' * (done != 1)}.")
    return 1 if errors else 0
