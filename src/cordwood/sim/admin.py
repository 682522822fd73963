"""An administrator: creates the topics of a run; then creates, grows, alters, writes to and deletes others at random.

It does not know the outcome of a request that was never answered; so for each name it remembers which states are
possible.
"""

from collections.abc import Callable, Mapping, Sequence

from cordwood.errors import Error
from cordwood.record.build import build_values
from cordwood.sim.client import Caller, Surroundings
from cordwood.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsRequestTopic,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsRequestConfig,
    CreateTopicsRequestTopic,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsRequestTopic,
    DeleteTopicsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestConfig,
    IncrementalAlterConfigsRequestResource,
    IncrementalAlterConfigsResponse,
    ProduceRequest,
    ProduceRequestPartition,
    ProduceRequestTopic,
    ProduceResponse,
)

PAUSE_MAX_MS = 400
TIMEOUTS_MS = 100, 700, 60_000
"""How long a broker may wait for its store: longer than this client, or not."""
NAMES = ("churn-a", "churn-b", "churn.c")

_TOPIC, _SET = 2, 0


class Admin:
    """One administrator, one request at a time."""

    def __init__(self, around: Surroundings, topics: Mapping[str, tuple[int, Mapping[str, str]]], changes: int) -> None:
        self._around = around
        self._to_create = dict(topics)
        self._left = changes
        self._replicas = min(len(around.addresses), 3)
        self._caller = Caller(around, "admin", self._go_on)
        self.possible: dict[str, set[bool]] = {name: {False} for name in NAMES}
        """Whether a topic exists, as far as is known: both, after a request that was never answered."""

    @property
    def is_done(self) -> bool:
        return not self._to_create and not self._left

    def start(self) -> None:
        self._caller.connect()

    def _pause(self) -> None:
        self._around.clock.after(self._around.random.randint(1, PAUSE_MAX_MS), "admin goes on", self._go_on)

    def _go_on(self) -> None:
        if not self._caller.is_connected or len(self._caller):
            return
        if self._to_create:
            name = next(iter(self._to_create))
            partitions, config = self._to_create[name]
            self._create(name, partitions, config, lambda error: self._created(name, error))
        elif self._left:
            self._left -= 1
            change = self._around.random.choice(
                (self._make, self._make, self._write, self._write, self._delete, self._grow, self._alter)
            )
            change(self._around.random.choice(NAMES))

    def _created(self, name: str, error: int) -> None:
        if error in (Error.NONE, Error.TOPIC_ALREADY_EXISTS):
            del self._to_create[name]
        self._say(f"creates {name}", error)

    def _say(self, what: str, error: int) -> None:
        self._around.trace.line("admin", f"{what}: {Error(error).name}")
        self._pause()

    # ------------------------------------------------------------------ requests

    def _create(self, name: str, partitions: int, config: Mapping[str, str], on_answer: Callable[[int], None]) -> None:
        topic = CreateTopicsRequestTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=self._replicas,
            configs=[CreateTopicsRequestConfig(name=key, value=value) for key, value in config.items()],
        )
        self._caller.ask(
            CreateTopicsRequest(topics=[topic], timeout_ms=self._around.random.choice(TIMEOUTS_MS)),
            7,
            CreateTopicsResponse,
            lambda response: on_answer(response.topics[0].error_code),
        )

    def _make(self, name: str) -> None:
        before = self._may_be(name, True)
        config = {"retention.ms": "1000"} if self._around.random.random() < 0.5 else {}

        def made(error: int) -> None:
            self._learn(name, error, before, then=True, otherwise={Error.TOPIC_ALREADY_EXISTS: True})
            self._say(f"makes {name}", error)

        self._create(name, self._around.random.randint(1, 3), config, made)

    def _delete(self, name: str) -> None:
        before = self._may_be(name, False)

        def deleted(response: DeleteTopicsResponse) -> None:
            error = response.responses[0].error_code
            self._learn(name, error, before, then=False, otherwise={Error.UNKNOWN_TOPIC_OR_PARTITION: False})
            self._say(f"deletes {name}", error)

        timeout_ms = self._around.random.choice(TIMEOUTS_MS)
        request = DeleteTopicsRequest(topics=[DeleteTopicsRequestTopic(name=name)], timeout_ms=timeout_ms)
        self._caller.ask(request, 6, DeleteTopicsResponse, deleted)

    def _may_be(self, name: str, state: bool) -> set[bool]:
        """From now on the topic may be in this state. Returns which states were possible before."""
        before = self.possible[name]
        self.possible[name] = before | {state}
        return before

    def _learn(self, name: str, error: int, before: set[bool], *, then: bool, otherwise: Mapping[Error, bool]) -> None:
        if error == Error.NONE:
            self.possible[name] = {then}
        elif error == Error.NOT_CONTROLLER:  # which promises that nothing was done
            self.possible[name] = before
        elif error in otherwise and not self._around.clustered:  # one of several may not have heard of the topic yet
            self.possible[name] = {otherwise[Error(error)]}

    def _grow(self, name: str) -> None:
        wanted = CreatePartitionsRequestTopic(name=name, count=self._around.random.randint(1, 5), assignments=None)

        def grown(response: CreatePartitionsResponse) -> None:
            self._say(f"grows {name}", response.results[0].error_code)

        self._caller.ask(CreatePartitionsRequest(topics=[wanted]), 3, CreatePartitionsResponse, grown)

    def _alter(self, name: str) -> None:
        change = IncrementalAlterConfigsRequestConfig(
            name="flush.messages", config_operation=_SET, value=str(self._around.random.randint(1, 9))
        )
        resource = IncrementalAlterConfigsRequestResource(resource_type=_TOPIC, resource_name=name, configs=[change])

        def altered(response: IncrementalAlterConfigsResponse) -> None:
            self._say(f"alters {name}", response.responses[0].error_code)

        request = IncrementalAlterConfigsRequest(resources=[resource])
        self._caller.ask(request, 1, IncrementalAlterConfigsResponse, altered)

    def _write(self, name: str) -> None:
        """A batch for a topic that may not exist, or may be deleted at this very moment."""
        acks = self._around.random.choice((0, 1, -1))
        part = ProduceRequestPartition(index=0, records=memoryview(build_values([b"into " + name.encode()])))
        request = ProduceRequest(
            acks=acks, timeout_ms=1_000, topic_data=[ProduceRequestTopic(name=name, partition_data=[part])]
        )

        def written(response: ProduceResponse) -> None:
            self._say(f"writes to {name}", response.responses[0].partition_responses[0].error_code)

        if acks:
            self._caller.ask(request, 9, ProduceResponse, written)
        else:
            self._caller.tell(request, 9)
            self._pause()

    def surprises(self, existing: Sequence[str]) -> list[str]:
        """What is known here, but is not so."""
        return [
            f"{name} {'exists' if name in existing else 'does not exist'}, and the administrator knows otherwise"
            for name, possible in self.possible.items()
            if (name in existing) not in possible
        ]
