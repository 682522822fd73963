"""CreateTopics (19), versions 2-7: new topics, each on its own: a refused one does not affect the others.

- 4: -1 for the numbers of partitions and replicas means the broker's defaults; 5: the answer shows the topic's
  settings.
- 7: the answer shows the topic's id. ``validate_only`` checks everything and creates nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.broker.portions import patience_of, portions, propose_in_turn, states_max
from cordwood.cluster.controller import (
    PARTITIONS_MAX,
    TopicPlan,
    check_new_name,
    check_number_of_new,
    create_topic,
    plan_topic,
)
from cordwood.config import checked_topic, describe_topic
from cordwood.errors import Error, Refused
from cordwood.ids import NO_TOPIC_ID
from cordwood.ports import StoreOp
from cordwood.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsRequestTopic,
    CreateTopicsResponse,
    CreateTopicsResponseConfig,
    CreateTopicsResponseTopic,
)

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

Portions = list[list[CreateTopicsRequestTopic]]
Outcomes = list[tuple[list[CreateTopicsRequestTopic], Refused | None]]


def handle(broker: "Broker", call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse | None:
    try:
        check_number_of_new(sum(_number_of(broker, t) for t in request.topics), room=broker.replicas.room)
    except Refused as refusal:
        plans = {topic.name: refusal for topic in request.topics}
        return CreateTopicsResponse(topics=[_answer(broker, name, plans[name], True) for name in plans])
    _create(broker, call, request)
    return None


def _create(broker: "Broker", call: Call, request: CreateTopicsRequest) -> None:
    counts = Counter(topic.name for topic in request.topics)
    plans: dict[str, TopicPlan | Refused] = {}

    def divide() -> Portions:
        return portions(broker, request.topics, lambda topic: _number_of(broker, topic))

    def plan(group: list[CreateTopicsRequestTopic]) -> Sequence[StoreOp]:
        planned = _plan_all(broker, group, counts)
        plans.update(planned)
        if request.validate_only:
            return []
        new = [made for made in planned.values() if isinstance(made, TopicPlan)]
        return [op for topic in new for op in create_topic(broker.image, topic, states_max=states_max(broker))]

    def done(outcomes: Outcomes) -> None:
        broker.replicas.additions.when_added(counts, lambda: answer(outcomes))

    def answer(outcomes: Outcomes) -> None:
        for group, refusal in outcomes:
            if refusal is not None:
                plans.update((t.name, refusal) for t in group if not isinstance(plans.get(t.name), Refused))
        topics = [_answer(broker, name, planned, request.validate_only) for name, planned in plans.items()]
        broker.reply(call, CreateTopicsResponse(topics=topics))

    propose_in_turn(broker, divide, plan, done, patience_of(broker, call, request.timeout_ms))


def _plan_all(
    broker: "Broker", topics: list[CreateTopicsRequestTopic], counts: Mapping[str, int]
) -> dict[str, TopicPlan | Refused]:
    plans: dict[str, TopicPlan | Refused] = {}
    for topic in topics:
        if counts[topic.name] > 1:
            plans[topic.name] = Refused(Error.INVALID_REQUEST, f"Topic '{topic.name}' is named twice in one request.")
            continue
        try:
            plans[topic.name] = _plan(broker, topic)
        except Refused as refusal:
            plans[topic.name] = refusal
    _refuse_collisions(plans)
    return plans


def _number_of(broker: "Broker", topic: CreateTopicsRequestTopic) -> int:
    """The partitions that a topic will have; an impossible number is refused later."""
    if topic.assignments:
        return len(topic.assignments)
    number = broker.config.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    return number if 0 < number <= PARTITIONS_MAX else 0


def _refuse_collisions(plans: dict[str, TopicPlan | Refused]) -> None:
    """New names in the same request may collide with each other, too."""
    seen: dict[str, str] = {}
    for name, planned in plans.items():
        if isinstance(planned, TopicPlan):
            other = seen.setdefault(name.replace(".", "_"), name)
            if other != name:
                plans[name] = Refused(
                    Error.INVALID_TOPIC, f"Topic '{name}' collides with '{other}': '.' and '_' count as one."
                )


def _plan(broker: "Broker", topic: CreateTopicsRequestTopic) -> TopicPlan:
    check_new_name(broker.image, topic.name)  # that it exists takes precedence over anything else that is wrong
    manual = {assignment.partition_index: assignment.broker_ids for assignment in topic.assignments}
    if len(manual) < len(topic.assignments):
        raise Refused(Error.INVALID_REPLICA_ASSIGNMENT, "A partition is assigned twice.")
    partitions, replicas = topic.num_partitions, topic.replication_factor
    if not manual:
        partitions = broker.config.num_partitions if partitions == -1 else partitions
        replicas = broker.config.default_replication_factor if replicas == -1 else replicas
    config = {setting.name: setting.value for setting in topic.configs}
    return plan_topic(
        broker.image,
        broker.entropy,
        name=topic.name,
        partitions=partitions,
        replicas=replicas,
        manual=manual,
        config=checked_topic(config, broker.settings.layers),
    )


def _answer(
    broker: "Broker", name: str, planned: TopicPlan | Refused, validate_only: bool
) -> CreateTopicsResponseTopic:
    if isinstance(planned, Refused):
        return CreateTopicsResponseTopic(name=name, error_code=planned.error, error_message=planned.message)
    return CreateTopicsResponseTopic(
        name=name,
        topic_id=NO_TOPIC_ID if validate_only else planned.id,
        num_partitions=len(planned.assignment),
        replication_factor=len(planned.assignment[0]),
        configs=[
            CreateTopicsResponseConfig(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.sensitive,
            )
            for entry in describe_topic(planned.config, broker.settings.layers)
        ],
    )
