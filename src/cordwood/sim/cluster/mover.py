"""An administrator of a cluster: moves partitions to other brokers, cancels that, and has leaders elected."""

from collections.abc import Sequence

from cordwood.errors import Error
from cordwood.ids import TopicPartition
from cordwood.sim.client import Surroundings
from cordwood.sim.cluster.lines import Lines
from cordwood.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsRequestPartition,
    AlterPartitionReassignmentsRequestTopic,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersRequestTopic,
    ElectLeadersResponse,
)

PAUSE_MAX_MS = 1_500
REPLICAS_MIN = 2
CANCEL_ODDS = 0.2
ELECT_ODDS = 0.3


class Mover:
    """One request at a time. The cluster knows the outcome; every request must end somehow."""

    def __init__(
        self,
        around: Surroundings,
        partitions: Sequence[TopicPartition],
        *,
        brokers: int,
        replicas_max: int,
        changes: int,
    ) -> None:
        self._around = around
        self._lines = Lines(around, "mover")
        self._partitions = partitions
        self._brokers = range(1, brokers + 1)
        self._replicas_max = replicas_max
        self._left = changes

    @property
    def is_done(self) -> bool:
        return not self._left

    def start(self) -> None:
        self._pause()

    def _pause(self) -> None:
        self._around.clock.after(self._around.random.randint(1, PAUSE_MAX_MS), "mover goes on", self._go_on)

    def _go_on(self) -> None:
        if not self._left:
            return
        self._left -= 1
        partition = self._around.random.choice(self._partitions)
        if self._around.random.random() < ELECT_ODDS:
            self._elect(partition)
        else:
            self._move(partition)

    def _move(self, partition: TopicPartition) -> None:
        random = self._around.random
        replicas: list[int] | None = None
        if random.random() >= CANCEL_ODDS:
            replicas = random.sample(self._brokers, random.randint(REPLICAS_MIN, self._replicas_max))
        part = AlterPartitionReassignmentsRequestPartition(partition_index=partition.partition, replicas=replicas)
        topic = AlterPartitionReassignmentsRequestTopic(name=partition.topic, partitions=[part])

        def moved(response: AlterPartitionReassignmentsResponse | None) -> None:
            errors = [each.error_code for topic in response.responses for each in topic.partitions] if response else []
            self._say(f"moves {partition} to {replicas}", errors)

        request = AlterPartitionReassignmentsRequest(topics=[topic])
        self._lines.ask_any(request, 0, AlterPartitionReassignmentsResponse, moved)

    def _elect(self, partition: TopicPartition) -> None:
        topic = ElectLeadersRequestTopic(topic=partition.topic, partitions=[partition.partition])

        def elected(response: ElectLeadersResponse | None) -> None:
            results = response.replica_election_results if response else []
            self._say(
                f"has a leader elected for {partition}",
                [each.error_code for result in results for each in result.partition_result],
            )

        request = ElectLeadersRequest(election_type=0, topic_partitions=[topic])
        self._lines.ask_any(request, 2, ElectLeadersResponse, elected)

    def _say(self, what: str, errors: Sequence[int]) -> None:
        said = Error(errors[0]).name if errors else "no answer"
        self._around.trace.line("mover", f"{what}: {said}")
        self._pause()
