"""Commits as fast as a broker takes them: 50 members of 10 groups, each for its own partition, a few of each in flight.

Every request is encoded once, and sent over and over with other numbers in it. Answers are compared as bytes too: a
member's answers are all the same, except for the id of the request that they belong to.
"""

import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from cordwood.wire import messages as m
from cordwood.wire.frame import response_frame

from .brokers import Broker
from .clients import create_topic, delete_topic
from .groups_classic import ClassicGroup
from .groups_wires import Wires, find_coordinators, request
from .metrics import COMMIT_CPU, COMMIT_RATE, Metric
from .raw import RawError

TOPIC: Final = "bench-groups-commit"
COMMIT: Final = 8
VERSION: Final = 9
GROUPS: Final = 10
MEMBERS: Final = 5
IN_FLIGHT: Final = 5

# Where the correlation id is in the frame of a request, and in that of its answer.
REQUEST_ID_AT: Final = 8
ANSWER_ID_AT: Final = 4
MARK: Final = 0x5A5A_5A5A_5A5A


class Committer:
    """One member's requests. Only two numbers change from one to the next: the correlation id and the offset."""

    def __init__(self, group: ClassicGroup, member: int) -> None:
        held = m.OffsetCommitRequestPartition(partition_index=member, committed_offset=MARK, committed_metadata="")
        wanted = m.OffsetCommitRequest(
            group_id=group.name,
            generation_id_or_member_epoch=group.generation,
            member_id=group.ids[member],
            topics=[m.OffsetCommitRequestTopic(name=group.topic, partitions=[held])],
        )
        self._frame = bytearray(request(wanted, VERSION))
        self._offset_at = self._frame.index(MARK.to_bytes(8, "big"))
        self._answer = bytearray(_answer(group.topic, member))
        self._sent = 0
        self._answered = 0
        self._rest = b""

    def next(self, count: int) -> bytes:
        frames = []
        for _ in range(count):
            self._sent += 1
            struct.pack_into(">i", self._frame, REQUEST_ID_AT, self._sent)
            struct.pack_into(">q", self._frame, self._offset_at, self._sent)
            frames.append(bytes(self._frame))
        return b"".join(frames)

    def answered(self, data: bytes) -> int:
        """How many answers *data* completes; raises unless they are all in order and without an error."""
        data = self._rest + data
        size = len(self._answer)
        count = len(data) // size
        for number in range(count):
            self._answered += 1
            struct.pack_into(">i", self._answer, ANSWER_ID_AT, self._answered)
            if data[number * size : number * size + size] != self._answer:
                raise RawError("a commit was answered with an error")
        self._rest = data[count * size :]
        return count

    @property
    def on_their_way(self) -> int:
        return self._sent - self._answered


def _answer(topic: str, partition: int) -> bytes:
    fine = m.OffsetCommitResponsePartition(partition_index=partition)
    answer = m.OffsetCommitResponse(topics=[m.OffsetCommitResponseTopic(name=topic, partitions=[fine])])
    (frame,) = response_frame(correlation_id=0, api_key=COMMIT, api_version=VERSION, message=answer)
    assert isinstance(frame, bytes)
    return frame


@dataclass(slots=True)
class CommitRow:
    active_s: float
    warm_up_s: float
    key: str = "groups-commit"
    title: str = "commits of 50 members"
    metrics: Sequence[Metric] = (COMMIT_RATE, COMMIT_CPU)
    _rounds: int = field(default=0)

    def prepare(self, broker: Broker) -> None:
        find_coordinators(broker.port)
        create_topic(broker, TOPIC, partitions=MEMBERS)
        self._measure(broker, self.warm_up_s)

    def measure(self, broker: Broker) -> Mapping[str, float]:
        return self._measure(broker, self.active_s)

    def finish(self, broker: Broker) -> None:
        delete_topic(broker, TOPIC)

    def _measure(self, broker: Broker, active_s: float) -> dict[str, float]:
        self._rounds += 1
        with Wires(broker.port, GROUPS * MEMBERS) as wires:
            groups = [
                ClassicGroup(
                    wires, f"{TOPIC}-{self._rounds}-{number}", TOPIC, range(number * MEMBERS, (number + 1) * MEMBERS)
                )
                for number in range(GROUPS)
            ]
            for group in groups:
                group.form()
            committers = [Committer(group, member) for group in groups for member in range(MEMBERS)]
            before_s = broker.cpu_s()
            rate, count = _commit(wires, committers, active_s)
            cpu_s = broker.cpu_s() - before_s
            for group in groups:
                group.leave()
        return {COMMIT_RATE.key: rate, COMMIT_CPU.key: 1e6 * cpu_s / count}


def _commit(wires: Wires, committers: Sequence[Committer], active_s: float) -> tuple[float, int]:
    """Commit for a while; return the rate until the last answer, and how many commits there were."""
    count = 0
    begin = time.perf_counter()
    end = begin + active_s
    for number, committer in enumerate(committers):
        wires.send(number, committer.next(IN_FLIGHT))
    for number, data in wires.received():
        committer = committers[number]
        answered = committer.answered(data)
        count += answered
        if time.perf_counter() < end:
            wires.send(number, committer.next(answered))
        elif not any(each.on_their_way for each in committers):
            break
    return count / (time.perf_counter() - begin), count
