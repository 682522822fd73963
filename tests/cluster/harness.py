"""Brokers as processes that a test may kill, stop, freeze, cut off and start again; what each says of the cluster.

``Cluster`` works with anything that looks like ``BrokerNode``: ours, or Apache Kafka's, on which tests are tried.
"""

import os
import shutil
import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.cimpl import NewTopic

from cluster import checker
from cluster.checker import Place
from cluster.recorder import Recorder
from cluster.replica_logs import ReplicaLog
from cluster.workload import QUICK, SILENT, Workload
from cordwood.client.raw_connection import Connection
from cordwood.client.raw_errors import RawError
from cordwood.client.raw_settings import RawSettings, addresses
from cordwood.wire.messages import MetadataRequest, MetadataRequestTopic, MetadataResponse
from cordwood.wire.messages import MetadataResponsePartition as State
from support.waiting import eventually

SETTLE_S = 60.0
ANSWER_MS = 3_000


class BrokerNode(Protocol):
    """A broker process."""

    @property
    def node_id(self) -> int: ...
    @property
    def bootstrap(self) -> str: ...
    @property
    def data(self) -> Path:
        """Where its logs are."""
        ...

    @property
    def pid(self) -> int: ...
    @property
    def running(self) -> bool: ...
    def start(self) -> None:
        """Start it, and do not wait until it is ready."""
        ...

    def kill(self) -> None:
        """kill -9, and it is gone."""
        ...

    def stop(self) -> int:
        """SIGTERM; its exit status when it has ended."""
        ...

    def end(self) -> None:
        """Whatever state it is in, it is gone afterwards."""
        ...

    def last_words(self) -> str: ...
    def all_words(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a test."""

    name: str
    partitions: int

    def places(self) -> list[Place]:
        return [Place(self.name, number) for number in range(self.partitions)]


class Cluster:
    """Some brokers. Starting and stopping them is the caller's; the cluster knows how to look at them."""

    def __init__(self, nodes: Iterable[BrokerNode]) -> None:
        self.nodes = {node.node_id: node for node in nodes}
        self._frozen: set[int] = set()
        self._admin: AdminClient | None = None

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes.values())

    def admin(self) -> AdminClient:
        if self._admin is None:
            settings: dict[str, object] = {"bootstrap.servers": self.bootstrap, "logger": SILENT, **QUICK}
            self._admin = AdminClient(settings)  # type: ignore[arg-type]  # a logger is none of the types it names
        return self._admin

    # Faults

    def start(self) -> None:
        """All of them, at once."""
        for node in self.nodes.values():
            node.start()
        self.wait_for_brokers()

    def kill(self, node: int) -> None:
        self.nodes[node].kill()

    def freeze(self, node: int) -> None:
        """SIGSTOP: it is there and does nothing, once the signal has come to all of its threads."""
        os.kill(self.nodes[node].pid, signal.SIGSTOP)
        self._frozen.add(node)
        process = psutil.Process(self.nodes[node].pid)
        eventually(lambda: process.status() == psutil.STATUS_STOPPED, what=f"that broker {node} stands still")

    def thaw(self, node: int) -> None:
        os.kill(self.nodes[node].pid, signal.SIGCONT)
        self._frozen.discard(node)

    def restart(self, node: int) -> None:
        """Start a broker that is not running."""
        self.nodes[node].start()

    def wipe(self, node: int) -> None:
        """Its disk is a new one."""
        assert not self.nodes[node].running
        shutil.rmtree(self.nodes[node].data)

    def heal(self) -> None:
        """Whatever a test has left behind: all brokers run, and know each other."""
        for node in sorted(self._frozen):
            self.thaw(node)
        for node, one in self.nodes.items():
            if not one.running:
                self.restart(node)
        self.wait_for_brokers()

    def end(self) -> None:
        for node in sorted(self._frozen):
            with suppress(ProcessLookupError):
                self.thaw(node)
        for one in self.nodes.values():
            one.end()

    # What it says of itself

    def wait_for_brokers(self, nodes: Iterable[int] | None = None, *, within_s: float = SETTLE_S) -> None:
        """Wait until each of these brokers (all) says that exactly these are there, with a controller."""
        wanted = set(self.nodes if nodes is None else nodes)

        def there() -> bool:
            for node in wanted:
                assert self.nodes[node].running, f"broker {node} has ended:\n{self.nodes[node].last_words()}"
            return all(self._known_to(node) == wanted for node in sorted(wanted))

        eventually(there, within_s=within_s, what=f"that brokers {sorted(wanted)} know each other")

    def _known_to(self, node: int) -> set[int] | None:
        found = self.view(node)
        known = set() if found is None else {broker.node_id for broker in found.brokers}
        return known if found is not None and found.controller_id in known else None

    def view(self, node: int, topic: Topic | None = None) -> MetadataResponse | None:
        """What one broker tells of the cluster, and of a topic; None if it does not answer."""
        settings = RawSettings(
            self.nodes[node].bootstrap, request_timeout_ms=ANSWER_MS, connect_timeout_ms=ANSWER_MS, client_id="test"
        )
        asked = [] if topic is None else [MetadataRequestTopic(name=topic.name)]
        try:
            with Connection(addresses(settings.bootstrap)[0], settings) as connection:
                request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
                return connection.ask(request, MetadataResponse)
        except RawError:
            return None

    def create(
        self, name: str, partitions: int = 2, *, replicas: int = 3, settings: Mapping[str, str] | None = None
    ) -> Topic:
        wanted = NewTopic(name, partitions, replicas, config={"min.insync.replicas": "2", **(settings or {})})
        self.admin().create_topics([wanted], operation_timeout=30)[name].result(30)
        topic = Topic(name, partitions)
        self.wait_in_sync(topic)
        return topic

    def states(self, topic: Topic, *, node: int | None = None) -> dict[int, State]:
        """Leaders and replicas of its partitions, as this broker knows them, or the first that answers."""
        for number in self.awake() if node is None else [node]:
            found = self.view(number, topic)
            if found is not None and found.topics and not found.topics[0].error_code:
                return {state.partition_index: state for state in found.topics[0].partitions}
        return {}

    def awake(self) -> list[int]:
        """Those that can answer."""
        return [number for number, node in self.nodes.items() if node.running and number not in self._frozen]

    def leader(self, topic: Topic, partition: int = 0) -> int:
        """Who leads now; waits until somebody does."""

        def found() -> int:
            state = self.states(topic).get(partition)
            return 0 if state is None else max(state.leader_id, 0)

        return eventually(found, within_s=SETTLE_S, what=f"a leader of {topic.name}-{partition}")

    def followers(self, topic: Topic, partition: int = 0) -> list[int]:
        leader = self.leader(topic, partition)
        return sorted(replica for replica in self.states(topic)[partition].replica_nodes if replica != leader)

    def controller(self) -> int:
        def found() -> int:
            answers = [self.view(number) for number in self.awake()]
            return next((one.controller_id for one in answers if one is not None and one.controller_id > 0), 0)

        return eventually(found, within_s=SETTLE_S, what="a controller")

    def in_sync(self, topic: Topic) -> bool:
        """Is every partition led, with all its replicas in sync, as every running broker knows it?"""
        views = [self.states(topic, node=number) for number in self.awake()]
        return all(len(states) == topic.partitions and all(map(_is_whole, states.values())) for states in views)

    def wait_in_sync(self, topic: Topic, *, within_s: float = SETTLE_S) -> None:
        try:
            eventually(lambda: self.in_sync(topic), within_s=within_s, what=f"full ISR of {topic.name}")
        except AssertionError as error:
            words = {p: (s.leader_id, s.replica_nodes, s.isr_nodes) for p, s in self.states(topic).items()}
            raise AssertionError(f"{error}: (leader, replicas, in sync) are {words}\n{self.last_words()}") from None

    def wait_out_of_sync(self, topic: Topic, node: int, partition: int = 0) -> None:
        """Wait until a broker is known not to be in sync."""
        eventually(
            lambda: self.is_out_of_sync(topic, node, partition),
            within_s=SETTLE_S,
            what=f"that broker {node} is out of sync with {topic.name}",
        )

    def is_out_of_sync(self, topic: Topic, node: int, partition: int = 0) -> bool:
        """Does anybody else know of it?"""
        return any(
            node not in states[partition].isr_nodes
            for number in self.awake()
            if number != node and partition in (states := self.states(topic, node=number))
        )

    def wait_for_other_leader(self, topic: Topic, node: int, partition: int = 0) -> None:
        """Wait until all others know that another broker leads."""

        def elected() -> bool:
            views = [self.states(topic, node=number) for number in self.awake() if number != node]
            return all(partition in view and view[partition].leader_id not in (node, -1) for view in views)

        eventually(elected, within_s=SETTLE_S, what=f"another leader of {topic.name} than broker {node}")

    def wait_for_other_controller(self, node: int) -> None:
        def elected() -> bool:
            views = [self.view(number) for number in self.awake() if number != node]
            return all(view is not None and view.controller_id not in (node, -1) for view in views)

        eventually(elected, within_s=SETTLE_S, what=f"another controller than broker {node}")

    def ends(self, topic: Topic) -> dict[int, int]:
        """The end of each partition, as its leader tells. The client may have to find out who that is by now."""
        asked = {TopicPartition(topic.name, p): OffsetSpec.latest() for p in range(topic.partitions)}

        def told() -> dict[int, int]:
            futures = self.admin().list_offsets(asked, request_timeout=30)
            try:
                return {place.partition: future.result(30).offset for place, future in futures.items()}
            except KafkaException:
                return {}

        return eventually(told, within_s=SETTLE_S, what=f"the ends of {topic.name}")

    def last_words(self) -> str:
        return "\n".join(f"--- broker {number}\n{node.last_words()}" for number, node in self.nodes.items())

    # The judgement

    def settle(self, workload: Workload, topic: Topic) -> None:
        """Writers end, all replicas have everything, readers have read everything."""
        workload.stop_writing()
        self.wait_in_sync(topic)
        ends = self.ends(topic)
        workload.read_to(ends, within_s=SETTLE_S)
        workload.stop_reading()
        self.wait_for_disks(topic, ends)

    def wait_for_disks(self, topic: Topic, ends: Mapping[int, int]) -> None:
        """In sync is a promise of the leader; this looks."""

        def complete() -> bool:
            states = self.states(topic)
            return all(
                found is not None and found[1] == ends[p]
                for p, state in states.items()
                for broker in state.replica_nodes
                for found in [self._log(broker, Place(topic.name, p)).ends()]
            )

        eventually(complete, within_s=SETTLE_S, what=f"all of {topic.name} on all disks")

    def judge(self, recorder: Recorder, topic: Topic) -> checker.History:
        """Add what is on the disks to the history, and let the checker look at it."""
        states = self.states(topic)
        for place in topic.places():
            for broker in states[place.partition].replica_nodes:
                self._log(broker, place).record(recorder, broker)
        recorder.flush()
        history = checker.parse(recorder.path.read_text("utf-8").splitlines())
        found = checker.faults(history)
        assert not found, "\n".join([*found[:20], checker.summary(history), str(recorder.path)])
        return history

    def _log(self, broker: int, place: Place) -> ReplicaLog:
        return ReplicaLog(self.nodes[broker].data, place)


def _is_whole(state: State) -> bool:
    return state.leader_id >= 0 and set(state.isr_nodes) == set(state.replica_nodes)


@contextmanager
def at_work(
    cluster: Cluster, recorder: Recorder, name: str, *, partitions: int = 2
) -> Iterator[tuple[Topic, Workload]]:
    """Writers and readers on a new topic: they make progress before and after what is done meanwhile, and the checker
    looks at all of it in the end. No error may reach an application whose client tries again."""
    topic = cluster.create(name, partitions)
    with Workload(recorder, cluster.bootstrap, topic.name, topic.partitions) as workload:
        workload.progress()
        yield topic, workload
        workload.progress(within_s=SETTLE_S)
        cluster.settle(workload, topic)
        history = cluster.judge(recorder, topic)
        assert len(history.replicas) == 3 * topic.partitions
        assert workload.idempotent.errors == []
        assert [reader.errors for reader in workload.readers] == [[] for _ in workload.readers]
