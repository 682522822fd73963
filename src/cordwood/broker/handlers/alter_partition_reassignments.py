"""AlterPartitionReassignments (45), versions 0-1: move partitions to other brokers, or cancel a move (KIP-455).

- 1: the client may forbid a change of the number of replicas (KIP-860).

Any broker can start a move; the controller finishes it. A move that has nothing to wait for finishes at once.

If the metadata store is away and nothing was done, that is also reported as the error of the whole request: only there
do clients take it as a reason to retry.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.portions import patience_of, portions, propose_in_turn, states_max
from cordwood.cluster.image import TopicInfo
from cordwood.cluster.reassignment import Move, cancel, check_number, move, write_moves
from cordwood.cluster.states import Live
from cordwood.errors import Error, Refused
from cordwood.ids import TopicName
from cordwood.ports import StoreOp
from cordwood.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionReassignmentsResponsePartition,
    AlterPartitionReassignmentsResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

Target = list[int] | None
Piece = tuple[TopicName, dict[int, Target]]
"""Partitions of a topic that are handled together, and where they should go."""
Outcomes = dict[int, Refused | None]


def handle(broker: "Broker", call: Call, request: AlterPartitionReassignmentsRequest) -> None:
    pieces = _pieces(request, states_max(broker))
    results: list[Outcomes] = [{} for _ in pieces]
    same_number = not request.allow_replication_factor_change

    def divide() -> list[list[int]]:
        return portions(broker, range(len(pieces)), lambda number: len(pieces[number][1]))

    def plan(group: Sequence[int]) -> list[StoreOp]:
        operations: list[StoreOp] = []
        for number in group:
            operations += _plan(broker, pieces[number], same_number, results[number])
        return operations

    def done(outcomes: list[tuple[list[int], Refused | None]]) -> None:
        topics: dict[TopicName, AlterPartitionReassignmentsResponseTopic] = {}
        for number, refusal in ((number, refusal) for group, refusal in outcomes for number in group):
            name, targets = pieces[number]
            topic = topics.setdefault(name, AlterPartitionReassignmentsResponseTopic(name=name))
            topic.partitions += [_answer(index, results[number].get(index) or refusal) for index in targets]
        response = AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change, responses=list(topics.values())
        )
        refusals = (refusal for _, refusal in outcomes if refusal is not None)
        away = next((refusal for refusal in refusals if refusal.error is Error.NOT_CONTROLLER), None)
        if away is not None:
            response.error_code, response.error_message = away.error, away.message
        broker.reply(call, response)

    propose_in_turn(broker, divide, plan, done, patience_of(broker, call, request.timeout_ms))


def _pieces(request: AlterPartitionReassignmentsRequest, size: int) -> list[Piece]:
    """A topic that is named twice still counts as one; for a partition that is named twice, the last entry counts."""
    targets: dict[TopicName, dict[int, Target]] = {}
    for topic in request.topics:
        wanted = targets.setdefault(TopicName(topic.name), {})
        wanted.update((partition.partition_index, partition.replicas) for partition in topic.partitions)
    return [
        (name, dict(list(wanted.items())[start : start + size]))
        for name, wanted in targets.items()
        for start in range(0, max(len(wanted), 1), size)
    ]


def _plan(broker: "Broker", piece: Piece, same_number: bool, outcomes: Outcomes) -> list[StoreOp]:
    name, targets = piece
    topic = broker.image.topics.get(name)
    live = Live.of(broker.image)
    moves: dict[int, Move] = {}
    for index, target in targets.items():
        try:
            planned = _move(broker, topic, index, target, same_number, live)
        except Refused as refusal:
            outcomes[index] = refusal
        else:
            outcomes[index] = None
            if planned is not None:
                moves[index] = planned
    return write_moves(broker.image, topic, moves) if topic is not None and moves else []


def _move(
    broker: "Broker", topic: TopicInfo | None, index: int, target: Target, same_number: bool, live: Live
) -> Move | None:
    if topic is None or not 0 <= index < len(topic.partitions):
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, "There is no such partition.")
    partition = topic.partitions[index]
    if target is None:
        return cancel(topic, partition, live, broker.controllership.unclean)
    if same_number:
        check_number(partition, target)
    return move(partition, target, broker.image.incarnations, live)


def _answer(index: int, outcome: Refused | None) -> AlterPartitionReassignmentsResponsePartition:
    if outcome is None:
        return AlterPartitionReassignmentsResponsePartition(partition_index=index)
    return AlterPartitionReassignmentsResponsePartition(
        partition_index=index, error_code=outcome.error, error_message=outcome.message
    )
