"""What requests of group members cost in the broker's core: no sockets, but real files.

Run: ``python -m benchmarks.micro_groups``. Times are CPU times, the best of several rounds, in microseconds for one
request or for one member.
"""

import gc
import tempfile
from collections.abc import Iterable, Sequence
from random import Random
from time import process_time_ns

from cordwood.broker.connection import Connection, Peer
from cordwood.effects import Effect, Linger, Send, WriteMetadata
from cordwood.ids import ConnectionId
from cordwood.ports import Instant
from cordwood.run.disk import RealDisk
from cordwood.sim.node import open_broker
from cordwood.sim.store import SimStore
from cordwood.wire import messages as m
from cordwood.wire.client_frame import read_response

from .groups_wires import body, request

CALLS = 2_000
TURN = 50
"""How many commits arrive in one turn of the broker, where commits are gathered."""
ROUNDS = 5
MEMBERS = 500
TOPIC = "micro"
GROUP = "micro-group"
JOIN_VERSION = 9
SYNC_VERSION = 5
CONSUMER_VERSION = 1
NOW = Instant(1_700_000_000_000, 0)


class Silent:
    def debug(self, msg: str, /, *args: object) -> None:
        """Drop it."""

    info = warning = error = debug


class Core:
    """A broker without a driver: its effects are carried out at once, and answers are kept by connection."""

    def __init__(self, directory: str) -> None:
        self.answers: dict[int, memoryview] = {}
        self.lingers = False
        """Wait for ``linger``? If not, the broker is told at once that its turn is over."""
        self._store = SimStore()
        self._connections: list[Connection] = []
        self._broker = open_broker(
            static={"group.initial.rebalance.delay.ms": "0", "group.consumer.assignment.interval.ms": "0"},
            disk=RealDisk(directory),
            store=self._store,
            entropy=Random(1),
            logger=Silent(),
            now=NOW,
        )
        self._do(self._broker.start(NOW))

    def connect(self) -> int:
        number = len(self._connections)
        peer = Peer("127.0.0.1", 40_000, "127.0.0.1", 9092)
        connection = self._broker.connected(ConnectionId(number), peer, NOW)
        assert connection is not None
        self._connections.append(connection)
        return number

    def send(self, connection: int, frame: memoryview) -> None:
        """Give the broker a frame without its size."""
        self._do(self._broker.received(self._connections[connection], frame, NOW))

    def ask(self, connection: int, message: object, version: int) -> memoryview:
        self.send(connection, memoryview(request(message, version))[4:])
        while (deadline_ms := self._broker.next_deadline()) is not None and deadline_ms <= NOW.mono_ms:
            self._do(self._broker.tick(NOW))
        return self.answers.pop(connection)

    def linger(self) -> None:
        self._do(self._broker.lingered(NOW))

    def _do(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                data = effect.chunks[-1]
                assert isinstance(data, bytes)
                self.answers[int(effect.connection)] = memoryview(data)[4:]
            elif isinstance(effect, WriteMetadata):
                change = self._store.multi(effect.operations)
                self._do(self._broker.metadata_written(effect.token, change, NOW))
            elif isinstance(effect, Linger) and not self.lingers:
                self.linger()


def best_us(core: Core, connection: int, message: object, version: int) -> float:
    frame = memoryview(request(message, version))[4:]

    def one_round() -> float:
        start = process_time_ns()
        for _ in range(CALLS):
            core.send(connection, frame)
        return (process_time_ns() - start) / CALLS / 1000

    return min(one_round() for _ in range(ROUNDS))


def best_gathered_us(core: Core, connection: int, messages: Sequence[object], version: int) -> float:
    """All messages arrive in one turn, and again in the next."""
    frames = [memoryview(request(message, version))[4:] for message in messages]
    turns = CALLS // len(frames)

    def one_round() -> float:
        start = process_time_ns()
        for _ in range(turns):
            for frame in frames:
                core.send(connection, frame)
            core.linger()
        return (process_time_ns() - start) / len(frames) / turns / 1000

    core.lingers = True
    best = min(one_round() for _ in range(ROUNDS))
    core.lingers = False
    return best


def join(group: str, member_id: str, said: int) -> m.JoinGroupRequest:
    wanted = m.ConsumerProtocolSubscription(topics=[TOPIC], user_data=said.to_bytes(4, "big"))
    return m.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[m.JoinGroupRequestProtocol(name="range", metadata=body(wanted, 3))],
    )


def sync(group: str, joined: m.JoinGroupResponse) -> m.SyncGroupRequest:
    held = m.ConsumerProtocolAssignmentAssignedPartition(topic=TOPIC, partitions=[0])
    assignment = body(m.ConsumerProtocolAssignment(assigned_partitions=[held]), 3)
    return m.SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[
            m.SyncGroupRequestAssignment(member_id=member.member_id, assignment=assignment) for member in joined.members
        ],
    )


def enter(core: Core, group: str, connection: int) -> str:
    return read_response(m.JoinGroupResponse, JOIN_VERSION, core.ask(connection, join(group, "", 0), 9)).member_id


def prepare(core: Core) -> None:
    connection = core.connect()
    topic = m.CreateTopicsRequestTopic(name=TOPIC, num_partitions=MEMBERS, replication_factor=-1)
    core.ask(connection, m.CreateTopicsRequest(topics=[topic]), 7)
    core.ask(connection, m.FindCoordinatorRequest(coordinator_keys=[GROUP]), 4)


def measure_requests(core: Core) -> None:
    connection = core.connect()
    member_id = enter(core, GROUP, connection)
    joined = read_response(
        m.JoinGroupResponse, JOIN_VERSION, core.ask(connection, join(GROUP, member_id, 0), JOIN_VERSION)
    )
    core.ask(connection, sync(GROUP, joined), SYNC_VERSION)
    heartbeat = m.HeartbeatRequest(group_id=GROUP, generation_id=joined.generation_id, member_id=member_id)
    print(f"heartbeat: {best_us(core, connection, heartbeat, 4):.1f} µs")
    for count in (1, 4):
        commits = [commit(joined, range(n, n + count)) for n in range(0, count * TURN, count)]
        alone_us = best_us(core, connection, commits[0], 9)
        gathered_us = best_gathered_us(core, connection, commits, 9)
        print(f"commit of {count}: {alone_us:.1f} µs, gathered {gathered_us:.1f} µs")


def commit(joined: m.JoinGroupResponse, partitions: Iterable[int]) -> m.OffsetCommitRequest:
    held = [
        m.OffsetCommitRequestPartition(partition_index=n, committed_offset=5, committed_metadata="") for n in partitions
    ]
    return m.OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=joined.generation_id,
        member_id=joined.member_id,
        topics=[m.OffsetCommitRequestTopic(name=TOPIC, partitions=held)],
    )


def measure_rebalances(core: Core) -> None:
    """All members join and sync, including the leader. The frames are made before the clock starts."""
    group = "micro-many"
    connections = [core.connect() for _ in range(MEMBERS)]
    ids = [enter(core, group, connections[0])]
    core.ask(connections[0], join(group, ids[0], 0), JOIN_VERSION)
    ids += [enter(core, group, connection) for connection in connections[1:]]
    joins_us, syncs_us = zip(*(rebalance(core, group, connections, ids, turn) for turn in range(ROUNDS)), strict=True)
    print(f"{MEMBERS} members join: {min(joins_us):.1f} µs each; sync: {min(syncs_us):.1f} µs each")


def rebalance(core: Core, group: str, connections: list[int], ids: list[str], turn: int) -> tuple[float, float]:
    frames = [memoryview(request(join(group, member_id, turn + 1), JOIN_VERSION))[4:] for member_id in ids]
    joins_us = _all(core, connections, frames)
    joined = [
        read_response(m.JoinGroupResponse, JOIN_VERSION, core.answers.pop(connection)) for connection in connections
    ]
    frames = [memoryview(request(sync(group, answer), SYNC_VERSION))[4:] for answer in joined]
    return joins_us, _all(core, connections, frames)


def consumer_join(member_id: str) -> m.ConsumerGroupHeartbeatRequest:
    return m.ConsumerGroupHeartbeatRequest(
        group_id="micro-consumers",
        member_id=member_id,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )


def measure_consumers(core: Core) -> None:
    """Members of the consumer protocol: a new one joins, and all take the step to the new epoch in one turn."""
    connections = [core.connect() for _ in range(MEMBERS)]
    epoch = 0
    for number, connection in enumerate(connections):
        epoch = _told(core.ask(connection, consumer_join(f"member-{number}"), CONSUMER_VERSION))
    first = m.ConsumerGroupHeartbeatRequest(group_id="micro-consumers", member_id="member-0", member_epoch=2)
    core.ask(connections[0], first, CONSUMER_VERSION)
    joins_us, steps_us = [], []
    for turn in range(ROUNDS):
        frame = memoryview(request(consumer_join(f"late-{turn}"), CONSUMER_VERSION))[4:]
        joins_us.append(len(connections) * _all(core, connections[:1], [frame]) / len(connections))
        before, epoch = epoch, epoch + 1
        steps_us.append(_all_report(core, connections, before if turn else None, epoch))
    report = m.ConsumerGroupHeartbeatRequest(group_id="micro-consumers", member_id="member-0", member_epoch=epoch)
    print(f"consumer heartbeat: {best_us(core, connections[0], report, CONSUMER_VERSION):.1f} µs")
    print(
        f"consumer join among {MEMBERS}: {min(joins_us):.0f} µs; a step to the new epoch: {min(steps_us):.1f} µs each"
    )


def _all_report(core: Core, connections: list[int], before: int | None, epoch: int) -> float:
    """All members go to the new epoch. At first each is at a different one; there it is correct to join again."""
    if before is None:
        for number, connection in enumerate(connections):
            core.ask(connection, consumer_join(f"member-{number}"), CONSUMER_VERSION)
        return float("inf")
    frames = [
        memoryview(
            request(
                m.ConsumerGroupHeartbeatRequest(
                    group_id="micro-consumers", member_id=f"member-{number}", member_epoch=before
                ),
                CONSUMER_VERSION,
            )
        )[4:]
        for number in range(len(connections))
    ]
    core.lingers = True
    start = process_time_ns()
    for connection, frame in zip(connections, frames, strict=True):
        core.send(connection, frame)
    core.linger()
    took_us = (process_time_ns() - start) / len(frames) / 1000
    core.lingers = False
    assert _told(core.answers[connections[-1]]) == epoch
    return took_us


def _told(answer: memoryview) -> int:
    response = read_response(m.ConsumerGroupHeartbeatResponse, CONSUMER_VERSION, answer)
    assert not response.error_code, response
    return response.member_epoch


def _all(core: Core, connections: list[int], frames: list[memoryview]) -> float:
    """Send one frame on every connection, in reverse order, so that the leader's is the last."""
    start = process_time_ns()
    for connection, frame in zip(reversed(connections), reversed(frames), strict=True):
        core.send(connection, frame)
    return (process_time_ns() - start) / len(frames) / 1000


def main() -> None:
    gc.set_threshold(50_000)  # as in the server
    with tempfile.TemporaryDirectory() as directory:
        core = Core(directory)
        prepare(core)
        measure_requests(core)
        measure_rebalances(core)
        measure_consumers(core)


if __name__ == "__main__":
    main()
