"""A restart with many groups: how soon all their offsets are available again, and how much memory they take.

Ten thousand groups have committed ten partitions each. The brokers have data directories of their own for this, and are
used for nothing else.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from cordwood.wire import messages as m
from cordwood.wire.client_frame import read_response

from .brokers import SIDES, Broker
from .clients import create_topic
from .groups_wires import Wires, check, find_coordinators, pause, request
from .metrics import LOADED, LOADED_RSS, MB
from .processes import Processes
from .raw import RawError

TITLE: Final = "restart with 10,000 groups"
TOPIC: Final = "bench-groups-load"
GROUPS: Final = 10_000
PARTITIONS: Final = 10
OFFSETS_PARTITIONS: Final = 50
COMMIT_VERSION: Final = 9
FETCH_VERSION: Final = 9
CONNECTIONS: Final = 10
FETCH_AT_ONCE: Final = 500
LOAD_LIMIT_S: Final = 60.0
POLL_S: Final = 0.01
SETTLE_S: Final = 0.5


def measure_load(
    processes: Processes, directory: Path, rounds: int, on_step: Callable[[str], None]
) -> dict[str, list[dict[str, float]]]:
    """Fill both brokers, then start them in turn."""
    for name, launch in SIDES.items():
        on_step(f"{TITLE}, preparing {name}")
        broker = launch(processes, directory / f"groups-{name}")
        _fill(broker)
        processes.stop(broker.process)
    seen: dict[str, list[dict[str, float]]] = {name: [] for name in SIDES}
    for turn in range(rounds):
        for name, launch in SIDES.items():
            on_step(f"{TITLE}, round {turn + 1} of {rounds}, {name}")
            broker = launch(processes, directory / f"groups-{name}")
            seen[name].append(_loaded(broker))
            processes.stop(broker.process)
    return seen


def _name(number: int) -> str:
    return f"bench-group-{number:05}"


def _fill(broker: Broker) -> None:
    """Commit for all groups as clients without a membership do, so that nobody has to join."""
    create_topic(broker, TOPIC, partitions=PARTITIONS)
    find_coordinators(broker.port)
    with Wires(broker.port, CONNECTIONS) as wires:
        left = iter(range(GROUPS))
        under_way = 0
        for connection in range(CONNECTIONS):
            wires.send(connection, _commit(next(left)))
            under_way += 1
        for connection, frame in wires.frames():
            _check_commit(frame)
            under_way -= 1
            if (number := next(left, None)) is not None:
                wires.send(connection, _commit(number))
                under_way += 1
            if under_way == 0:
                return


def _commit(number: int) -> bytes:
    partitions = [
        m.OffsetCommitRequestPartition(partition_index=index, committed_offset=number + index, committed_metadata="")
        for index in range(PARTITIONS)
    ]
    topic = m.OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)
    return request(m.OffsetCommitRequest(group_id=_name(number), topics=[topic]), COMMIT_VERSION)


def _check_commit(frame: memoryview) -> None:
    (topic,) = read_response(m.OffsetCommitResponse, COMMIT_VERSION, frame).topics
    for partition in topic.partitions:
        check(partition.error_code, "OffsetCommit")


def _loaded(broker: Broker) -> dict[str, float]:
    """Ask for one group per partition of the offsets topic until all are there; then check every group."""
    begin = time.perf_counter()
    homes = {offsets_partition(_name(number)): number for number in range(GROUPS)}
    assert len(homes) == OFFSETS_PARTITIONS
    chosen = sorted(homes.values())
    with Wires(broker.port, 1) as wires:
        while not _are_there(wires, chosen):
            if time.perf_counter() - begin > LOAD_LIMIT_S:
                raise RawError(f"{broker.name} did not load its groups within {LOAD_LIMIT_S:.0f} s")
            pause(POLL_S)
        loaded_s = broker.start_s + time.perf_counter() - begin
        pause(SETTLE_S)
        rss = broker.rss_bytes()
        for first in range(0, GROUPS, FETCH_AT_ONCE):
            if not _are_there(wires, range(first, first + FETCH_AT_ONCE)):
                raise RawError(f"{broker.name} has lost committed offsets")
    return {LOADED.key: loaded_s, LOADED_RSS.key: rss / MB}


def _are_there(wires: Wires, numbers: Sequence[int]) -> bool:
    groups = [m.OffsetFetchRequestGroup(group_id=_name(number), topics=None) for number in numbers]
    frame = request(m.OffsetFetchRequest(groups=groups), FETCH_VERSION)
    answer = wires.ask(0, frame, m.OffsetFetchResponse, FETCH_VERSION)
    return [_offsets(group) for group in answer.groups] == [
        [(index, number + index) for index in range(PARTITIONS)] for number in numbers
    ]


def _offsets(group: m.OffsetFetchResponseGroup) -> list[tuple[int, int]]:
    return sorted((p.partition_index, p.committed_offset) for topic in group.topics for p in topic.partitions)


def offsets_partition(group: str) -> int:
    """The partition of the offsets topic that a group belongs to, by Java's hash of its name."""
    code = 0
    for character in group:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    return min(code, (1 << 32) - code) % OFFSETS_PARTITIONS
