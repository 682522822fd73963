"""Requests of all group APIs from a seed, at groups that are in the middle of something.

The whole broker runs in here, so its invariants are looked at after every event. Fields are drawn from what the groups
really have, their members' ids and generations, so that requests get far; time passes, clients go away, the disk fails,
topics come and go, and the broker is killed and started again. An exception fails the test: it would stop a broker.

A failure names the seed and the last requests. To try more seeds: FUZZ_SEEDS=1000-2000 pytest …
"""

import os
from collections import deque
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

import pytest

from broker.harness import Client, Harness
from cordwood.ids import TopicName
from cordwood.wire import encode
from cordwood.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentAssignedPartition,
    ConsumerProtocolSubscription,
    CreatePartitionsRequest,
    CreatePartitionsRequestTopic,
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    SyncGroupRequest,
)
from cordwood.wire.registry import APIS
from cordwood.wire.types import BYTES, STRING, UUID_BYTES, FieldSpec, MessageSpec, Scalar, spec_of

APIS_DRAWN = [8, 9, 11, 11, 11, 12, 13, 14, 14, 14, 15, 16, 42, 47, 68, 68, 68, 68, 68, 69]
STEPS = 300
TOPICS = ["t", "u", "v", "__consumer_offsets", ""]
OFFSETS_TOPIC = "__consumer_offsets"
SETTINGS = {
    "offsets.topic.num.partitions": 2,
    "group.initial.rebalance.delay.ms": 3,
    "group.min.session.timeout.ms": 1,
    "group.max.size": 5,
    "group.consumer.max.size": 5,
    "group.consumer.min.session.timeout.ms": 1,
    "group.consumer.session.timeout.ms": 200,
    "group.consumer.min.heartbeat.interval.ms": 1,
    "group.consumer.heartbeat.interval.ms": 20,
    "group.consumer.assignment.interval.ms": 5,
    "group.consumer.min.assignment.interval.ms": 0,
    "offsets.retention.check.interval.ms": 50,
    "cordwood.max.groups.bytes": 60_000,
}


def _seeds() -> list[int]:
    first, _, last = os.environ.get("FUZZ_SEEDS", "1-8").partition("-")
    return list(range(int(first), int(last or first) + 1))


@pytest.mark.parametrize("seed", _seeds())
def test_no_request_about_groups_stops_the_broker(seed: int) -> None:
    fuzz = Fuzz(seed)
    try:
        for _ in range(STEPS):
            fuzz.step()
    except BaseException:
        print(f"seed {seed}, the last requests:\n" + "\n".join(fuzz.recent))
        raise


@dataclass(slots=True)
class Known:
    """A member as it was last heard of."""

    id: str
    epoch: int

    @property
    def instance(self) -> str | None:
        """A static member's id begins with it, if the broker made it."""
        return self.id[0] if self.id[:2] in ("i-", "j-") else None


class Fuzz:
    """A broker, some clients, and what is known of the groups."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        settings: dict[str, Any] = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
        self.harness = Harness(**settings)
        self.recent: deque[str] = deque(maxlen=20)
        self.groups = ["g", "g", "g", "h"]
        self.members: deque[Known] = deque([Known("m1", 1), Known("m2", 2)], maxlen=8)
        for name in ("t", "u"):
            self.harness.topic(name, self.random.choice([1, 3]))
        self.clients: list[Client] = []
        self.prepare()

    def prepare(self) -> None:
        self.clients = [self.harness.connect() for _ in range(5)]
        self.clients[0].ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6, FindCoordinatorResponse)
        self.harness.advance(20)

    def step(self) -> None:
        match self.random.randrange(80):
            case 0:
                self.restart()
            case 1:
                self.change_topics()
            case 2:
                self.harness.disk.fails_after = self.random.randrange(2)
            case 3:
                index = self.random.randrange(len(self.clients))
                self.clients[index].disconnect()
                self.clients[index] = self.harness.connect()
            case 4 | 5 | 6 | 7 | 8:
                self.harness.advance(self.random.choice([0, 1, 3, 10, 100, 300]))
            case _:
                self.request()

    def restart(self) -> None:
        self.recent.append("restart")
        self.harness.kill() if self.random.random() < 0.5 else self.harness.stop()
        self.harness.disk.fails_after = None
        self.harness.start()
        self.prepare()

    def change_topics(self) -> None:
        name = self.random.choice(["t", "u", "u", OFFSETS_TOPIC])
        self.recent.append(f"change {name}")
        self.harness.disk.fails_after = None
        client = self.harness.connect()
        if self.random.random() < 0.3:
            more = CreatePartitionsRequestTopic(name=name, count=self.random.choice([3, 4]), assignments=None)
            client.send(CreatePartitionsRequest(topics=[more]), 3)
        else:
            client.send(DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name=name)]), 6)
        if name != OFFSETS_TOPIC and TopicName(name) not in self.harness.broker.image.topics:
            self.harness.topic(name, self.random.choice([1, 2, 4]))
        client.send(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6)
        client.disconnect()

    # ------------------------------------------------------------------ requests

    def request(self) -> None:
        api = APIS[self.random.choice(APIS_DRAWN)]
        version = self.random.choice(api.versions)
        request = self._struct(spec_of(api.request), version)
        self._aim(request)
        self.recent.append(f"{api.name} v{version} {request!r:.1500}")
        client = self.random.choice(self.clients)
        if client.closed is not None:
            self.clients.remove(client)
            client = self.harness.connect()
            self.clients.append(client)
        client.send(request, version, client_id=self.random.choice(["c", "", "\n", None]))
        for each in self.clients:
            while each.inbox:
                self._learn(each.inbox.popleft()[1])

    def _aim(self, request: object) -> None:
        """Let what belongs together be together, most of the time: such requests get far."""
        if self.random.random() < 0.15:
            return
        if hasattr(request, "group_id"):
            request.group_id = self.random.choice(self.groups)
        member = self.random.choice(self.members)
        if hasattr(request, "member_id"):
            request.member_id = member.id
        for name in ("generation_id", "member_epoch", "generation_id_or_member_epoch"):
            if hasattr(request, name):
                setattr(request, name, member.epoch)
        for name in ("group_instance_id", "instance_id"):
            if hasattr(request, name):
                setattr(request, name, member.instance if self.random.random() < 0.9 else "j")
        match request:
            case JoinGroupRequest():
                self._aim_join(request)
            case SyncGroupRequest():
                request.protocol_type, request.protocol_name = "consumer", "range"
            case ConsumerGroupHeartbeatRequest():
                self._aim_consumer(request)

    def _aim_join(self, request: JoinGroupRequest) -> None:
        request.session_timeout_ms = self.random.choice([100, 200, 1000])
        request.rebalance_timeout_ms = self.random.choice([10, 50, 0, -1])
        request.protocol_type = "consumer"
        request.protocols.append(JoinGroupRequestProtocol(name="range", metadata=self._said("metadata")))
        if self.random.random() < 0.5:
            request.member_id = ""
            request.group_instance_id = self.random.choice([None, None, "i", "j"])

    def _aim_consumer(self, request: ConsumerGroupHeartbeatRequest) -> None:
        request.rack_id = None
        request.server_assignor = self.random.choice([None, None, "uniform", "range"])
        request.member_epoch = min(request.member_epoch + self.random.choice([0, 0, 0, 0, 0, -1, 1]), 2**31 - 1)
        if self.random.random() < 0.4:
            request.member_id = self.random.choice(["m1", "m2", "m3", "m4"])
            request.instance_id = self.random.choice([None, None, "i", "j"])
            request.member_epoch = 0
            request.topic_partitions = []
            request.rebalance_timeout_ms = self.random.choice([20, 100])
            request.subscribed_topic_names = self.random.choice([["t"], ["t", "u"], ["u", "nowhere"], []])
            request.subscribed_topic_regex = self.random.choice([None, None, "t|u", ".*"])
        elif self.random.random() < 0.2:
            request.member_epoch = self.random.choice([-1, -1, -2])

    def _learn(self, response: object) -> None:
        if isinstance(response, JoinGroupResponse) and response.member_id:
            self.members.append(Known(response.member_id, response.generation_id))
        if isinstance(response, ConsumerGroupHeartbeatResponse) and response.member_id:
            self.members.append(Known(response.member_id, response.member_epoch))

    def _struct(self, spec: MessageSpec, version: int) -> object:
        return spec.cls(**{field.name: self._field(field, version) for field in spec.present(version)})

    def _field(self, field: FieldSpec, version: int) -> object:
        if version in field.null and self.random.random() < 0.4:
            return None
        if not field.array:
            return self._value(field, version)
        return [self._value(field, version) for _ in range(self.random.choice([0, 1, 1, 2, 2, 5]))]

    def _value(self, field: FieldSpec, version: int) -> object:
        kind = field.type
        if isinstance(kind, MessageSpec):
            return self._struct(kind, version)
        if kind is STRING:
            return self._text(field.name)
        if kind is BYTES:
            return self._said(field.name)
        if kind is UUID_BYTES:
            ids = [info.id for info in self.harness.broker.image.topics.values()]
            return self.random.choice([UUID(int=0), UUID(int=1), *ids])
        return self._scalar(kind, field.name)

    def _text(self, name: str) -> str:
        if "member" in name:
            return self.random.choice([*(member.id for member in self.members), "m1", "m2", "", "stranger"])
        if "group_instance" in name or "instance" in name:
            return self.random.choice(["i", "j", "", "\n"])
        if "group" in name:
            return self.random.choice([*self.groups, ""])
        if "protocol_type" in name:
            return self.random.choice(["consumer", "consumer", "consumer", "connect", ""])
        if "regex" in name:
            return self.random.choice(["t|u", ".*", "(", "", "u"])
        if "assignor" in name:
            return self.random.choice(["uniform", "range", "none"])
        if name in ("name", "topics", "subscribed_topic_names", "protocol_name"):
            return self.random.choice([*TOPICS, "range", "range", "sticky"])
        return self.random.choice(["", "x", "\n", "stable", "consumer"])

    def _said(self, name: str) -> bytes:
        topic = self.random.choice(["t", "u", "nowhere"])
        version = self.random.randrange(4)
        if "assignment" in name:
            given = ConsumerProtocolAssignmentAssignedPartition(topic=topic, partitions=[0, 0, 1, -1, 2**31 - 1])
            said = encode(ConsumerProtocolAssignment(assigned_partitions=[given]), version)
        else:
            said = encode(ConsumerProtocolSubscription(topics=[topic, "t"]), version)
        whole = version.to_bytes(2) + said
        return self.random.choice([whole, whole, whole, whole[:5], b"", b"\xff\xff", bytes(20_000)])

    def _scalar(self, kind: Scalar, name: str) -> object:
        if kind.code == "?":
            return self.random.random() < 0.5
        if "timeout" in name:
            return self.random.choice([0, 1, 5, 50, 50, 200, -1, -(2**31), 2**31 - 1])
        return self.random.choice([0, 0, 0, 1, 1, 2, -1, -2, (1 << {"b": 7, "h": 15, "i": 31, "q": 63}[kind.code]) - 1])
