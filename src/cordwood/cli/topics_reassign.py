"""``cordwood topics reassign``: move a topic's partitions to other brokers, and watch the move.

The cluster does the work; interrupting this command only ends the watching. A throttle consists of settings of the
topic and of the brokers, as with Kafka's own tool, and is removed by the first command that sees the move complete.
"""

import argparse
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Event

from confluent_kafka.admin import AdminClient, TopicMetadata

from cordwood.client.connect import ClientError, all_topics, unknown_topic
from cordwood.client.raw_replicas import Move, Partition, Refusal, Replicas
from cordwood.errors import Error

from .drawing import gauge, one_line
from .options import add_cluster_options, positive, raw_settings, topic_name
from .progress import size_text
from .reassign_plan import Brokers, plan
from .table import print_table
from .throttle import Throttle

POLL_S = 0.3
LINE = "\r\x1b[K"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Replicas are spread over racks, and stay where they are if they can. A move continues when this command is "
        "interrupted; --status shows it, and removes the throttle when everything is done."
    )
    parser.add_argument("topic", metavar="TOPIC", type=topic_name)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--to", metavar="BROKERS", type=numbers, help="the brokers to move it to, such as 1,2,3")
    what.add_argument("--cancel", action="store_true", help="stop moving, and leave everything where it was")
    what.add_argument("--status", action="store_true", help="show what is being moved, and its progress")
    parser.add_argument(
        "--partitions", metavar="NUMBERS", type=numbers, help="some partitions, such as 0,1; default: all"
    )
    parser.add_argument("--replication-factor", type=positive, help="copies of each partition; default: as many as now")
    parser.add_argument("--throttle", metavar="BYTES", type=positive, help="move at most this many bytes per second")
    parser.add_argument("--no-wait", action="store_true", help="start the move, and do not wait for its end")
    parser.set_defaults(act=run)
    add_cluster_options(parser)


def numbers(text: str) -> list[int]:
    """For argparse: comma-separated whole numbers, none of them twice."""
    if not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", text):
        raise argparse.ArgumentTypeError(f"{text} is not a list of numbers; write it as 1,2,3")
    found = [int(number) for number in text.split(",")]
    if len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"{text} has a number twice")
    return found


def run(admin: AdminClient, arguments: argparse.Namespace) -> int:
    if arguments.to is None and (arguments.throttle or arguments.replication_factor or arguments.no_wait):
        raise ClientError("--throttle, --replication-factor and --no-wait go with --to")
    known = all_topics(admin)
    if arguments.topic not in known:
        raise unknown_topic(arguments.topic)
    with Replicas(raw_settings(arguments)) as replicas:
        job = Job(admin, replicas, arguments.topic, known[arguments.topic], arguments.partitions)
        if arguments.cancel:
            return job.cancel()
        if arguments.status:
            return job.status()
        return job.move(
            arguments.to,
            replicas=arguments.replication_factor,
            throttle=arguments.throttle,
            wait=not arguments.no_wait,
        )


class Job:
    """What to do with some of a topic's partitions."""

    def __init__(
        self, admin: AdminClient, replicas: Replicas, topic: str, found: TopicMetadata, chosen: Sequence[int] | None
    ) -> None:
        missing = sorted(set(chosen or ()) - set(found.partitions))
        if missing:
            raise ClientError(f"{topic} has no partition {missing[0]}; it has {len(found.partitions)}, from 0 on")
        self._admin = admin
        self._replicas = replicas
        self._topic = topic
        self._partitions = {p: found.partitions[p] for p in sorted(chosen or found.partitions)}
        self._throttle = Throttle(admin, topic)

    def move(self, brokers: Sequence[int], *, replicas: int | None, throttle: int | None, wait: bool) -> int:
        under_way = self._under_way()
        current = {p: self._goal(p, under_way) for p in self._partitions}
        targets = self._targets(current, brokers, replicas)
        changes = {p: target for p, target in targets.items() if target != current[p]}
        if not changes and not under_way:
            print(f"{self._topic} has its replicas there already")
            return self._finish()
        if throttle is not None:
            self._slow_down(throttle, {p: self._source(p, under_way) for p in targets}, targets)
        if changes:
            self._check(self._replicas.move({(self._topic, p): target for p, target in changes.items()}), "moved")
        if not wait:
            print(f"{_count(len(changes), 'is', 'are')} being moved to brokers {_list(brokers)}")
            return 0
        return self._watch()

    def _slow_down(self, rate: int, current: Mapping[int, Brokers], targets: Mapping[int, Brokers]) -> None:
        try:
            self._throttle.set(rate, current, targets)
        except ClientError as error:
            raise ClientError(f"nothing was moved, because {error}") from None

    def cancel(self) -> int:
        under_way = self._under_way()
        if not under_way:
            raise ClientError(f"nothing of {self._topic} is being moved")
        refused = self._replicas.cancel((self._topic, p) for p in under_way)
        self._check({p: r for p, r in refused.items() if r.error is not Error.NO_REASSIGNMENT_IN_PROGRESS}, "stopped")
        print(f"the move of {_count(len(under_way))} was cancelled")
        return self._finish()

    def status(self) -> int:
        under_way = self._under_way()
        if not under_way:
            print(f"nothing of {self._topic} is being moved")
            return self._finish()
        print(Advance(self._sizes(under_way)).text())
        rows = [[str(p), _list(move.target), _list(move.adding), _list(move.removing)] for p, move in under_way.items()]
        print_table(["partition", "replicas to be", "to come", "to go"], rows)
        return 0

    def _targets(
        self, current: Mapping[int, Brokers], brokers: Sequence[int], replicas: int | None
    ) -> dict[int, Brokers]:
        """New replicas of each partition; partitions of the topic may have different numbers of them."""
        found: dict[int, Brokers] = {}
        counts = {p: replicas or len(mine) for p, mine in current.items()}
        racks = self._replicas.racks()
        for count in sorted(set(counts.values())):
            if count > len(brokers):
                raise ClientError(
                    f"{self._topic} has {count} replicas of each partition, so --to wants {count} brokers or more; "
                    "--replication-factor changes that"
                )
            some = {p: current[p] for p, wanted in counts.items() if wanted == count}
            found |= plan(some, brokers, count, racks)
        return dict(sorted(found.items()))

    def _watch(self) -> int:
        watch = _Watch(self._topic)
        pause = Event()
        try:
            while under_way := self._under_way():
                watch.show(self._sizes(under_way))
                pause.wait(POLL_S)
        except KeyboardInterrupt:
            watch.leave(f"the move goes on; `cordwood topics reassign {self._topic} --status` shows it")
            raise
        watch.leave(f"{self._topic} has its new replicas")
        return self._finish()

    def _finish(self) -> int:
        """Nothing of the topic is being moved any more: its throttle has served its purpose."""
        try:
            self._throttle.clear(others_move=bool(self._replicas.under_way()))
        except ClientError as error:
            raise ClientError(
                f"nothing of {self._topic} is being moved any more, but {error}; "
                f"`cordwood topics reassign {self._topic} --status` takes it away"
            ) from None
        return 0

    def _under_way(self) -> dict[int, Move]:
        moves = self._replicas.under_way()
        return {p: moves[self._topic, p] for p in self._partitions if (self._topic, p) in moves}

    def _goal(self, partition: int, under_way: Mapping[int, Move]) -> Brokers:
        """Where a partition is, or is already moving to."""
        if partition in under_way:
            return under_way[partition].target
        return tuple(self._partitions[partition].replicas)

    def _source(self, partition: int, under_way: Mapping[int, Move]) -> Brokers:
        """Where a partition is, or was before it began to move."""
        coming = under_way[partition].adding if partition in under_way else ()
        return tuple(broker for broker in self._partitions[partition].replicas if broker not in coming)

    def _sizes(self, under_way: Mapping[int, Move]) -> dict[int, "Sizes"]:
        """How much of each partition has been copied, and how much there is."""
        partitions = [(self._topic, p) for p in under_way]
        brokers = sorted({broker for move in under_way.values() for broker in move.replicas})
        held: dict[int, dict[Partition, int]] = {b: self._replicas.sizes(b, partitions) for b in brokers}
        found = {}
        for p, move in under_way.items():
            here = {broker: held[broker].get((self._topic, p), 0) for broker in move.replicas}
            whole = max(here.values())
            found[p] = Sizes(sum(min(here[b], whole) for b in move.adding), whole * len(move.adding))
        return found

    def _check(self, refused: Mapping[Partition, Refusal], verb: str) -> None:
        for (topic, partition), refusal in refused.items():
            raise ClientError(f"partition {partition} of {topic} is not {verb}: {refusal.text}")


@dataclass(frozen=True, slots=True)
class Sizes:
    """The bytes of a partition on the brokers that it is being moved to, and how many it will be."""

    here: int
    whole: int


@dataclass(frozen=True, slots=True)
class Advance:
    """The progress of a move."""

    sizes: Mapping[int, Sizes]
    done: int = 0
    """Partitions that have completed their move before."""
    done_bytes: int = 0

    def text(self) -> str:
        """
        >>> Advance({0: Sizes(1_000_000, 4_000_000)}, done=1, done_bytes=2_000_000).text()
        '████████████░░░░░░░░░░░░  50 %  3.0 MB of 6.0 MB, 1 of 2 partitions'
        """
        here = self.done_bytes + sum(one.here for one in self.sizes.values())
        whole = self.done_bytes + sum(one.whole for one in self.sizes.values())
        share = here / whole if whole else 0.0
        total = self.done + len(self.sizes)
        percent = f"{share:4.0%}".replace("%", " %")
        return f"{gauge(share)} {percent}  {size_text(here)} of {size_text(whole)}, {self.done} of {total} partitions"


class _Watch:
    """The line of a terminal that shows a move; nothing if there is no terminal."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._seen: dict[int, Sizes] = {}
        self._start_s = time.monotonic()
        self._visible = sys.stderr.isatty()

    def show(self, sizes: Mapping[int, Sizes]) -> None:
        self._seen |= sizes
        gone = [one for p, one in self._seen.items() if p not in sizes]
        text = Advance(sizes, len(gone), sum(one.whole for one in gone)).text()
        if self._visible:
            print(f"{LINE}{one_line(f'{self._topic} {text}')}", end="", file=sys.stderr, flush=True)

    def leave(self, text: str) -> None:
        if self._visible:
            print(LINE, end="", file=sys.stderr)
        moved = sum(one.whole for one in self._seen.values())
        took_s = time.monotonic() - self._start_s
        print(f"{text} ({_count(len(self._seen))}, {size_text(moved)}, {took_s:.1f} s)", file=sys.stderr)


def _count(partitions: int, verb: str = "", verb_of_many: str = "") -> str:
    """
    >>> _count(1, "is", "are"), _count(2, "is", "are"), _count(3)
    ('1 partition is', '2 partitions are', '3 partitions')
    """
    if partitions == 1:
        return f"1 partition {verb}".rstrip()
    return f"{partitions} partitions {verb_of_many}".rstrip()


def _list(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers)) or "-"
